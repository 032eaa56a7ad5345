"""The samples run, and their results are right."""
import hashlib
import re
import subprocess

import pytest

from harness import BIN, PATIENCE

NO_DEVICE = 77


def run(name):
    """Returns the sample's output, after it has ended with exit status 0."""
    ended = subprocess.run([BIN / name], capture_output=True, text=True, timeout=3 * PATIENCE)
    if ended.returncode == NO_DEVICE:
        pytest.skip(ended.stdout.strip())
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stderr == ""
    return ended.stdout


with_cuda = pytest.mark.skipif(not (BIN / "sample-sync-event-gpu").exists(), reason="this build is without CUDA")


@pytest.mark.parametrize("name", ["sample-sync-event-processes",
                                  pytest.param("sample-sync-event-gpu", marks=with_cuda)])
def test_sync_event(name):
    assert re.fullmatch(r"1000 round trips, [\d.]+ us each\n", run(name))


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
    assert run("sample-memory-export") == (
        "the second process read: hello from the first\n"
        "a read-only export is not writable: not_permitted\n"
        "a forged blob: bad_message\n"
        "the first process read: hello from the second\n")


def test_unsolicited():
    """There is a notice for each thousand events among 4 Mi values; the receiver counts them too."""
    assert re.fullmatch(r"sample-unsolicited: 3\d unsolicited notices, sent by a (GPU|thread)\n",
                        run("sample-unsolicited"))


def test_graph():
    """Each buffer has 64 KiB of the number of its run; eight are in flight, in order."""
    lines = run("sample-graph").splitlines()
    assert lines[0] == f"SHA-256 of the last: {hashlib.sha256(bytes([99]) * (64 << 10)).hexdigest()}"
    assert lines[1:] == ["100 copies compared, 100 right, 0 wrong"]


def test_event_driven_engine():
    found = re.fullmatch(r"(\d+) ticks, (\d+) of them waited for one by one\n",
                         run("sample-event-driven-engine"))
    assert int(found[1]) >= 50 and 1 <= int(found[2]) <= int(found[1])


@pytest.mark.parametrize("name, words", [
    ("put", "65536 bytes written to the peer"),
    ("put-with-signal", "200 lines put, the sum of the numbers is 87360854400"),
    ("ping-pong", "1000 messages sent and received"),
    ("shared-queue", "400 numbers drawn by 8 blocks, each once"),
    ("many-queues", "320 puts completed on 8 queues"),
    ("copy", "24 pieces of 16384 bytes copied"),
])
def test_rdma(name, words):
    assert re.fullmatch(rf"sample-rdma-{name}, posted by (a GPU|threads): {words}\n", run(f"sample-rdma-{name}"))


@pytest.mark.parametrize("name, words", [
    ("send", "received: hello, and hello with 7\n"),
    ("write", "written, and told by 9\n"),
    ("read", "read: what| is here\n"),
    ("atomic", "before the add 2, before the swap 42, now 1000\n"),
    ("sync-event", "1 from there, 2 from here, 3 from there\n"),
    ("many-clients", "3 of 3 client processes answered\n"),
])
def test_rdma_tasks(name, words):
    """Two or more processes use an RDMA device, which the guest of scripts/rdma-guest has."""
    assert run(f"sample-rdma-tasks-{name}") == words
