"""The Python client's pool: its bound, threads, losses, what is sent twice, and processes."""
import signal
import socket
import struct
import threading
import time

import pytest

from harness import PATIENCE, free_port, needs_cpu_worker, scaled, wait_until
from test_python_client_owners import SlowServer, in_a_child
from wire import BadServer, ERROR, RESPONSE, frame, payloads, receive_exactly, reverse

from offload_client import (Client, ConnectFailed, ConnectionLost, NotOwner, Pool, ProtocolError, Refusal,
                            RequestRefused, ResponseTimeout)


def pool_of(size, server, **options):
    return Pool(size, "127.0.0.1", getattr(server, "port", server), **{"timeout": PATIENCE, **options})


class Callers:
    """Threads that send requests by a pool until they are told to end, or a number of them."""

    def __init__(self, pool, threads, requests=None, **options):
        self._end = threading.Event()
        self.right, self.errors, self.failures = 0, [], []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._call, args=(pool, number, requests, options), daemon=True)
                         for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def _call(self, pool, number, requests, options):
        count = 0
        while not self._end.is_set() and count != requests:
            request = b"request %d of thread %d" % (count, number)
            count += 1
            try:
                response = pool.request(request, **options)
                with self._lock:
                    self.right += response == reverse(request)
                    if response != reverse(request):
                        self.failures.append((request, response))
            except (ConnectFailed, ConnectionLost, ResponseTimeout, RequestRefused) as error:
                if error.unanswered != (request,):
                    self.failures.append(error)
                self.errors.append(error)
            except BaseException as error:  # of any kind: it belongs to the test
                self.failures.append(error)
                return

    def wait_for_more(self, count=50):
        before = self.right
        wait_until(lambda: self.right >= before + count or self.failures, "more responses")

    def end(self):
        self._end.set()
        self.join()

    def join(self):
        for thread in self._threads:
            thread.join(4 * PATIENCE)
        assert not any(thread.is_alive() for thread in self._threads)
        assert not self.failures


def test_threads_share_few_connections(stage):
    server, _ = stage.pair()
    with pool_of(3, server) as pool:
        callers = Callers(pool, 16, scaled(100, 10))
        callers.join()
        assert callers.right == 16 * scaled(100, 10) and not callers.errors
    assert server.terminate() == 0
    assert 1 <= int(server.wait_for_log(r"(\d+) connections, \d+ responses")[1]) <= 3


def test_a_connection_is_made_when_none_is_free(stage):
    server, _ = stage.pair()
    with pool_of(8, server) as pool:
        for request in payloads(20, 64):
            assert pool.request(request) == reverse(request)
        with pool.client() as one, pool.client() as other:
            assert one is not other
            assert list(one.requests([b"one", b"two"])) == [b"eno", b"owt"]
        assert pool.request(b"hello") == b"olleh"
    assert server.terminate() == 0
    server.wait_for_log("2 connections, 23 responses")


def test_by_a_url(stage):
    server, _ = stage.pair()
    with Pool.from_url(1, f"offload://127.0.0.1:{server.port}", timeout=PATIENCE) as pool:
        assert pool.request(bytearray(b"hello")) == b"olleh"
    with pytest.raises(ValueError, match="size"):
        Pool(0, "127.0.0.1")


def test_the_bound_holds_and_waits_have_an_end(stage):
    server, _ = stage.pair()
    with pool_of(1, server) as pool:
        with pool.client() as client:
            with pytest.raises(ResponseTimeout, match="no connection of the pool was free within 0.05 s") as late:
                pool.request(b"hello", timeout=0.05)
            assert late.value.unanswered == (b"hello",)
            waiting = Callers(pool, 1, 1)
            assert client.request(b"hello") == b"olleh"
        waiting.join()
        assert waiting.right == 1
    assert server.terminate() == 0
    server.wait_for_log("1 connections, 2 responses")


def test_after_close(stage):
    server, _ = stage.pair()
    pool = pool_of(1, server, reconnect_timeout=PATIENCE)
    with pool.client() as client:
        waiting = Callers(pool, 1, 1, idempotent=True)
        pool.close()
        assert client.request(b"hello") == b"olleh"
    waiting.join()
    assert [str(error) for error in waiting.errors] == ["this pool was closed"]
    with pytest.raises(ConnectionLost, match="closed") as lost:
        pool.request(b"hello")
    assert lost.value.unanswered == (b"hello",)
    assert server.terminate() == 0
    server.wait_for_log("1 connections, 1 responses")


def test_refusals_keep_a_connection(stage):
    server, worker = stage.pair("--worker-timeout", "100ms", "--max-message-length", 100)
    with pool_of(1, server) as pool:
        assert pool.request(b"hello") == b"olleh"
        with pytest.raises(RequestRefused) as refused:
            pool.request(bytes(101))
        assert refused.value.refusal is Refusal.FRAME_TOO_LONG
        assert pool.request(b"hello") == b"olleh"  # on the second connection
        worker.kill()
        for _ in range(3):
            with pytest.raises(RequestRefused) as refused:
                pool.request(b"hello")
            assert refused.value.refusal is Refusal.WORKER_UNAVAILABLE
    assert server.terminate() == 0
    server.wait_for_log("2 connections, 2 responses")


def test_a_connection_that_the_server_is_about_to_close_is_not_kept():
    """After some errors the server closes, which the client may see too late for the next request."""
    refusal = frame(struct.pack(">I", Refusal.FRAME_TOO_LONG) + b"too long", ERROR)
    with BadServer(refusal) as server, pool_of(1, server) as pool:
        with pytest.raises(RequestRefused):
            pool.request(b"hello")
        wait_until(lambda: server.client_closed, "the client closes the connection")


def test_a_connection_that_the_server_ended_meanwhile_is_replaced(stage):
    """Without a second attempt: the request is sent on another connection from the start."""
    server, _ = stage.pair("--idle-timeout", "300ms")
    with pool_of(2, server) as pool:
        assert pool.request(b"hello") == b"olleh"
        server.wait_for_log("is disconnected: the client sent no request")
        assert pool.request(b"hello") == b"olleh"


def test_without_reconnection_each_loss_is_an_error_once(stage):
    port = free_port()
    server, worker = stage.pair("-p", port)
    with pool_of(2, port) as pool:
        assert pool.request(b"hello") == b"olleh"
        server.kill()
        with pytest.raises((ConnectionLost, ConnectFailed)):
            pool.request(b"hello")
        with pytest.raises(ConnectFailed) as failed:
            pool.request(b"hello", idempotent=True)
        assert failed.value.unanswered == (b"hello",)
        server = stage.server("-p", port)
        server.wait_until_listening()
        assert pool.request(b"hello") == b"olleh"
    assert worker.alive


@pytest.mark.parametrize("idempotent", [True, False])
def test_the_server_is_killed_under_load(stage, idempotent):
    """Idempotent requests all have their responses. Of the others, only those that were sent end with an error."""
    port = free_port()
    server, _ = stage.pair("-p", port)
    with pool_of(4, port, reconnect_timeout=2 * PATIENCE, timeout=4 * PATIENCE) as pool:
        callers = Callers(pool, 8, idempotent=idempotent)
        for _ in range(2):
            callers.wait_for_more()
            server.kill()
            server = stage.server("-p", port)
            server.wait_until_listening()
        callers.wait_for_more()
        callers.end()
    assert not (idempotent and callers.errors)
    assert all(isinstance(error, ConnectionLost) and not error.unsent for error in callers.errors)


def test_a_worker_is_killed_under_load(stage):
    """The server sends the requests to the next worker: no caller sees it."""
    server, worker = stage.pair()
    with pool_of(4, server) as pool:
        callers = Callers(pool, 8)
        for count in (2, 3):
            callers.wait_for_more()
            worker.kill()
            worker = stage.worker()
            server.wait_until_served(count)
        callers.wait_for_more()
        callers.end()
        assert not callers.errors


@needs_cpu_worker
def test_a_call_does_not_wait_behind_one_that_timed_out(stage):
    server, worker = stage.pair("--worker-timeout", "100s")
    with pool_of(2, server) as pool:
        assert pool.request(b"hello") == b"olleh"
        worker.stop()
        for _ in range(3):
            with pytest.raises(ResponseTimeout, match="no response within 0.2 s") as late:
                pool.request(b"late", timeout=0.2)
            assert late.value.unanswered == (b"late",)
        worker.send_signal(signal.SIGCONT)
        assert pool.request(b"hello") == b"olleh"
    assert server.terminate() == 0
    server.wait_for_log(r"4 connections, \d+ responses")


class Breaker:
    """A server that ends a number of connections with a reset once it has `count` bytes, and answers on the next
    one. `got`: what came on each."""

    def __init__(self, request, counts, response=b"right"):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self.port = self._listener.getsockname()[1]
        self.got = []
        self._thread = threading.Thread(target=self._serve, args=(request, counts, response), daemon=True)
        self._thread.start()

    def _serve(self, request, counts, response):
        with self._listener:
            for count in [*counts, None]:
                connection, _ = self._listener.accept()
                connection.settimeout(PATIENCE)
                with connection:
                    whole = frame(request)
                    self.got.append(receive_exactly(connection, len(whole) if count is None else count))
                    if count is None:
                        connection.sendall(frame(response, RESPONSE) if isinstance(response, bytes) else response[0])
                        connection.recv(1)
                    else:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def join(self):
        self._thread.join(PATIENCE)


LONG = bytes(16 << 20)  # sockets do not take it whole


def test_a_request_that_was_not_sent_whole_is_sent_again():
    breaker = Breaker(LONG, [1, 1])
    with pool_of(1, breaker, reconnect_timeout=PATIENCE) as pool:
        assert pool.request(LONG) == b"right"
    breaker.join()
    assert breaker.got == [frame(LONG)[:1]] * 2 + [frame(LONG)]


def test_a_request_that_was_sent_whole_is_sent_again_only_if_it_is_idempotent():
    request = b"at most once"
    for options in ({}, {"reconnect_timeout": PATIENCE}):
        breaker = Breaker(request, [len(frame(request))])
        with pool_of(1, breaker, **options) as pool:
            with pytest.raises(ConnectionLost) as lost:
                pool.request(request, idempotent=not options)
            assert not lost.value.unsent and lost.value.unanswered == (request,)
            assert breaker.got == [frame(request)]
            assert pool.request(request) == b"right"
        breaker.join()
    breaker = Breaker(request, [len(frame(request))] * 2)
    with pool_of(1, breaker, reconnect_timeout=PATIENCE) as pool:
        assert pool.request(request, idempotent=True) == b"right"
    breaker.join()
    assert breaker.got == [frame(request)] * 3


def test_a_client_tells_whether_a_request_was_sent_whole():
    for request, count, unsent in ((LONG, 1, True), (b"short", len(frame(b"short")), False)):
        breaker = Breaker(request, [count])
        client = Client("127.0.0.1", breaker.port, timeout=PATIENCE)
        with pytest.raises(ConnectionLost) as lost:
            client.request(request)
        assert lost.value.unsent is unsent
        with pytest.raises(ConnectionLost) as lost:
            client.request(b"more")
        assert lost.value.unsent
        with Client("127.0.0.1", breaker.port, timeout=PATIENCE) as other:
            assert other.request(request) == b"right"
        breaker.join()


def test_a_server_that_breaks_the_protocol_is_not_asked_again():
    breaker = Breaker(b"hello", [], response=(b"HTTP/1.1 400 Bad Request\r\n\r\n",))
    with pool_of(1, breaker, reconnect_timeout=PATIENCE) as pool, pytest.raises(ProtocolError):
        pool.request(b"hello", idempotent=True)
    breaker.join()


class FullQueue:
    """A listener, and connections that fill its queue, so that no other one is answered until they close."""

    def __enter__(self):
        self._listener, self._waiting = socket.create_server(("127.0.0.1", 0), backlog=0), []
        self._listener.settimeout(PATIENCE)
        self.port = self._listener.getsockname()[1]
        return self

    def __exit__(self, *_):
        self.clear()
        self._listener.close()

    def clear(self):
        for each in self._waiting:
            each.close()

    def fill(self):
        for _ in range(2):
            self._waiting.append(socket.socket())
            self._waiting[-1].setblocking(False)
            self._waiting[-1].connect_ex(("127.0.0.1", self.port))

    def accept(self):
        """Returns the next connection that sends something: the kernel may let a later one in first."""
        while True:
            connection = self._listener.accept()[0]
            connection.settimeout(PATIENCE)
            if connection.recv(1, socket.MSG_PEEK):
                return connection
            connection.close()


def test_reconnection_bounds_each_attempt():
    """Else the connection to a host that does not answer takes `connect_timeout`."""
    with FullQueue() as queue, pool_of(1, queue, reconnect_timeout=0.2, connect_timeout=PATIENCE) as pool:
        def lose():
            with queue.accept() as connection:
                receive_exactly(connection, len(frame(b"hello")))
                queue.fill()
        server = threading.Thread(target=lose, daemon=True)
        server.start()
        begin = time.monotonic()
        with pytest.raises(ConnectFailed):
            pool.request(b"hello", idempotent=True)
        assert time.monotonic() - begin < PATIENCE / 2
        server.join(PATIENCE)


def answer_once_and_fall_silent(queue):
    """Answers one request, ends the connection, and lets no other one in."""
    def answer():
        with queue.accept() as connection:
            receive_exactly(connection, len(frame(b"hello")))
            connection.sendall(frame(b"olleh", RESPONSE))
        queue.fill()
    server = threading.Thread(target=answer, daemon=True)
    server.start()
    return server


def test_the_first_attempt_is_bounded_if_the_loss_is_noticed_before_the_request():
    with FullQueue() as queue, pool_of(1, queue, reconnect_timeout=0.2, connect_timeout=PATIENCE) as pool:
        server = answer_once_and_fall_silent(queue)
        assert pool.request(b"hello") == b"olleh"
        server.join(PATIENCE)
        begin = time.monotonic()
        with pytest.raises(ConnectFailed):
            pool.request(b"hello")
        assert time.monotonic() - begin < PATIENCE / 2


def test_without_limits_it_waits_until_it_is_connected():
    with FullQueue() as queue, pool_of(1, queue, timeout=None, connect_timeout=None) as pool:
        queue.fill()

        def answer():
            time.sleep(0.2)
            queue.clear()
            with queue.accept() as connection:
                receive_exactly(connection, len(frame(b"hello")))
                connection.sendall(frame(b"olleh", RESPONSE))
        server = threading.Thread(target=answer, daemon=True)
        server.start()
        assert pool.request(b"hello") == b"olleh"
        server.join(PATIENCE)


def test_reconnection_has_an_end():
    """That of the pool, or of the call; else it goes on for PATIENCE."""
    begin = time.monotonic()
    with pool_of(1, free_port(), reconnect_timeout=0.2) as pool:
        with pytest.raises(ConnectFailed):
            pool.request(b"hello")
    with pool_of(1, free_port(), reconnect_timeout=PATIENCE) as pool:
        with pytest.raises(ConnectFailed):
            pool.request(b"hello", timeout=0.2)
    assert time.monotonic() - begin < PATIENCE / 2


def test_a_forked_process(stage):
    server, _ = stage.pair()
    with pool_of(2, server) as pool:
        assert pool.request(b"hello") == b"olleh"

        def child():
            with pytest.raises(NotOwner, match="fork") as refused:
                pool.request(b"child")
            assert refused.value.unanswered == (b"child",)
            with pytest.raises(NotOwner), pool.client():
                pass
            pool.close()
            with pool_of(1, server) as own:
                assert own.request(b"child") == b"dlihc"

        in_a_child(child)
        assert pool.request(b"parent") == b"tnerap"
    assert server.terminate() == 0
    server.wait_for_log("2 connections, 3 responses")


def test_a_fork_while_a_thread_is_in_a_call():
    """No lock that the thread holds keeps the child waiting."""
    with SlowServer() as server, pool_of(1, server) as pool:
        callers = threading.Thread(target=lambda: pool.request(b"hello"), daemon=True)
        callers.start()
        server.accept()
        server.take(b"hello")

        def child():
            with pytest.raises(NotOwner):
                pool.request(b"child")
            pool.close()

        in_a_child(child)
        server.answer(b"olleh")
        callers.join(PATIENCE)
        assert not callers.is_alive()
