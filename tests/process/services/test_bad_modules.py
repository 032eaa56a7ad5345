"""Modules with faults that only a checker finds, or that only occur on a GPU: found as their authors would."""
import os
import re
import shutil
import subprocess

import pytest

import wire
from harness import BACKEND, SANITIZE, SERVICES, TIME_FACTOR, wait_until

COMPUTE_SANITIZER = shutil.which("compute-sanitizer", path=f"{os.environ['PATH']}:/usr/local/cuda/bin")


def address_sanitizer():
    """Returns the library that a program must load before one that was compiled with AddressSanitizer."""
    if shutil.which("g++") is None:
        return ""
    return subprocess.run(["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, timeout=20).stdout.strip()


def ask_wrongly(stage, worker, server):
    """Sends a valid request, and then one for which the service reads beyond its memory."""
    server.wait_for_log(r"listening on \S+", 120 * TIME_FACTOR)
    server.wait_until_listening()
    with wire.Wire(server.port) as client:
        client.socket.settimeout(60 * TIME_FACTOR)
        client.ask([b"right"], lambda request: b"\1\0\0\0")
        client.send(wire.frame(b"X"))
        wait_until(lambda: re.search("heap-buffer-overflow|Invalid __global__ read", worker.log + worker.out),
                   "the checker says what it found", 60 * TIME_FACTOR)


@pytest.mark.skipif(BACKEND != "cpu", reason="AddressSanitizer is for the form of a CPU")
@pytest.mark.skipif(SANITIZE != [""], reason="this build's programs have a sanitizer themselves")
@pytest.mark.skipif(not os.path.isabs(address_sanitizer()), reason="there is no g++ with libasan here")
def test_address_sanitizer_finds_a_read_out_of_bounds(stage, monkeypatch):
    server = stage.server("--service", "out_of_bounds")
    worker = stage.worker("--service-module", SERVICES / "test_out_of_bounds_asan.so", wrapper=[
        "env", f"LD_PRELOAD={address_sanitizer()}", "ASAN_OPTIONS=detect_leaks=0"])
    ask_wrongly(stage, worker, server)
    assert worker.wait(20 * TIME_FACTOR) == 1
    report = worker.log
    assert "heap-buffer-overflow" in report and re.search(r"READ of size 1", report), report
    # The finding was expected: it must not count as one of this test's own programs at its end.
    worker._err.write_text("")


@pytest.mark.skipif(BACKEND != "cuda", reason="compute-sanitizer is for the form of a GPU")
@pytest.mark.skipif(COMPUTE_SANITIZER is None, reason="there is no compute-sanitizer here (CUDA toolkit)")
def test_compute_sanitizer_finds_a_read_out_of_bounds(stage):
    """The back end launches a kernel for each batch: a checker reports at the end of one."""
    server = stage.server("--service", "out_of_bounds")
    worker = stage.program("offload-worker", *stage.comch_options(), "--backend", "graph", "--service-module",
                           SERVICES / "test_out_of_bounds.so", wrapper=[COMPUTE_SANITIZER, "--tool", "memcheck"])
    ask_wrongly(stage, worker, server)
    worker.wait(60 * TIME_FACTOR)  # the GPU accepts nothing more from a process after such a read


@pytest.mark.skipif(BACKEND != "cuda", reason="about code for a GPU")
def test_a_module_without_code_for_this_gpu_is_one_line(stage):
    """The module has machine code of compute capability 7.5 alone."""
    worker = stage.worker("--service-module", SERVICES / "test_other_gpu.so")
    status = worker.wait(60 * TIME_FACTOR)
    lines = [line for line in worker.log.splitlines() if line.startswith("offload-worker:")]
    assert status == 1 and len(lines) == 1, worker.log
    assert re.search(r"cannot create service other_gpu: it has no code for this GPU, of compute capability \d", lines[0])
