"""In a container whose seccomp profile is older than a system call, the call fails with EPERM, or ENOSYS."""
import errno
import json
import os
import time

import pytest

from harness import BACKEND, Program, denying
from wire import Wire, payloads


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS])
def test_epoll_pwait2(stage, number):
    wrapper = denying("epoll_pwait2", number)
    server = stage.server(wrapper=wrapper)
    worker = stage.add(Program(stage.folder, "offload-worker", *stage.comch_options(),
                               "--backend", BACKEND, wrapper=wrapper))
    server.wait_until_listening()
    with Wire(server.port) as client:
        client.ask(payloads(200, [1, 64, 256]))
    before = server.cpu_seconds() + worker.cpu_seconds()
    time.sleep(0.5)
    assert server.cpu_seconds() + worker.cpu_seconds() - before < 0.25, "they spin"
    assert server.terminate() == 0
    assert worker.terminate() == 0


@pytest.mark.parametrize("call", ["mbind", "set_mempolicy"])
def test_a_denied_call_of_libnuma_is_a_line_of_the_log(stage, call):
    server = stage.server("--cpu", min(os.sched_getaffinity(0)), "--log-format", "json",
                          wrapper=denying(call, errno.EPERM))
    stage.worker()
    server.wait_for_log("listening on")
    assert server.terminate() == 0
    lines = [json.loads(line) for line in server.log.splitlines()]
    if os.path.exists("/sys/devices/system/node/node0"):
        assert any(f"not bound to a NUMA node: {call}: Operation not permitted" in line["message"] for line in lines)
