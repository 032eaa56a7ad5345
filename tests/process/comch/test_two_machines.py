"""Server and worker over RDMA on two machines: two guests of scripts/rdma-guest on one Ethernet,
whose cable can be pulled. With SOFTCARD_MODULE, the folder of the kernel module, both have the software card
(softcard/guest), whose rings the worker's back end posts to."""
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from harness import BIN, ROOT, Program

GUEST = [ROOT / "scripts/rdma-guest"]
DEVICE, DATA_PATH = "rxe0", "cpu"
MODULE = os.environ.get("SOFTCARD_MODULE")
if MODULE:
    GUEST = [ROOT / "softcard/guest", MODULE, BIN / "softcard"]
    DEVICE, DATA_PATH = "mlx5_0", "gpu"
CANNOT_RUN = 77
# The time limit of every wait for the guests. They are some 20 times slower than this machine, and its other work
# slows them further: only a hang takes as long.
SOON = 240
# The requests of each of two connections.
SHORT, LONG = 2_000, 40
# wait_for COUNT WORDS: waits until the log has COUNT lines with these words, or the program has ended.
WAIT_FOR = """
wait_for() {
  until (($(grep -c "$2" /tmp/log) >= $1)) || ! kill -0 $program; do sleep 0.1; done
}
"""
# The script of the machine with the server: all requests are answered, or it ends with the client's status. The
# last client sends until the third worker has attached, while the test fails the network.
SERVER_MACHINE = f"""
{{ "$@"; echo $? >/tmp/status; }} |& tee /tmp/log >&2 & program=$!
{WAIT_FOR}
client() {{
  {BIN}/offload-client -s 127.0.0.1 --connect-timeout 60s --response-timeout 200s -t 2 "$@"
}}
client -i {SHORT} --size 64 || exit
client -i {LONG} --size 64k || exit
client --duration 1000s --size 64 & load=$!
wait_for 3 'is ready'
sleep 1
kill -TERM $(busybox pidof offload-client)
wait $load
kill $(busybox pidof offload-server)
wait $program
exit $(cat /tmp/status)
"""
# The script of the other machine. When its worker has attached again after the test has pulled the cable,
# the interface below the card goes down, and then the machine or, on the software card, the interface comes up again.
# (With the interface up again Soft-RoCE would accept no connection: docs/reference/rdma.md.)
WORKER_MACHINE = f"""
{{ "$@"; echo $? >/tmp/status; }} |& tee /tmp/log >&2 & program=$!
{WAIT_FOR}
wait_for 2 'attached to'
sleep 1
/sbin/ip link set eth0 down
wait_for 2 'the server is gone'
{"/sbin/ip link set eth0 up" if MODULE else "kill -9 $(busybox pidof offload-worker)"}
wait $program
exit {"$(cat /tmp/status)" if MODULE else 0}
"""
# The reasons of a connection that broke: the card's, which a back end's queue pair has no completion for, or the time.
BROKEN = r"(retry counter exceeded|silent|queue pair \d+.* is in error)"


@pytest.fixture
def machine(stage):
    """Starts machine `number`, which runs a script with a program's command line. The two have
    one Ethernet."""
    prepared = subprocess.run([ROOT / "scripts/rdma-guest", "--prepare"], stderr=subprocess.PIPE, text=True, timeout=300)
    if prepared.returncode == CANNOT_RUN:
        pytest.exit(prepared.stderr.strip(), returncode=CANNOT_RUN)
    assert prepared.returncode == 0, prepared.stderr
    if MODULE and Path(MODULE, "cannot").exists():
        pytest.exit(f"the module cannot be built here: {Path(MODULE, 'cannot').read_text().strip()}", CANNOT_RUN)

    def start(number, script, name, *options):
        wrapper = [*GUEST, "--timeout", "700", "--link", f"{stage.folder}/wire:{number}", "--",
                   "bash", "-c", script, "-"]
        return stage.add(Program(stage.folder, name, "--comch", "rdma:10.77.1.1:4711",
                                 *stage.key_options(), *options, wrapper=map(str, wrapper)))
    return start


def set_link(stage, number, state):
    """Pulls the cable of machine `number` ("off"), or plugs it in again ("on")."""
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.settimeout(SOON)
        monitor.connect(f"{stage.folder}/wire/{number}.monitor")
        monitor.sendall(f"set_link wire {state}\n".encode())
        heard = b""
        while heard.count(b"(qemu) ") < 2:  # before the command, and when it is done
            heard += monitor.recv(4096)
    assert b"not found" not in heard


def test_every_request_is_answered_though_the_network_fails(stage, machine):
    server = machine(1, SERVER_MACHINE, "offload-server", "--max-message-length", "64k",
                     "--worker-timeout", "200s", "--request-timeout", "0", "--shutdown-together")
    worker = machine(2, WORKER_MACHINE, "offload-worker", "--backend", "cpu", "--data-path", DATA_PATH)
    server.wait_for_log("is ready", SOON)

    # With the third client sending, machine 2 is cut off.
    server.wait_for_log(r"2 connected to 127\.0\.0\.1", SOON, count=3)
    set_link(stage, 2, "off")
    # One side detects it from its port, the other from the silence.
    worker.wait_for_log(f"{DEVICE} reports: port error", SOON)
    worker.wait_for_log("the server is gone: .*" + BROKEN, SOON)
    server.wait_for_log("worker .* is gone: .*" + BROKEN, SOON)
    set_link(stage, 2, "on")
    server.wait_for_log("is ready", SOON, count=2)

    # Then its administrator sets its interface down, and the machine is started again, or the interface is set up.
    worker.wait_for_log(f"{DEVICE} reports: port error", SOON, count=2)
    server.wait_for_log("worker .* is gone: .*" + BROKEN, SOON, count=2)
    if not MODULE:
        assert worker.wait(SOON) == 0, worker.log
        worker = machine(2, 'exec "$@"', "offload-worker", "--backend", "cpu")

    assert server.wait(SOON) == 0, server.log
    assert worker.wait(SOON) == 0, worker.log
    answered = [int(count) for count in re.findall(r"Valid responses: +(\d+)", server.out)]
    asked = [int(count) for count in re.findall(r"Operation count: +(\d+)", server.out)]
    assert answered == asked
    assert answered[:2] == [2 * SHORT, 2 * LONG]
    assert answered[2] > 2 * 128, "nothing but what was under way"
