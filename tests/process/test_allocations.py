"""The data path allocates nothing: counted in the I/O threads of the server and the threads of the CPU worker, under
load, after the connections have warmed up."""
import struct
from pathlib import Path

import pytest

from harness import BIN, Stage, needs_cpu_worker, scaled
from wire import Wire, payloads

COUNTER = BIN / "liballocation_counter.so"
MOST_FOR_A_LINE = 4

pytestmark = [
    needs_cpu_worker,
    pytest.mark.skipif(not COUNTER.exists(),
                       reason="no allocation counter in this build: a sanitizer has the heap"),
]


@pytest.fixture
def counted(monkeypatch):
    """Yields a stage whose programs count their allocations, and a function that returns the count."""
    with_programs = Stage()
    count = Path(with_programs.folder) / "allocations"
    count.write_bytes(bytes(8))
    monkeypatch.setenv("OFFLOAD_ALLOCATION_COUNT", str(count))
    monkeypatch.setenv("LD_PRELOAD", str(COUNTER))
    yield with_programs, lambda: struct.unpack("=Q", count.read_bytes())[0]
    with_programs.close()


@pytest.mark.parametrize("size, options", [(0, ()), (64, ()), (256, ()), (4096, ()), (64, ("--slow-request", "1h"))])
def test_nothing_is_allocated_per_message(counted, size, options):
    stage, allocations = counted
    server, _ = stage.pair("--threads", 2, "--max-message-length", 4096, *options)
    wires = [Wire(server.port) for _ in range(4)]
    requests = payloads(200, size)
    for _ in range(3):
        for wire in wires:
            wire.ask(requests)
    before = allocations()
    assert before > 0, "the counter does not count"
    rounds = scaled(100)
    for _ in range(rounds):
        for wire in wires:
            wire.ask(requests)
    allocated = allocations() - before
    for wire in wires:
        wire.close()
    assert server.terminate() == 0  # then the log is complete
    # The log reports an I/O thread that the machine delayed, which takes some allocations.
    assert allocated <= MOST_FOR_A_LINE * server.log.count("a turn took"), f"{allocated} over {rounds * 800} messages"
