"""Options of offload-worker whose value no other file of tests shows to arrive. docs/evidence/wiring.md lists the test
of each option."""
import functools
import subprocess

import pytest

from harness import BIN, TIME_FACTOR


@functools.cache
def has_gpu():
    done = subprocess.run([BIN / "offload-worker", "--list-devices"], check=True, capture_output=True, text=True,
                          timeout=60 * TIME_FACTOR)
    return "no GPU: " not in done.stdout


@pytest.mark.parametrize("name", ["auto", "cpu", "cuda", "graph"])
def test_the_back_end(stage, name):
    worker = stage.program("offload-worker", "--comch", f"unix:{stage.comch}", "--backend", name)
    if name in ("auto", "cpu") or has_gpu():
        expected = ("cuda" if has_gpu() else "cpu") if name == "auto" else name
        worker.wait_for_log(f"back end: {expected}")
    else:
        assert worker.wait() == 1
        assert "back end: " not in worker.log


def test_the_address_of_a_gpu(stage):
    """No GPU has this address, or there is none; without the option, another one or the processor would do."""
    worker = stage.program("offload-worker", "--comch", f"unix:{stage.comch}", "-g", "ffff:ff:1f.0")
    assert worker.wait() == 1
    assert not has_gpu() or "ffff:ff:1f.0" in worker.log.splitlines()[-1]
