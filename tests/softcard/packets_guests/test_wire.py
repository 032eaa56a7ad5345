"""A queue of a card answers UDP datagrams of another machine, whose kernel sends them: two guests on one Ethernet."""
import os
import subprocess
from pathlib import Path

import pytest

GUEST = Path(__file__).parents[3] / "softcard/guest"
CANNOT_RUN = 77
MODULE, BUILT = (os.environ[name] for name in ("SOFTCARD_MODULE", "OFFLOAD_BUILT"))
TEST = "RawPacketsWire.DatagramsOfAnotherMachineAreAnswered"
# The socket is not connected, so that an ICMP error is ignored: the other kernel gets the frames of the wire too.
ASK = """
import socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(1)
end = time.monotonic() + 200
for number in range(5):
    asked = f"question {number}".encode() * (1 + 20 * number)
    while time.monotonic() < end:
        sock.sendto(asked, ("10.77.1.1", 4000))
        try:
            answer = sock.recvfrom(2048)
        except TimeoutError:
            continue
        if answer == (asked[::-1], ("10.77.1.1", 4000)):
            break
    else:
        sys.exit(f"no answer to question {number}")
# The other guest ends with one of these: a question may have been asked, and answered, twice.
for _ in range(3):
    sock.sendto(bytes(1000 - 42), ("10.77.1.1", 4000))
    time.sleep(0.2)
print("5 answers")
"""


def start(tmp_path, number, *command):
    return subprocess.Popen(
        [GUEST, MODULE, f"{BUILT}/softcard", "--timeout", "250", "--link", f"{tmp_path}/wire:{number}", "--", *command],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_datagrams_of_another_machine_are_answered(tmp_path):
    answering = start(tmp_path, 1, f"{BUILT}/softcard_packets_test", f"--gtest_filter={TEST}")
    asking = start(tmp_path, 2, "python3", "-c", ASK)
    try:
        for guest, expected in ((asking, "5 answers"), (answering, "PASSED")):
            output, errors = guest.communicate(timeout=400)
            if guest.returncode == CANNOT_RUN:
                pytest.exit(errors.strip(), returncode=CANNOT_RUN)
            assert guest.returncode == 0, output + errors
            assert expected in output, errors
    finally:
        for guest in (asking, answering):
            guest.terminate()
