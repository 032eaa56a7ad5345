"""URLs, time limits of single calls, and the version."""
import re

import pytest

import offload_client
from offload_client import AsyncClient
from offload_client.settings import PORT, Default, limit, split_url
from test_package import CLIENT


@pytest.mark.parametrize("url, parts", [
    ("offload://server.example:7000", ("server.example", 7000, False)),
    ("offload://server.example", ("server.example", PORT, False)),
    ("offloads://10.0.0.1:7001/", ("10.0.0.1", 7001, True)),
    ("offloads://[2001:db8::1]:7002", ("2001:db8::1", 7002, True)),
])
def test_urls(url, parts):
    assert split_url(url) == parts


@pytest.mark.parametrize("url", ["server.example:7000", "http://server.example", "offload://", "offload://:7000",
                                 "offload://server.example:port", "offload://server.example:70000",
                                 "offload://server.example/reverse", "offload://server.example?timeout=3",
                                 "offload://user@server.example"])
def test_invalid_urls(url):
    with pytest.raises(ValueError):
        split_url(url)


def test_a_url_with_tls_has_a_context():
    assert AsyncClient.from_url("offloads://server.example")._tls is not None
    assert AsyncClient.from_url("offload://server.example")._tls is None


def test_limits():
    assert limit(Default.TIMEOUT, 30.0) == 30.0 and limit(Default.TIMEOUT, None) is None
    assert limit(None, 30.0) is None and limit(0.5, 30.0) == 0.5 and limit(0, 30.0) == 0


def test_the_version_is_that_of_the_package():
    project = (CLIENT / "pyproject.toml").read_text()
    assert offload_client.__version__ == re.search(r'^version = "(.+)"$', project, re.MULTILINE)[1]
