"""The samples of RDMA run, and their results are right."""
import re

import pytest

from harness import run_sample


@pytest.mark.parametrize("name, words", [
    ("put", "65536 bytes written to the peer"),
    ("put-with-signal", "200 lines put, the sum of the numbers is 87360854400"),
    ("ping-pong", "1000 messages sent and received"),
    ("shared-queue", "400 numbers drawn by 8 blocks, each once"),
    ("many-queues", "320 puts completed on 8 queues"),
    ("copy", "24 pieces of 16384 bytes copied"),
])
def test_rdma(name, words):
    assert re.fullmatch(rf"sample-rdma-{name}, posted by (a GPU|threads): {words}\n", run_sample(f"sample-rdma-{name}"))


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
    assert run_sample(f"sample-rdma-tasks-{name}") == words
