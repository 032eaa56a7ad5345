"""The client for programs on asyncio."""
from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from types import TracebackType
from typing import (TYPE_CHECKING, Any, AsyncIterable, AsyncIterator, Awaitable, Deque, Iterable,
                    Optional, Tuple, Type, Union)

from .codec import MAX_MESSAGE_LENGTH, Payload, request_payload
from .connection import Connection, Use
from .errors import ConnectFailed, ConnectionLost, NotOwner, OffloadError, ResponseTimeout
from .exchange import Iteration
from .settings import PORT, Default, Timeout, limit, split_url
from .tls import tls_context

if TYPE_CHECKING:
    Answer = asyncio.Future[bytes]

ENOUGH = 64 << 10  # bytes to be sent, above which a request waits with its caller


class _Connection(Connection["Answer"]):
    """A connection that an event loop waits for. It does not use one of the loop's transports: there a
    signal handler's exception between recv() and data_received() would lose what was received.

    Requests wait in `_unsent` while there is enough to send. One whose caller has gone by then is
    never sent."""

    def __init__(self, connected: socket.socket, max_response_length: int) -> None:
        super().__init__(connected, max_response_length)
        self._unsent: Deque[Tuple[bytes, Answer]] = deque()
        self._writing = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connected, self._readable)

    def ask(self, request: bytes) -> Answer:
        self._check_process()
        self._check_loop()
        answer: Answer = self._loop.create_future()
        with self.use():
            self._unsent.append((request, answer))
            self._flush()
        return answer

    def close(self) -> None:
        if self._loop.is_closed():
            self.socket.close()
            return
        if not self._forked():
            self._check_loop()
        super().close()

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise NotOwner("this client belongs to another event loop: connect a new client in this one")

    def _readable(self) -> None:
        with self.use():
            self.receive()

    def _writable(self) -> None:
        with self.use():
            self._flush()

    def _flush(self) -> None:
        while True:
            while self._unsent and len(self.outgoing) < ENOUGH and not self.exchange.lost:
                request, answer = self._unsent[0]
                if not answer.done():
                    self.submit(request, answer)
                self._unsent.popleft()
            if not self.send():
                break
        if self._writing != bool(self.outgoing):
            self._writing = not self._writing
            if self._writing:
                self._loop.add_writer(self.socket, self._writable)
            else:
                self._loop.remove_writer(self.socket)

    def _follow(self, use: Use) -> None:
        # No signal handler can be here: it would have to run the loop.
        self._uses[None] = use

    def _hang_up(self, notify: bool) -> None:
        if self.socket.fileno() >= 0:
            self._loop.remove_reader(self.socket)
            self._loop.remove_writer(self.socket)
        super()._hang_up(notify)
        for request, answer in list(self._unsent):
            self.exchange.fail(request, answer)
        self._unsent.clear()


class _Responses(AsyncIterator[bytes]):
    """The steps of a pipeline, an asynchronous generator. It does not seem to be at its end after an
    exception has ended it."""

    def __init__(self, steps: Any, iteration: Iteration) -> None:
        self._steps = steps
        self._iteration = iteration

    def __anext__(self) -> Awaitable[bytes]:
        if self._steps.ag_frame is None:
            self._iteration.check()
        step: Awaitable[bytes] = self._steps.__anext__()
        return step

    async def aclose(self) -> None:
        await self._steps.aclose()


async def _connect(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    failure = OSError("the name has no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(host, port,
                                                                     type=socket.SOCK_STREAM):
        try:
            connected = socket.socket(family, kind, protocol)
            try:
                connected.setblocking(False)
                await loop.sock_connect(connected, address)
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connected
            except BaseException:
                connected.close()
                raise
        except OSError as error:
            failure = error
    raise failure


async def _start_tls(connected: socket.socket, tls: ssl.SSLContext, name: str) -> ssl.SSLSocket:
    loop = asyncio.get_running_loop()
    secured = tls.wrap_socket(connected, server_hostname=name, do_handshake_on_connect=False)
    try:
        while True:
            ready = loop.create_future()
            try:
                secured.do_handshake()
                return secured
            except ssl.SSLWantReadError:
                loop.add_reader(secured, _set, ready)
            except ssl.SSLWantWriteError:
                loop.add_writer(secured, _set, ready)
            try:
                await ready
            finally:
                loop.remove_reader(secured)
                loop.remove_writer(secured)
    except BaseException:
        secured.close()
        raise


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


class AsyncClient:
    """A connection to an offload-server, for any number of tasks of one event loop, which must have
    add_reader(). It has the parameters and the errors of Client. A task that is cancelled disturbs
    no other one: its response is dropped when it comes."""

    def __init__(self, host: str, port: int = PORT, *, timeout: Optional[float] = 30.0,
                 connect_timeout: Optional[float] = 10.0, tls: Optional[ssl.SSLContext] = None,
                 server_name: Optional[str] = None,
                 max_response_length: int = MAX_MESSAGE_LENGTH) -> None:
        self.timeout = timeout
        self._host, self._port = host, port
        self._connect_timeout = connect_timeout
        self._tls = tls
        self._server_name = server_name
        self._max_response_length = max_response_length
        self._connection: Optional[_Connection] = None

    @classmethod
    def from_url(cls, url: str, **options: Any) -> AsyncClient:
        """As Client.from_url(); `async with` or connect() connects it."""
        host, port, use_tls = split_url(url)
        if use_tls:
            options.setdefault("tls", tls_context())
        return cls(host, port, **options)

    async def __aenter__(self) -> AsyncClient:
        await self.connect()
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        traceback: Optional[TracebackType]) -> None:
        await self.close()

    async def connect(self) -> None:
        """Connects, once. Raises ConnectFailed."""
        if self._connection is not None:
            raise RuntimeError("this client was already connected")
        try:
            connected = await asyncio.wait_for(self._connected(), self._connect_timeout)
        except (OSError, asyncio.TimeoutError) as error:
            why = str(error) or "timed out"
            raise ConnectFailed(
                f"cannot connect to {self._host}, port {self._port}: {why}") from error
        self._connection = _Connection(connected, self._max_response_length)

    async def _connected(self) -> socket.socket:
        connected = await _connect(self._host, self._port)
        if self._tls is None:
            return connected
        return await _start_tls(connected, self._tls, self._server_name or self._host)

    async def close(self) -> None:
        """Requests without a response get ConnectionLost. In a forked process the connection of the
        parent stays as it is."""
        if self._connection is not None:
            self._connection.close()

    async def request(self, payload: Payload, *, timeout: Timeout = Default.TIMEOUT) -> bytes:
        """The response to one request, within `timeout`. Raises RequestRefused, ResponseTimeout,
        ConnectionLost or NotOwner."""
        request = request_payload(payload)
        return await self._result(request, self._submit(request), timeout)

    def requests(self, payloads: Union[Iterable[Payload], AsyncIterable[Payload]], in_flight: int = 64,
                 *, timeout: Timeout = Default.TIMEOUT) -> AsyncIterator[bytes]:
        """The responses to requests, in their order, with up to `in_flight` of them under way.
        `timeout` is that of each wait. A task takes the requests of an asynchronous iterable. So responses
        come also while the next request does not, and before an exception of the iterable. Raises as
        request() does, and OffloadError after an exception has ended the iteration."""
        if in_flight < 1:
            raise ValueError("in_flight must be at least 1")
        iteration = Iteration()
        if isinstance(payloads, AsyncIterable):
            return _Responses(self._stream(payloads, in_flight, timeout, iteration), iteration)
        return _Responses(self._pipeline(payloads, in_flight, timeout, iteration), iteration)

    async def _stream(self, payloads: AsyncIterable[Payload], in_flight: int, timeout: Timeout,
                      iteration: Iteration) -> AsyncIterator[bytes]:
        asked: Deque[Tuple[bytes, Answer]] = deque()
        room = asyncio.Semaphore(in_flight)
        changed = asyncio.Event()  # there is a request more, or there will be no other
        taking = asyncio.ensure_future(self._take_all(payloads, asked, room, changed))
        taking.add_done_callback(lambda _: changed.set())
        try:
            while asked or not taking.done():
                if asked:
                    yield await self._oldest(asked, timeout)
                    room.release()
                else:
                    changed.clear()
                    await changed.wait()
            taking.result()
            iteration.complete = True
        finally:
            _give_up((taking, *(answer for _, answer in asked)))

    async def _take_all(self, payloads: AsyncIterable[Payload], asked: Deque[Tuple[bytes, Answer]],
                        room: asyncio.Semaphore, changed: asyncio.Event) -> None:
        """Submits the requests of an asynchronous iterable, until the connection is lost."""
        await room.acquire()
        async for payload in payloads:
            request = request_payload(payload)
            try:
                asked.append((request, self._submit(request)))
            except OffloadError as error:
                answer: Answer = asyncio.get_running_loop().create_future()
                answer.set_exception(error)
                asked.append((request, answer))
                return
            finally:
                changed.set()
            await room.acquire()

    async def _pipeline(self, payloads: Iterable[Payload], in_flight: int, timeout: Timeout,
                        iteration: Iteration) -> AsyncIterator[bytes]:
        asked: Deque[Tuple[bytes, Answer]] = deque()
        try:
            for payload in payloads:
                request = request_payload(payload)
                asked.append((request, self._submit(request, asked)))
                if len(asked) >= in_flight:
                    yield await self._oldest(asked, timeout)
            while asked:
                yield await self._oldest(asked, timeout)
            iteration.complete = True
        finally:
            _give_up(answer for _, answer in asked)

    async def _oldest(self, asked: Deque[Tuple[bytes, Answer]], timeout: Timeout) -> bytes:
        try:
            response = await self._result(*asked[0], timeout)
        except OffloadError as error:
            error.unanswered = tuple(request for request, _ in asked)
            raise
        asked.popleft()
        return response

    def _submit(self, request: bytes, before: Iterable[Tuple[bytes, Answer]] = ()) -> Answer:
        try:
            if self._connection is None:
                raise ConnectionLost("this client has not connected: use `async with`")
            return self._connection.ask(request)
        except OffloadError as error:
            error.unanswered = (*(earlier for earlier, _ in before), request)
            raise

    async def _result(self, request: bytes, answer: Answer, timeout: Timeout) -> bytes:
        seconds = limit(timeout, self.timeout)
        if seconds is None:
            return await answer
        # As a timer, and not wait_for(), which before Python 3.12 may lose a cancellation.
        timer = asyncio.get_running_loop().call_later(seconds, _expire, seconds, request, answer)
        try:
            return await answer
        finally:
            timer.cancel()


def _give_up(futures: Iterable[asyncio.Future[Any]]) -> None:
    for future in futures:
        # A failure that no caller retrieves would be logged by asyncio as an error.
        if not future.cancel() and not future.cancelled():
            future.exception()


def _expire(seconds: float, request: bytes, answer: Answer) -> None:
    if not answer.done():
        answer.set_exception(ResponseTimeout(f"no response within {seconds} s", (request,)))
