"""The Python client for asyncio, with the real server and worker."""
import asyncio
import functools
import gc
import itertools
import signal

import pytest

from harness import PATIENCE, free_port, needs_cpu_worker, scaled
from wire import payloads, reverse

from offload_client import (AsyncClient, ConnectFailed, ConnectionLost, OffloadError, Refusal, RequestRefused,
                            ResponseTimeout)


def on_a_loop(test):
    """Runs a coroutine as a test, with a time limit. The test fails if asyncio would log anything at its end: an
    exception that was never retrieved, or a pending task."""
    @functools.wraps(test)
    def run(stage, **parameters):
        complaints = []

        async def watched():
            asyncio.get_running_loop().set_exception_handler(
                lambda _, context: complaints.append(context))
            await asyncio.wait_for(test(stage, **parameters), 12 * PATIENCE)
            gc.collect()
            await asyncio.sleep(0)
        asyncio.run(watched())
        assert not complaints
    return run


def connected(server, **options):
    return AsyncClient("127.0.0.1", server.port, **{"timeout": PATIENCE, **options})


@on_a_loop
async def test_many_callers(stage):
    server, _ = stage.pair("--threads", 2, "--max-message-length", 5000)

    async def caller(client, number):
        for request in payloads(scaled(100), [0, 1, 12, 372, 5000], seed=number):
            assert await client.request(request) == reverse(request)

    async with connected(server) as client:
        await asyncio.gather(*(caller(client, number) for number in range(100)))


@on_a_loop
async def test_pipelined(stage):
    server, _ = stage.pair()
    requests = payloads(scaled(10_000), [0, 1, 20, 256])
    async with connected(server) as client:
        for in_flight in (1, 64, 20_000):
            got = [response async for response in client.requests(iter(requests), in_flight)]
            assert got == [*map(reverse, requests)]
        async for response in client.requests(requests, in_flight=50):
            assert response == reverse(requests[0])
            break
        assert await client.request(b"hello") == b"olleh"


@on_a_loop
async def test_back_pressure(stage):
    """The client requests 64 MiB at once. Data that the sockets do not take waits with the callers."""
    server, _ = stage.pair("--max-message-length", "1m", "--max-concurrent-messages", 16, "--threads", 1)
    request = payloads(1, 1 << 20)[0]
    async with connected(server, timeout=6 * PATIENCE) as client:
        asked = [asyncio.ensure_future(client.request(request)) for _ in range(64)]
        await asyncio.sleep(0)
        assert len(client._connection.outgoing) < 4 << 20
        assert all(response == reverse(request) for response in await asyncio.gather(*asked))


@needs_cpu_worker
@on_a_loop
async def test_cancelled_callers_disturb_nobody(stage):
    server, worker = stage.pair("--worker-timeout", "100s")
    async with connected(server) as client:
        worker.stop()
        requests = payloads(300, 100)
        asked = [asyncio.ensure_future(client.request(request)) for request in requests]
        await asyncio.sleep(0.1)
        cancelled = asked[::3]
        for each in cancelled:
            assert each.cancel()
        await asyncio.wait(cancelled)
        assert all(each.cancelled() for each in cancelled)
        worker.send_signal(signal.SIGCONT)
        for number, (request, each) in enumerate(zip(requests, asked)):
            if number % 3:
                assert await each == reverse(request)
        assert await client.request(b"hello") == b"olleh"


@needs_cpu_worker
@on_a_loop
async def test_cancelled_before_it_was_sent(stage):
    server, worker = stage.pair("--worker-timeout", "100s", "--max-message-length", "1m",
                                "--max-concurrent-messages", 4)
    async with connected(server, timeout=6 * PATIENCE) as client:
        worker.stop()
        request = payloads(1, 1 << 20)[0]
        asked = [asyncio.ensure_future(client.request(request)) for _ in range(64)]
        last = asyncio.ensure_future(client.request(b"last"))
        await asyncio.sleep(0.1)
        sent = len(asked) + 1 - len(client._connection._unsent)
        assert sent < len(asked), "the server takes 64 MiB without a worker"
        for each in asked[sent:]:
            each.cancel()
        worker.send_signal(signal.SIGCONT)
        assert await last == b"tsal"
        assert await asyncio.gather(*asked[:sent]) == [reverse(request)] * sent
    assert server.terminate() == 0
    server.wait_for_log(f"1 connections, {sent + 1} responses")


@needs_cpu_worker
@on_a_loop
async def test_time_outs(stage):
    server, worker = stage.pair("--worker-timeout", "100s")
    async with connected(server, timeout=0.2) as client:
        worker.stop()
        late = await asyncio.gather(client.request(b"one"), client.request(b"two"),
                                    return_exceptions=True)
        assert [type(each) for each in late] == [ResponseTimeout] * 2
        assert [each.unanswered for each in late] == [(b"one",), (b"two",)]
        with pytest.raises(ResponseTimeout) as error:
            async for _ in client.requests([b"three", b"four"]):
                pass
        assert error.value.unanswered == (b"three", b"four")
        with pytest.raises(ResponseTimeout, match="within 0.05 s"):
            await client.request(b"late", timeout=0.05)
        worker.send_signal(signal.SIGCONT)
        assert await client.request(b"hello", timeout=PATIENCE) == b"olleh"
        client.timeout = PATIENCE
        assert await client.request(b"hello") == b"olleh"


@on_a_loop
async def test_too_long_a_message(stage):
    server, _ = stage.pair("--max-message-length", 256)
    async with connected(server) as client:
        got = await asyncio.gather(*map(client.request, (b"good", bytes(257), b"good")),
                                   return_exceptions=True)
        assert got[0] == b"doog"
        assert isinstance(got[1], RequestRefused) and got[1].refusal is Refusal.FRAME_TOO_LONG
        assert isinstance(got[2], ConnectionLost) and got[2].refusal is Refusal.FRAME_TOO_LONG
        with pytest.raises(ConnectionLost):
            await client.request(b"more")


@on_a_loop
async def test_no_worker(stage):
    server, worker = stage.pair("--worker-timeout", "1s")
    async with connected(server) as client:
        worker.kill()
        got = await asyncio.gather(*map(client.request, (b"one", b"two")), return_exceptions=True)
        assert [each.refusal for each in got] == [Refusal.WORKER_UNAVAILABLE] * 2
        stage.worker()
        server.wait_until_served(2)
        assert await client.request(b"hello") == b"olleh"


@needs_cpu_worker
@on_a_loop
async def test_the_server_is_killed_with_requests_in_flight(stage):
    server, worker = stage.pair("--worker-timeout", "100s")
    requests = [b"%d" % number for number in range(100)]
    async with connected(server) as client:
        worker.stop()
        asked = [asyncio.ensure_future(client.request(request)) for request in requests]
        pipeline = client.requests(iter(requests), in_flight=20)
        piped = asyncio.ensure_future(pipeline.__anext__())
        await asyncio.sleep(0.1)
        server.kill()
        got = await asyncio.gather(*asked, return_exceptions=True)
        assert [each.unanswered for each in got] == [(request,) for request in requests]
        assert {type(each) for each in got} == {ConnectionLost}
        with pytest.raises(ConnectionLost) as lost:
            await piped
        assert list(lost.value.unanswered) == requests[:20]
        with pytest.raises(ConnectionLost):
            await client.request(b"more")
    worker.kill()


@on_a_loop
async def test_connecting_and_closing(stage):
    server, _ = stage.pair()
    with pytest.raises(ConnectFailed, match="onnect"):
        await AsyncClient("127.0.0.1", free_port()).connect()
    client = connected(server)
    with pytest.raises(ConnectionLost, match="has not connected") as lost:
        await client.request(b"hello")
    assert lost.value.unanswered == (b"hello",)
    await client.close()
    await client.connect()
    with pytest.raises(RuntimeError):
        await client.connect()
    for wrong, error in (("hello", TypeError), (bytes((16 << 20) + 1), ValueError)):
        with pytest.raises(error):
            await client.request(wrong)
    with pytest.raises(ValueError):
        await client.requests([b""], in_flight=0).__anext__()
    asked = asyncio.ensure_future(client.request(b"hello"))
    await asyncio.sleep(0)
    await client.close()
    await client.close()
    with pytest.raises(ConnectionLost, match="closed"):
        await asked


@on_a_loop
async def test_several_clients_of_a_loop(stage):
    server, _ = stage.pair("--threads", 2)
    clients = [connected(server) for _ in range(20)]
    await asyncio.gather(*(client.connect() for client in clients))
    requests = payloads(200, 50)
    got = await asyncio.gather(*(client.request(request) for client, request in
                                 zip(itertools.cycle(clients), requests)))
    assert got == [*map(reverse, requests)]
    await asyncio.gather(*(client.close() for client in clients))


async def given(requests, ended=None):
    """An asynchronous iterable. `ended` gets whether its generator was ended."""
    try:
        for request in requests:
            await asyncio.sleep(0)
            yield request
    finally:
        if ended is not None:
            ended.append(True)


@on_a_loop
async def test_requests_of_an_asynchronous_iterable(stage):
    server, _ = stage.pair()
    requests = payloads(scaled(2000), [0, 1, 20, 256])
    async with connected(server) as client:
        for in_flight in (1, 64, 20_000):
            got = [response async for response in client.requests(given(requests), in_flight)]
            assert got == [*map(reverse, requests)]
        assert [response async for response in client.requests(given([]))] == []
        ended = []
        responses = client.requests(given(requests, ended), in_flight=5)
        async for response in responses:
            assert response == reverse(requests[0])
            break
        await responses.aclose()
        while not ended:
            await asyncio.sleep(0)
        assert await client.request(b"hello") == b"olleh"


@on_a_loop
async def test_responses_come_while_the_next_request_does_not(stage):
    """Each request is made of the response before it; no more are taken than may be in flight."""
    server, _ = stage.pair()
    came = asyncio.Queue()
    taken = 0

    async def next_ones():
        nonlocal taken
        while (request := await came.get()) is not None:
            taken += 1
            yield request

    async with connected(server) as client:
        came.put_nowait(b"0")
        number = 0
        async for response in client.requests(next_ones(), in_flight=8):
            assert response == reverse(b"%d" % number)
            number += 1
            came.put_nowait(b"%d" % number if number < 50 else None)
        assert number == 50
        for number in range(20):
            came.put_nowait(b"%d" % number)
        taken = 0
        responses = client.requests(next_ones(), in_flight=3)
        assert await responses.__anext__() == b"0"
        for _ in range(100):
            await asyncio.sleep(0)
            assert taken <= 4
        await responses.aclose()


@on_a_loop
async def test_errors_of_an_asynchronous_iterable(stage):
    """Its own exceptions come behind the responses to its requests. A lost connection names all requests that were taken."""
    server, worker = stage.pair("--worker-timeout", "100s")

    async def fails():
        yield b"one"
        yield b"two"
        raise KeyError("the iterable's")

    async with connected(server) as client:
        got = []
        responses = client.requests(fails())
        with pytest.raises(KeyError, match="iterable's"):
            async for response in responses:
                got.append(response)
        assert got == [b"eno", b"owt"]
        with pytest.raises(OffloadError, match="an exception has ended this iteration"):
            await responses.__anext__()
        for wrong in (b"too long" * (4 << 20), "text"):
            with pytest.raises((ValueError, TypeError)):
                async for response in client.requests(given([b"one", wrong])):
                    assert response == b"eno"
        taken = []

        async def endless():
            while True:
                await asyncio.sleep(0)
                taken.append(b"%d" % len(taken))
                yield taken[-1]

        responses = client.requests(endless(), in_flight=10)
        assert await responses.__anext__() == b"0"
        server.kill()
        got = 1
        with pytest.raises(ConnectionLost) as lost:
            async for _ in responses:
                got += 1
        assert list(lost.value.unanswered) == taken[got:] and lost.value.unanswered
    worker.kill()
