"""The samples run, and their results are right."""
import hashlib
import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from harness import BIN, PATIENCE, run_sample

with_cuda = pytest.mark.skipif(not (BIN / "sample-sync-event-gpu").exists(), reason="this build is without CUDA")


@pytest.mark.parametrize("name", ["sample-sync-event-processes",
                                  pytest.param("sample-sync-event-gpu", marks=with_cuda)])
def test_sync_event(name):
    assert re.fullmatch(r"1000 round trips, [\d.]+ us each\n", run_sample(name))


@pytest.mark.parametrize("options", [
    [], ["--atomic"], ["--async", "--qdepth", "1"], ["--async", "--qdepth", "16", "--atomic"]],
    ids=" ".join)
def test_sync_event_of_two_programs(options, tmp_path):
    """The event is sent over the control channel; the DPU's program starts first."""
    comch = f"unix:{tmp_path}/comch"
    with subprocess.Popen([BIN / "sample-sync-event-dpu", "--comch", comch, *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as dpu:
        try:
            assert dpu.stdout.readline() == f"waiting for the host on {comch}\n"
            host = subprocess.run([BIN / "sample-sync-event-host", "--comch", comch, *options],
                                  capture_output=True, text=True, timeout=3 * PATIENCE)
            assert host.returncode == 0, host.stdout + host.stderr
            assert re.fullmatch(r"1000 round trips, [\d.]+ us each\n", host.stdout)
            out, err = dpu.communicate(timeout=PATIENCE)
            assert (dpu.returncode, out, err) == (0, "1000 signals received, 1000 sent\n", "")
        finally:
            dpu.kill()


def test_sync_event_host_says_that_there_is_no_dpu(tmp_path):
    ended = subprocess.run([BIN / "sample-sync-event-host", "--comch", f"unix:{tmp_path}/none"],
                           capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 1 and "sample-sync-event-host: " in ended.stderr
    ended = subprocess.run([BIN / "sample-sync-event-host", "-r", "03:00.0"],
                           capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 2 and "use --comch, the address of the connection" in ended.stderr


def test_memory_export():
    assert run_sample("sample-memory-export") == (
        "the second process read: hello from the first\n"
        "a read-only export is not writable: not_permitted\n"
        "a forged blob: bad_message\n"
        "the first process read: hello from the second\n")


def test_unsolicited():
    """There is a notice for each thousand events among 4 Mi values; the receiver counts them too."""
    assert re.fullmatch(r"sample-unsolicited: 3\d unsolicited notices, sent by a (GPU|thread)\n",
                        run_sample("sample-unsolicited"))


@pytest.mark.parametrize("after_ms", [0, 1, 2])
def test_unsolicited_for_a_receiver_that_pauses(after_ms):
    """Notices wait for their receiver, which takes all of them later."""
    with subprocess.Popen([BIN / "sample-unsolicited"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as sample:
        children = Path(f"/proc/{sample.pid}/task/{sample.pid}/children")
        receiver = []
        while not receiver and sample.poll() is None:
            receiver = children.read_text().split()
        time.sleep(after_ms / 1000)
        with suppress(ProcessLookupError, IndexError):  # it has ended
            os.kill(int(receiver[0]), signal.SIGSTOP)
            time.sleep(0.5)
            os.kill(int(receiver[0]), signal.SIGCONT)
        out, err = sample.communicate(timeout=3 * PATIENCE)
    assert (sample.returncode, err) == (0, "") and re.search(": 3[0-9] unsolicited notices", out)


def test_graph():
    """Each buffer has 64 KiB of the number of its run; eight are in flight, in order."""
    lines = run_sample("sample-graph").splitlines()
    assert lines[0] == f"SHA-256 of the last: {hashlib.sha256(bytes([99]) * (64 << 10)).hexdigest()}"
    assert lines[1:] == ["100 copies compared, 100 right, 0 wrong"]


def test_event_driven_engine():
    found = re.fullmatch(r"(\d+) ticks, (\d+) of them waited for one by one\n",
                         run_sample("sample-event-driven-engine"))
    assert int(found[1]) >= 50 and 1 <= int(found[2]) <= int(found[1])
