"""TLS by the kernel where it can do it, as in the guest of scripts/rdma-guest: every byte right."""
from pathlib import Path

import pytest

from certificates import Authority, needs_openssl, own, trusting
from harness import scaled, statistics

STATISTICS = Path("/proc/net/tls_stat")

pytestmark = [needs_openssl, pytest.mark.skipif(
    not STATISTICS.exists(), reason="this kernel has no TLS (module tls)")]


def connections_sent_by_the_kernel():
    return int(dict(line.split() for line in STATISTICS.read_text().splitlines())["TlsTxSw"])


def test_every_size_by_the_kernel(stage, tmp_path):
    authority = Authority(tmp_path, "ours")
    certificate = authority.issue("server", "IP:127.0.0.1")
    server, _ = stage.pair(*own(certificate), "--max-message-length", "64k")
    before = connections_sent_by_the_kernel()
    for size, depth in ((0, 16), (64, 128), (4096, 16), (65536, 64)):
        count = scaled(1000 if size < 65536 else 100, lowest=20)
        client = stage.run_client(server, *trusting(authority), "--size", size, "-i", count,
                                  "--max-concurrent-messages", depth)
        assert statistics(client)["Valid responses"] == count
    assert connections_sent_by_the_kernel() - before == 2 * 4, "of both ends of four connections"
