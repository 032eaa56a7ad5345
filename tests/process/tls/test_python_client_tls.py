"""The Python client in TLS 1.3, with and without asyncio."""
import asyncio
import gc
import os
import ssl
import sys

import pytest

from certificates import Authority, needs_openssl, own
from harness import PATIENCE, ROOT, scaled
from wire import payloads, reverse

sys.path.insert(0, str(ROOT / "clients/python/src"))

from offload_client import (AsyncClient, Client, ConnectFailed, ConnectionLost, NotOwner, Pool,  # noqa: E402
                            Refusal, RequestRefused, tls_context)

pytestmark = needs_openssl


def ask_sync(port, requests, **options):
    with Client("127.0.0.1", port, timeout=6 * PATIENCE, **options) as client:
        return list(client.requests(requests))


def ask_async(port, requests, **options):
    async def ask():
        async with AsyncClient("127.0.0.1", port, timeout=6 * PATIENCE, **options) as client:
            return await asyncio.gather(*map(client.request, requests))
    return asyncio.run(asyncio.wait_for(ask(), 12 * PATIENCE))


def ask_pool(port, requests, **options):
    with Pool(2, "127.0.0.1", port, timeout=6 * PATIENCE, **options) as pool:
        return list(map(pool.request, requests))


both = pytest.mark.parametrize("ask", [ask_sync, ask_async, ask_pool])


@both
def test_every_length(stage, ours, certificate, ask):
    server, _ = stage.pair(*own(certificate), "--max-message-length", "1m", "--max-concurrent-messages", 16)
    requests = payloads(scaled(1000), [0, 1, 300, 5000]) + payloads(20, 1 << 20)
    assert ask(server.port, requests, tls=tls_context(ours.ca)) == [*map(reverse, requests)]


@both
def test_who_the_server_is(stage, ours, certificate, ask):
    server, _ = stage.pair(*own(certificate))
    for options in ({"tls": tls_context()},  # the system's authorities
                    {"tls": tls_context(ours.ca), "server_name": "other.test"}):
        with pytest.raises(ConnectFailed, match="CERTIFICATE_VERIFY_FAILED") as failed:
            ask(server.port, [b"hello"], **options)
        assert isinstance(failed.value.__cause__, ssl.SSLCertVerificationError)
    options = {"tls": tls_context(ours.ca), "server_name": "server.test"}
    assert ask(server.port, [b"hello"], **options) == [b"olleh"]


@both
def test_a_certificate_of_its_own(stage, ours, certificate, ask):
    server, _ = stage.pair(*own(certificate), "--tls-client-ca", ours.ca)
    context = tls_context(ours.ca, *ours.issue("client", "DNS:client.test"))
    assert ask(server.port, [b"hello"], tls=context) == [b"olleh"]
    # In TLS 1.3 the server's refusal comes after the client's end of the handshake.
    with pytest.raises((ConnectionLost, ConnectFailed)):
        ask(server.port, [b"hello"], tls=tls_context(ours.ca))


@both
def test_a_revoked_server_is_refused(stage, ours, certificate, ask):
    server, _ = stage.pair(*own(certificate))

    def refused(crl):
        with pytest.raises(ConnectFailed) as failed:
            ask(server.port, [b"hello"], tls=tls_context(ours.ca, crl=crl))
        assert isinstance(failed.value.__cause__, ssl.SSLCertVerificationError)
        return str(failed.value)

    assert ask(server.port, [b"hello"], tls=tls_context(ours.ca, crl=ours.revoke())) == [b"olleh"]
    why = refused(ours.revoke(certificate[0]))
    assert f"127.0.0.1, port {server.port}: " in why and "certificate revoked" in why
    assert "CRL has expired" in refused(ours.revoke(until="20200102000000Z"))
    assert "unable to get certificate CRL" in refused(Authority(stage.folder, "other").revoke())


def test_files_that_are_no_revocation_lists(ours, tmp_path):
    """A certificate among them would be trusted, and a certificate alone would be no list."""
    mixed, broken, other = (tmp_path / name for name in ("mixed", "broken", "other"))
    mixed.write_text(ours.revoke().read_text() + Authority(tmp_path, "another").ca.read_text())
    broken.write_text(ours.revoke().read_text() + "-----BEGIN X509 CRL-----\nAAAA\n")
    other.write_text("no list\n")
    for file in (mixed, broken, other, ours.ca):
        with pytest.raises(ValueError, match=f"cannot use the revocation lists in {file}: "):
            tls_context(ours.ca, crl=file)
    with pytest.raises(FileNotFoundError, match="/nowhere"):
        tls_context(ours.ca, crl="/nowhere")


@both
def test_a_server_without_tls_and_a_client_without(stage, ours, certificate, ask):
    plain, _ = stage.pair()
    with pytest.raises(ConnectFailed):
        ask(plain.port, [b"hello"], tls=tls_context(ours.ca), connect_timeout=PATIENCE)
    stage.comch = stage.folder / "tls.sock"
    server, _ = stage.pair(*own(certificate))
    with pytest.raises(ConnectionLost):
        ask(server.port, [b"hello"])


def test_what_the_server_says_before_it_closes(stage, ours, certificate):
    server, _ = stage.pair(*own(certificate))
    with Client("127.0.0.1", server.port, tls=tls_context(ours.ca), timeout=PATIENCE) as client:
        with pytest.raises(RequestRefused) as refused:
            client.request(bytes(70000))
        assert refused.value.refusal is Refusal.FRAME_TOO_LONG
        with pytest.raises(ConnectionLost):
            client.request(b"hello")


def test_a_lost_server(stage, ours, certificate):
    server, worker = stage.pair(*own(certificate))
    with Client("127.0.0.1", server.port, tls=tls_context(ours.ca), timeout=PATIENCE) as client:
        assert client.request(b"hello") == b"olleh"
        server.kill()
        with pytest.raises(ConnectionLost) as lost:
            client.request(b"hello")
        assert lost.value.unanswered == (b"hello",)
    worker.kill()


def test_a_forked_process(stage, ours, certificate):
    """It neither uses nor ends the connection: a close_notify would."""
    server, _ = stage.pair(*own(certificate))
    client = Client("127.0.0.1", server.port, tls=tls_context(ours.ca), timeout=PATIENCE)
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(NotOwner):
                client.request(b"child")
            client.close()
            del client
            gc.collect()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert client.request(b"hello") == b"olleh"
    client.close()
    assert server.terminate() == 0
    server.wait_for_log("1 connections, 1 responses")


def test_a_client_within_a_time_limit(stage, ours, certificate):
    """A task that is cancelled within the handshake leaves nothing behind."""
    server, _ = stage.pair(*own(certificate))

    async def ask():
        for turns in range(20):
            connecting = asyncio.ensure_future(AsyncClient(
                "127.0.0.1", server.port, tls=tls_context(ours.ca), timeout=PATIENCE).connect())
            for _ in range(turns):
                await asyncio.sleep(0)
            connecting.cancel()
            await asyncio.wait([connecting])
        gc.collect()

    before = os.listdir("/proc/self/fd")
    asyncio.run(asyncio.wait_for(ask(), 12 * PATIENCE))
    assert os.listdir("/proc/self/fd") == before


def test_no_older_version(ours):
    assert tls_context(ours.ca).minimum_version is ssl.TLSVersion.TLSv1_3
