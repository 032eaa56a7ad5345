"""Server and worker over RDMA on a software card (docs/softcard.md) that fails and works again later."""
import os
import signal

import pytest

from harness import TIME_FACTOR, statistics

CARD = int(os.environ["SOFTCARD_PID"])  # softcard.programs runs this file in a guest


def start(stage, path):
    server = stage.server()
    worker = stage.worker(data_path=path)
    server.wait_until_listening()
    stage.run_client(server, "-i", 100)
    return server, worker


@pytest.mark.parametrize("path", ["cpu", "gpu"])
def test_both_ends_attach_again(stage, path):
    """Nothing that was posted completes any more, and no connection breaks: only the event tells."""
    server, worker = start(stage, path)
    client = stage.client(server, "-i", 2000, "--response-timeout", f"{60 * TIME_FACTOR}s")
    client.wait_for_log("connected to")
    os.kill(CARD, signal.SIGUSR1)
    for program in (server, worker):
        program.wait_for_log("mlx5_0 reports: local catastrophic error")
    worker.wait_for_log("the server is gone: mlx5_0 has failed")
    server.wait_until_worker_gone()
    server.wait_until_attached(count=2)
    assert client.wait() == 0, client.log
    assert statistics(client)["Valid responses"] == 2000
    stage.run_client(server, "-i", 100)
    assert server.terminate() == 0
    assert worker.terminate() == 0


def test_a_worker_whose_device_fails_may_exit(stage):
    """Told to exit while the device has failed, it waits for nothing that the device does not do."""
    server, worker = start(stage, "cpu")
    worker.send_signal(signal.SIGSTOP)
    os.kill(CARD, signal.SIGUSR1)
    server.wait_for_log("mlx5_0 reports: local catastrophic error")
    worker.send_signal(signal.SIGTERM)
    worker.send_signal(signal.SIGCONT)
    assert worker.wait() == 0, worker.log
    assert server.terminate() == 0
