"""Exceptions at any point of the Python client's code: Ctrl-C, an alarm, no memory. No request ever gets
the response of another one, and a client that cannot continue reports it."""
import asyncio
import contextlib
import gc
import itertools
import os

import pytest

from harness import LONG, PATIENCE
from interruption import Interruption
from wire import reverse

from offload_client import AsyncClient, Client, ConnectionLost, OffloadError, Pool

EARLIER = [b"earlier %d" % number for number in range(3)]
REQUESTS = [b"request %d" % number for number in range(3)]


class Alarm(Exception):
    """The exception that a signal handler raises."""


class OnALoop:
    """An AsyncClient with the functions of Client. Each runs the loop, which continues after exceptions."""

    def __init__(self, port):
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda *_: None)
        self.client = AsyncClient("127.0.0.1", port, timeout=PATIENCE)
        self.run(self.client.connect())

    def run(self, coroutine):
        task = asyncio.ensure_future(coroutine, loop=self.loop)
        with contextlib.suppress(KeyboardInterrupt):
            return self.loop.run_until_complete(task)
        # asyncio.run() does the same with a task whose loop was interrupted. The task may have ended before.
        task.cancel()
        self.take_stop()
        self.loop.run_until_complete(asyncio.wait([task]))
        try:
            return task.result()
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    def take_stop(self):
        """Runs the loop for a turn. A task that ended in the turn that was interrupted stops the loop in the next."""
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def request(self, payload):
        return self.run(self.client.request(payload))

    def requests(self, payloads, in_flight):
        steps = self.client.requests(payloads, in_flight)

        class Responses:
            def __iter__(self):
                return self

            def __next__(responses):
                try:
                    return self.run(steps.__anext__())
                except StopAsyncIteration:
                    raise StopIteration from None
        return Responses()

    def close(self):
        self.run(self.client.close())

    def end(self):
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.run(self.loop.shutdown_asyncgens())
        self.loop.close()


class OnThisThread(Client):
    def __init__(self, port):
        super().__init__("127.0.0.1", port, timeout=PATIENCE)

    def end(self):
        pass


class Used:
    """A client with an iteration in progress, and the calls that an exception may interrupt."""

    def __init__(self, client):
        self.client = client
        self._earlier = client.requests(iter(EARLIER), in_flight=3)
        assert next(self._earlier) == reverse(EARLIER[0])
        self._got = []
        self._responses = None
        self._tasks = []

    def request(self):
        self._got.append(self.client.request(REQUESTS[0]))

    def requests(self):
        self._responses = self.client.requests(iter(REQUESTS), in_flight=2)
        for response in self._responses:
            self._got.append(response)

    def tasks(self):
        self._tasks = [self.client.loop.create_task(self.client.client.request(request))
                       for request in REQUESTS]
        try:
            self.client.loop.run_until_complete(asyncio.wait(self._tasks))
        except KeyboardInterrupt:
            self.client.take_stop()
            raise

    def close(self):
        self.client.close()

    def expect_no_wrong_response(self, kind):
        """Checks the client after the interruption."""
        assert self._got == [*map(reverse, REQUESTS[:len(self._got)])]
        for request in (b"after", b"the end"):
            try:
                assert self.client.request(request) == reverse(request)
            except OffloadError as error:
                assert error.unanswered == (request,)
        expect_the_rest(self._earlier, EARLIER[1:])
        if self._responses is not None:
            expect_the_rest(self._responses, REQUESTS[len(self._got):])
        for request, task in zip(REQUESTS, self._tasks):
            self.client.loop.run_until_complete(asyncio.wait([task]))
            with contextlib.suppress(OffloadError, kind):
                assert task.result() == reverse(request)
        self.client.close()
        with pytest.raises(ConnectionLost):
            self.client.request(b"closed")
        self.client.end()


def expect_the_rest(responses, requests):
    """Expects all responses to `requests`, or an error: an end would mean that there are no more."""
    with contextlib.suppress(OffloadError):
        assert [*responses] == [*map(reverse, requests)]


def descriptors():
    gc.collect()
    return os.listdir("/proc/self/fd")


@pytest.fixture(name="port", scope="module")
def fixture_port(shared_stage):
    server, _ = shared_stage.pair("--threads", 1)
    server.wait_until_served()
    return server.port


def interrupted_everywhere(kind, opcodes, prepare):
    """Calls the function that `prepare` returns until no exception of this kind interrupts it any more, one point
    later each time. An iterator: it yields after each call."""
    for number in itertools.count():
        action = prepare()
        with Interruption(number, kind, opcodes) as interruption:
            with contextlib.suppress(kind, OffloadError):
                action()
        yield
        if not interruption.raised:
            assert number > 20
            return


kinds = pytest.mark.parametrize("kind", [KeyboardInterrupt, Alarm])


@kinds
@pytest.mark.parametrize("client, action", [
    *itertools.product([OnThisThread, OnALoop], ["request", "requests", "close"]), (OnALoop, "tasks")])
def test_no_wrong_response(port, client, action, kind):
    opcodes = LONG or action in ("request", "close") and kind is KeyboardInterrupt
    before = descriptors()
    used = None

    def prepare():
        nonlocal used
        used = Used(client(port))
        return getattr(used, action)

    for _ in interrupted_everywhere(kind, opcodes, prepare):
        used.expect_no_wrong_response(kind)
    used = None
    assert descriptors() == before


def test_a_turn_that_is_interrupted_as_its_task_ends(port):
    client = OnALoop(port)

    def interrupt():
        raise KeyboardInterrupt

    async def ends():
        client.loop.call_soon(interrupt)
        return "result"

    assert client.run(ends()) == "result"
    client.close()
    client.end()


@kinds
def test_a_pool_keeps_all_its_places(port, kind):
    """Also those of calls that made a connection, or found one that was used before."""
    before = descriptors()
    for first in (False, True):
        pool = None

        def prepare(first=first):
            nonlocal pool
            pool = Pool(2, "127.0.0.1", port, timeout=PATIENCE)
            if first:
                assert pool.request(b"first") == b"tsrif"
            return lambda: pool.request(b"interrupted")

        for _ in interrupted_everywhere(kind, True, prepare):
            with pool.client() as one, pool.client() as other:
                assert (one.request(b"one"), other.request(b"two")) == (b"eno", b"owt")
            pool.close()
    pool = None
    assert descriptors() == before


@kinds
def test_nothing_is_left_of_an_interrupted_connect(port, kind):
    before = descriptors()
    for _ in interrupted_everywhere(kind, True, lambda: lambda: OnThisThread(port)):
        pass
    assert descriptors() == before
