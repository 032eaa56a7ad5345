"""The Python client for asyncio reconnects: what is sent twice, how long it tries, and whom that concerns."""
import asyncio
import contextlib
import signal
import socket
import struct
import threading
import time

import pytest

from harness import PATIENCE, free_port, needs_cpu_worker
from test_async_python_client import given, on_a_loop
from test_python_client_owners import in_a_child
from test_python_client_pool import LONG, Breaker, FullQueue, answer_once_and_fall_silent
from wire import ERROR, RESPONSE, frame, receive_exactly, reverse

from offload_client import (AsyncClient, ConnectFailed, ConnectionLost, NotOwner, ProtocolError, Refusal,
                            RequestRefused, ResponseTimeout)


def connected(server, **options):
    return AsyncClient("127.0.0.1", getattr(server, "port", server),
                       **{"timeout": 2 * PATIENCE, "reconnect_timeout": PATIENCE, **options})


async def replaced(stage, server, port):
    """Kills the server, and returns the next one at its port. The event loop runs meanwhile."""
    def replace():
        server.kill()
        following = stage.server("-p", port)
        following.wait_until_listening()
        return following
    return await asyncio.get_running_loop().run_in_executor(None, replace)


@pytest.mark.parametrize("idempotent", [True, False])
@on_a_loop
async def test_the_server_is_killed_under_load(stage, idempotent):
    """Idempotent requests all have their responses. Of the others, only those that were sent end with an error."""
    port = free_port()
    server, _ = stage.pair("-p", port)
    right, errors, ended = [], [], False

    async def call(client, number):
        while not ended:
            request = b"request %d of task %d" % (len(right), number)
            try:
                assert await client.request(request, idempotent=idempotent) == reverse(request)
                right.append(request)
            except ConnectionLost as error:
                assert error.unanswered == (request,)
                errors.append(error)

    async def more():
        before = len(right)
        while len(right) < before + 50:
            await asyncio.sleep(0.001)

    async with connected(port) as client:
        tasks = asyncio.gather(*(call(client, number) for number in range(20)))
        for _ in range(2):
            await more()
            server = await replaced(stage, server, port)
        await more()
        ended = True
        await tasks
    assert not (idempotent and errors)
    assert not any(error.unsent for error in errors)
    assert server.terminate() == 0
    server.wait_for_log(": 1 connections, ")  # the tasks connected again together


@on_a_loop
async def test_a_request_that_was_not_sent_whole_is_sent_again(stage):
    breaker = Breaker(LONG, [1, 1])
    async with connected(breaker) as client:
        assert await client.request(LONG) == b"right"
    breaker.join()
    assert breaker.got == [frame(LONG)[:1]] * 2 + [frame(LONG)]


@on_a_loop
async def test_a_request_that_was_sent_whole_is_sent_again_only_if_it_is_idempotent(stage):
    request = b"at most once"
    breaker = Breaker(request, [len(frame(request))])
    async with connected(breaker) as client:
        with pytest.raises(ConnectionLost) as lost:
            await client.request(request)
        assert not lost.value.unsent and lost.value.unanswered == (request,)
        assert breaker.got == [frame(request)]
        assert await client.request(request) == b"right"
    breaker.join()
    breaker = Breaker(request, [len(frame(request))] * 2)
    async with connected(breaker) as client:
        assert await client.request(request, idempotent=True) == b"right"
    breaker.join()
    assert breaker.got == [frame(request)] * 3


@on_a_loop
async def test_without_a_time_it_does_not_reconnect_but_tells_what_was_sent(stage):
    for request, count, unsent in ((LONG, 1, True), (b"short", len(frame(b"short")), False)):
        breaker = Breaker(request, [count])
        async with connected(breaker, reconnect_timeout=None) as client:
            for again in range(2):
                with pytest.raises(ConnectionLost) as lost:
                    await client.request(request, idempotent=True)
                assert lost.value.unsent is (unsent or bool(again))
        async with connected(breaker) as other:
            assert await other.request(request) == b"right"
        breaker.join()


@on_a_loop
async def test_a_server_that_breaks_the_protocol_is_not_asked_again(stage):
    breaker = Breaker(b"hello", [], response=(b"HTTP/1.1 400 Bad Request\r\n\r\n",))
    async with connected(breaker) as client:
        with pytest.raises(ProtocolError):
            await client.request(b"hello", idempotent=True)
    breaker.join()


@needs_cpu_worker
@on_a_loop
async def test_a_late_response_is_given_to_no_other_request(stage):
    """Neither on its connection nor on the next one. A time-out is not repeated."""
    port = free_port()
    server, worker = stage.pair("-p", port, "--worker-timeout", "100s")
    async with connected(port) as client:
        assert await client.request(b"hello") == b"olleh"
        for kill in (False, True):
            worker.stop()
            with pytest.raises(ResponseTimeout, match="no response within 0.2 s"):
                await client.request(b"late", timeout=0.2, idempotent=True)
            following = asyncio.ensure_future(client.request(b"following", idempotent=True))
            if kill:
                server.kill()
            worker.send_signal(signal.SIGCONT)
            if kill:  # the next server listens once it has a worker
                server = await replaced(stage, server, port)
            assert await following == b"gniwollof"
    assert server.terminate() == 0
    server.wait_for_log("1 connections, 1 responses")


@on_a_loop
async def test_reconnection_has_an_end_and_a_later_call_tries_again(stage):
    port = free_port()
    server, _ = stage.pair("-p", port)
    async with connected(port, reconnect_timeout=1) as client:
        assert await client.request(b"hello") == b"olleh"
        server.kill()
        begin = time.monotonic()
        with pytest.raises(ConnectFailed) as failed:
            await client.request(b"hello", idempotent=True)
        with pytest.raises(ConnectFailed):
            await client.requests([b"hello"]).__anext__()
        client._reconnect_timeout = PATIENCE
        with pytest.raises(ConnectFailed):
            await client.request(b"hello", timeout=0.2)
        assert failed.value.unanswered == (b"hello",)
        assert isinstance(failed.value.__cause__, ConnectionRefusedError)
        assert time.monotonic() - begin < PATIENCE / 2
        stage.server("-p", port).wait_until_listening()
        assert await client.request(b"hello") == b"olleh"


@on_a_loop
async def test_the_first_attempt_is_bounded_if_the_loss_is_noticed_before_the_request(stage):
    with FullQueue() as queue:
        async with connected(queue, reconnect_timeout=0.2, connect_timeout=PATIENCE) as client:
            server = answer_once_and_fall_silent(queue)
            assert await client.request(b"hello") == b"olleh"
            await asyncio.get_running_loop().run_in_executor(None, server.join, PATIENCE)
            begin = time.monotonic()
            with pytest.raises(ConnectFailed):
                await client.request(b"hello")
            assert time.monotonic() - begin < PATIENCE / 2


@on_a_loop
async def test_closed_in_a_child_while_it_reconnects(stage):
    port = free_port()
    server, _ = stage.pair("-p", port)
    async with connected(port) as client:
        assert await client.request(b"hello") == b"olleh"
        server.kill()
        asking = asyncio.ensure_future(client.request(b"hello", idempotent=True))
        while client._dialing is None or client._dialing.done():
            await asyncio.sleep(0)
        in_a_child(lambda: asyncio.run(asyncio.wait_for(client.close(), PATIENCE / 2)))
        stage.server("-p", port).wait_until_listening()
        assert await asking == b"olleh"


class Door:
    """Accepts connections and ends them at once; `count`: how many."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.count = self._listener.getsockname()[1], 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                self._listener.accept()[0].close()
                self.count += 1

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@on_a_loop
async def test_there_are_pauses_also_between_connections_that_end_at_once(stage):
    with contextlib.closing(Door()) as door:
        async with connected(door, reconnect_timeout=1.5) as client:
            ended = await asyncio.gather(*(client.request(b"hello", idempotent=True) for _ in range(3)),
                                         return_exceptions=True)
    assert {type(error) for error in ended} <= {ConnectionLost, ConnectFailed}
    assert door.count <= 11  # pauses of 0, 10, 20, 40, 80, 160, 320, 500, 500 ms


@on_a_loop
async def test_a_connection_that_the_server_ended_meanwhile_is_replaced(stage):
    """The event loop has not seen its end yet, so that a request would be sent on it."""
    server, _ = stage.pair("--idle-timeout", "300ms")
    async with connected(server) as client:
        assert await client.request(b"hello") == b"olleh"
        server.wait_for_log("is disconnected: the client sent no request")
        assert await client.request(b"hello") == b"olleh"


@on_a_loop
async def test_a_server_that_is_about_to_close_gets_no_more_requests(stage):
    refusal = frame(struct.pack(">I", Refusal.FRAME_TOO_LONG) + b"too long", ERROR)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(PATIENCE)
    more = []

    def serve():
        with listener.accept()[0] as first:
            receive_exactly(first, len(frame(b"long")))
            first.sendall(refusal)
            first.settimeout(0.2)
            with contextlib.suppress(socket.timeout):
                more.append(first.recv(1))
        with listener.accept()[0] as second:
            second.sendall(frame(reverse(receive_exactly(second, len(frame(b"hello")))[12:]), RESPONSE))
            second.settimeout(PATIENCE)
            second.recv(1)

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    with listener:
        async with connected(listener.getsockname()[1]) as client:
            with pytest.raises(RequestRefused):
                await client.request(b"long")
            assert await client.request(b"hello") == b"olleh"
        server.join(PATIENCE)
    assert not more


@on_a_loop
async def test_an_iteration_is_not_repeated_but_the_next_one_reconnects(stage):
    port = free_port()
    server, worker = stage.pair("-p", port)
    async with connected(port) as client:
        for make in (iter, given):
            responses = client.requests(make([b"one", b"two", b"three"]), in_flight=2)
            assert await responses.__anext__() == b"eno"
            server = await replaced(stage, server, port)
            with pytest.raises(ConnectionLost) as lost:
                async for _ in responses:
                    pass
            # The third one may not have been taken from an asynchronous iterable.
            assert lost.value.unanswered in ((b"two", b"three"), (b"two",), (b"three",))
            assert [each async for each in client.requests(make([b"one", b"two"]))] == [b"eno", b"owt"]
    assert worker.alive


@on_a_loop
async def test_cancelled_and_closed_while_it_reconnects(stage):
    server, worker = stage.pair()
    async with connected(server) as client:
        server.kill()
        asked = [asyncio.ensure_future(client.request(b"hello", idempotent=True)) for _ in range(10)]
        while client._failure is None:
            await asyncio.sleep(0.001)
        asked[0].cancel()
        await asyncio.wait({asked[0]})
        assert asked[0].cancelled() and not any(each.done() for each in asked[1:])
    assert client._dialing.done()
    ended = await asyncio.gather(*asked[1:], return_exceptions=True)
    assert {type(error) for error in ended} <= {ConnectionLost, ConnectFailed} and worker.alive
    with pytest.raises(ConnectionLost):
        await client.request(b"hello")


@on_a_loop
async def test_others_do_not_reconnect(stage):
    """Another event loop and a forked process are refused as before."""
    server, _ = stage.pair()
    async with connected(server) as client:
        server.kill()

        async def refused():
            with pytest.raises(NotOwner):
                await client.request(b"hello", idempotent=True)

        await asyncio.get_running_loop().run_in_executor(None, lambda: asyncio.run(refused()))
        # In a thread without a running loop, as that of this one would be the child's, too.
        await asyncio.get_running_loop().run_in_executor(None, in_a_child, lambda: asyncio.run(refused()))
