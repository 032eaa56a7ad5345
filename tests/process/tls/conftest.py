"""Fixtures of the TLS tests."""
import pytest
from certificates import Authority


@pytest.fixture(scope="module", name="ours")
def fixture_ours(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ours"), "ours")


@pytest.fixture(scope="module", name="certificate")
def fixture_certificate(ours):
    return ours.issue("server", "DNS:server.test,IP:127.0.0.1")
