"""The owner of a Python client is one process, one thread at a time, one event loop. Calls of others are refused, and
the connection is unchanged."""
import asyncio
import concurrent.futures
import contextlib
import gc
import os
import signal
import socket
import threading

import pytest

from harness import PATIENCE, wait_until
from wire import RESPONSE, frame, payloads, receive_exactly, reverse

from offload_client import AsyncClient, Client, ConnectionLost, NotOwner


def in_a_child(action):
    """Runs `action` in a forked process, which must return from it."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except BaseException as error:  # of any kind: the parent's tests must not continue here
            print(repr(error), flush=True)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def connect(port, **options):
    return Client("127.0.0.1", port, **{"timeout": PATIENCE, **options})


class SlowServer:
    """Answers its one client when the test calls answer()."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()
        self.connection.close()

    def accept(self):
        self._listener.settimeout(PATIENCE)
        self.connection, _ = self._listener.accept()
        self.connection.settimeout(PATIENCE)

    def take(self, request):
        assert receive_exactly(self.connection, len(frame(request))) == frame(request)

    def answer(self, response):
        self.connection.sendall(frame(response, RESPONSE))


@contextlib.contextmanager
def in_a_request(server, client):
    """Another thread waits for the response to b"hello", which comes at the end of the context."""
    got = []
    caller = threading.Thread(target=lambda: got.append(client.request(b"hello")), daemon=True)
    caller.start()
    server.take(b"hello")
    yield
    server.answer(b"olleh")
    caller.join(PATIENCE)
    assert got == [b"olleh"]


def test_a_forked_process(stage):
    server, _ = stage.pair()
    client = connect(server.port)
    responses = client.requests([b"one", b"two", b"three"], in_flight=2)
    assert next(responses) == b"eno"

    def child():
        nonlocal client, responses
        with pytest.raises(NotOwner, match=f"process {os.getppid()}.* fork") as refused:
            client.request(b"child")
        assert refused.value.unanswered == (b"child",)
        with pytest.raises(NotOwner) as refused:
            next(responses)
        assert refused.value.unanswered[0] == b"two"
        with client:
            pass
        with pytest.raises(NotOwner):
            client.request(b"child")
        del client, responses
        gc.collect()

    in_a_child(child)
    assert list(responses) == [b"owt", b"eerht"]
    assert client.request(b"parent") == b"tnerap"
    client.close()
    assert server.terminate() == 0
    server.wait_for_log("1 connections, 4 responses")


def test_a_child_that_exits_within_a_call():
    """A signal handler forks: the exception that ends the child does not end the connection."""
    with SlowServer() as server, connect(server.port) as client:
        server.accept()
        children = []

        def fork(*_):
            children.append(os.fork())
            if children[-1] == 0:
                raise SystemExit

        before = signal.signal(signal.SIGUSR1, fork)
        parent = os.getpid()

        def serve():
            server.take(b"hello")
            os.kill(parent, signal.SIGUSR1)
            wait_until(lambda: children, "the child")
            os.waitpid(children[0], 0)
            server.answer(b"olleh")

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        try:
            assert client.request(b"hello") == b"olleh"
        except SystemExit:
            os._exit(0)
        finally:
            signal.signal(signal.SIGUSR1, before)
        serving.join(PATIENCE)


def test_close_ends_the_connection_although_a_child_has_a_copy():
    with SlowServer() as server:
        client = connect(server.port)
        server.accept()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(write)
            os.read(read, 1)  # until the parent has seen the end, or has ended
            os._exit(0)
        client.close()
        assert server.connection.recv(1) == b""
        os.close(read)
        os.close(write)
        os.waitpid(child, 0)


def test_another_thread(stage):
    with SlowServer() as server, connect(server.port) as client:
        server.accept()
        responses = client.requests([b"next"])
        with in_a_request(server, client):
            for use in (lambda: client.request(b"other"), lambda: next(responses), client.close):
                with pytest.raises(NotOwner, match="another thread"):
                    use()
        answering = threading.Thread(target=lambda: (server.take(b"again"), server.answer(b"niaga")))
        answering.start()
        assert client.request(b"again") == b"niaga"
        answering.join()


def in_threads(count, caller):
    """Returns the results of caller(number) in each of the threads."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(caller, range(count)))


def test_threads_that_take_turns(stage):
    server, _ = stage.pair()
    turn = threading.Lock()
    with connect(server.port) as client:
        def caller(number):
            for request in payloads(50, [1, 20, 200], seed=number):
                with turn:
                    assert client.request(request) == reverse(request)
        in_threads(8, caller)


def test_threads_that_do_not(stage):
    """Each call gets its own response or is refused."""
    server, _ = stage.pair()
    with connect(server.port) as client:
        def caller(number):
            answered = 0
            for request in payloads(200, [1, 20, 200], seed=number):
                with contextlib.suppress(NotOwner):
                    assert client.request(request) == reverse(request)
                    answered += 1
            return answered
        assert sum(in_threads(4, caller)) > 0
        assert client.request(b"hello") == b"olleh"


@pytest.mark.parametrize("use", [lambda client: client.request(b"inner"), Client.close])
def test_a_signal_handler_within_a_call(use):
    """It ends the connection for both."""
    with SlowServer() as server, connect(server.port) as client:
        server.accept()
        inner = []

        def handler(*_):
            try:
                inner.append(use(client))
            except ConnectionLost as error:
                inner.append(error)

        before = signal.signal(signal.SIGUSR1, handler)
        serving = threading.Thread(daemon=True, target=lambda: (
            server.take(b"hello"), signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)))
        serving.start()
        try:
            with pytest.raises(ConnectionLost, match="interrupted"):
                client.request(b"hello")
        finally:
            signal.signal(signal.SIGUSR1, before)
        serving.join(PATIENCE)
        assert len(inner) == 1
        assert use is Client.close or isinstance(inner[0], ConnectionLost)
        assert server.connection.recv(1) == b""


def test_another_event_loop(stage):
    server, _ = stage.pair()
    client = AsyncClient("127.0.0.1", server.port, timeout=PATIENCE)
    first = asyncio.new_event_loop()
    first.run_until_complete(client.connect())

    async def elsewhere():
        with pytest.raises(NotOwner, match="another event loop") as refused:
            await client.request(b"hello")
        assert refused.value.unanswered == (b"hello",)
        with pytest.raises(NotOwner) as refused:
            await client.requests([b"one", b"two"]).__anext__()
        assert refused.value.unanswered == (b"one",)

        async def one():
            yield b"one"
        with pytest.raises(NotOwner):
            await client.requests(one()).__anext__()

    async def closing_elsewhere():
        with pytest.raises(NotOwner):
            await client.close()

    asyncio.run(elsewhere())
    asyncio.run(closing_elsewhere())
    assert first.run_until_complete(client.request(b"hello")) == b"olleh"
    first.close()
    asyncio.run(elsewhere())
    asyncio.run(client.close())
    assert server.terminate() == 0
    server.wait_for_log("1 connections, 1 responses")


def test_a_forked_process_with_an_event_loop(stage):
    server, _ = stage.pair()

    async def parent():
        async with AsyncClient("127.0.0.1", server.port, timeout=PATIENCE) as client:
            async def use():
                with pytest.raises(NotOwner, match="after a fork") as refused:
                    await client.request(b"child")
                assert refused.value.unanswered == (b"child",)
                await client.close()

            waiting = asyncio.ensure_future(client.request(b"waiting"))
            await asyncio.sleep(0)
            in_a_child(lambda: asyncio.run(use()))
            assert await waiting == b"gnitiaw"
            assert await client.request(b"hello") == b"olleh"

    asyncio.run(asyncio.wait_for(parent(), 12 * PATIENCE))
    assert server.terminate() == 0
    server.wait_for_log("1 connections, 2 responses")
