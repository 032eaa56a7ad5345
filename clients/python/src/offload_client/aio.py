"""The client for programs on asyncio."""
from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from types import TracebackType
from typing import (Any, AsyncIterable, AsyncIterator, Awaitable, Deque, Iterable, Optional, Type,
                    Union)

from .codec import MAX_MESSAGE_LENGTH, Payload, request_payload
from .connection import Connection, Use, connect_to_one
from .errors import ConnectFailed, ConnectionLost, NotOwner, OffloadError, ResponseTimeout
from .exchange import Iteration
from .reconnection import Pauses, Repetition
from .settings import PORT, Deadline, Default, Timeout, limit, split_url
from .tls import tls_context

ENOUGH = 64 << 10  # bytes to be sent, above which a request waits with its caller


class _Answer(asyncio.Future[bytes]):
    """The response to a request on a connection."""

    def __init__(self, request: bytes, connection: _Connection) -> None:
        super().__init__(loop=connection.loop)
        self.request = request
        self.end: Optional[int] = None  # of Connection.taken, once it is submitted
        self._connection = connection

    @property
    def unsent(self) -> bool:
        """Returns whether the request was not sent whole."""
        return self.end is None or self.end > self._connection.taken


class _Connection(Connection[_Answer]):
    """A connection that an event loop waits for. It does not use one of the loop's transports: there a
    signal handler's exception between recv() and data_received() would lose what was received.

    Requests wait in `_unsent` while there is enough to send, and when the server is about to close. One
    whose caller has gone by then is never sent."""

    def __init__(self, connected: socket.socket, max_response_length: int) -> None:
        super().__init__(connected, max_response_length)
        self._unsent: Deque[_Answer] = deque()
        self._writing = False
        self.loop = asyncio.get_running_loop()
        self.loop.add_reader(connected, self._readable)

    def ask(self, request: bytes) -> _Answer:
        self.check_owner()
        answer = _Answer(request, self)
        with self.use():
            self._unsent.append(answer)
            self._flush()
        return answer

    def is_lost(self) -> bool:
        """Returns whether it is lost. Data that has come and was not received yet may say so."""
        self.check_owner()
        if self.exchange.idle:
            with self.use():
                self.receive()
        return self.exchange.lost

    def close(self) -> None:
        if self.loop.is_closed():
            self.socket.close()
            return
        if not self._forked():
            self._check_loop()
        super().close()

    def check_owner(self) -> None:
        self._check_process()
        self._check_loop()

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self.loop:
            raise NotOwner("this client belongs to another event loop: connect a new client in this one")

    def _readable(self) -> None:
        with self.use():
            self.receive()

    def _writable(self) -> None:
        with self.use():
            self._flush()

    def _flush(self) -> None:
        while True:
            while self._unsent and len(self.outgoing) < ENOUGH and not self.exchange.ending:
                answer = self._unsent[0]
                if not answer.done():
                    answer.end = self.submit(answer.request, answer)
                self._unsent.popleft()
            if not self.send():
                break
        if self._writing != bool(self.outgoing):
            self._writing = not self._writing
            if self._writing:
                self.loop.add_writer(self.socket, self._writable)
            else:
                self.loop.remove_writer(self.socket)

    def _follow(self, use: Use) -> None:
        # No signal handler can be here: it would have to run the loop.
        self._uses[None] = use

    def _hang_up(self, notify: bool) -> None:
        if self.socket.fileno() >= 0:
            self.loop.remove_reader(self.socket)
            self.loop.remove_writer(self.socket)
            self._writing = False
        super()._hang_up(notify)
        for answer in list(self._unsent):
            self.exchange.fail(answer.request, answer)
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


async def _connect(host: str, port: int, deadline: Deadline) -> socket.socket:
    loop = asyncio.get_running_loop()

    async def connect(connected: socket.socket, address: Any, seconds: Optional[float]) -> None:
        connected.setblocking(False)
        await asyncio.wait_for(loop.sock_connect(connected, address), seconds)

    return await connect_to_one(await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM), deadline, connect)


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
    no other one: its response is dropped when it comes.

    reconnect_timeout: seconds for which a call tries to connect again after the connection was lost;
    None: the client does not reconnect."""

    def __init__(self, host: str, port: int = PORT, *, timeout: Optional[float] = 30.0,
                 reconnect_timeout: Optional[float] = None, connect_timeout: Optional[float] = 10.0,
                 tls: Optional[ssl.SSLContext] = None, server_name: Optional[str] = None,
                 max_response_length: int = MAX_MESSAGE_LENGTH) -> None:
        self.timeout = timeout
        self._host, self._port = host, port
        self._reconnect_timeout = reconnect_timeout
        self._connect_timeout = connect_timeout
        self._tls = tls
        self._server_name = server_name
        self._max_response_length = max_response_length
        self._connection: Optional[_Connection] = None
        self._closed = False
        self._dialing: Optional[asyncio.Task[None]] = None  # an attempt to reconnect, for all tasks
        self._failure: Optional[Exception] = None  # of the last attempt
        self._pauses = Pauses()

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
            self._connection = await self._dial()
        except (OSError, asyncio.TimeoutError) as error:
            raise self._failed(error) from error

    async def _dial(self) -> _Connection:
        connected = await asyncio.wait_for(self._connected(), self._connect_timeout)
        return _Connection(connected, self._max_response_length)

    async def _connected(self) -> socket.socket:
        connected = await _connect(self._host, self._port, Deadline(self._connect_timeout))
        if self._tls is None:
            return connected
        return await _start_tls(connected, self._tls, self._server_name or self._host)

    def _failed(self, cause: Exception) -> ConnectFailed:
        why = str(cause) or "timed out"
        error = ConnectFailed(f"cannot connect to {self._host}, port {self._port}: {why}")
        error.__cause__ = cause
        return error

    async def _dial_again(self, pause: float) -> None:
        await asyncio.sleep(pause)
        try:
            connection = await self._dial()
        except (OSError, asyncio.TimeoutError) as error:
            self._failure = error
            return
        self._failure = None
        if self._closed:  # before Python 3.12, wait_for() may lose a cancellation
            connection.close()
        else:
            self._connection = connection

    async def _usable(self, repetition: Repetition) -> _Connection:
        """The connection, or the next one after it was lost, if the client reconnects. Raises ConnectFailed."""
        while True:
            if self._connection is None:
                raise ConnectionLost("this client has not connected: use `async with`")
            if self._reconnect_timeout is None or self._closed or not self._connection.is_lost():
                return self._connection
            repetition.begin()
            if self._dialing is None or self._dialing.done():
                self._dialing = asyncio.ensure_future(self._dial_again(self._pauses.next()))
            dialing = self._dialing
            await asyncio.wait({dialing}, timeout=repetition.left())
            if dialing.cancelled():  # by close()
                continue
            if dialing.done():
                dialing.result()
                if self._failure is None:
                    return self._connection  # even if it is lost again: that counts for the caller's limits
            error = self._failed(self._failure or asyncio.TimeoutError())
            if not repetition.left_after(error):
                raise error

    async def close(self) -> None:
        """Requests without a response get ConnectionLost. In a forked process the connection of the
        parent stays as it is."""
        if self._connection is None:
            return
        self._connection.close()
        self._closed = True
        in_own_loop = self._connection.loop is asyncio.get_running_loop()  # not so in a forked process
        if self._dialing is not None and not self._dialing.done() and in_own_loop:
            self._dialing.cancel()
            await asyncio.wait({self._dialing})

    async def request(self, payload: Payload, *, timeout: Timeout = Default.TIMEOUT,
                      idempotent: bool = False) -> bytes:
        """The response to one request, within `timeout`. With reconnect_timeout, a request that was
        not sent whole is sent again on another connection. One that was sent whole is sent again only
        if it is `idempotent`: the server may process it twice. Raises RequestRefused, ResponseTimeout,
        ConnectionLost, ConnectFailed or NotOwner."""
        request = request_payload(payload)
        deadline = Deadline(limit(timeout, self.timeout))
        repetition = Repetition(deadline, self._reconnect_timeout, idempotent)
        while True:
            try:
                connection = await self._usable(repetition)
                return await self._result(connection.ask(request), deadline)
            except OffloadError as error:
                error.unanswered = (request,)
                if self._connection is None or self._closed or not repetition.left_after(error):
                    raise

    def requests(self, payloads: Union[Iterable[Payload], AsyncIterable[Payload]], in_flight: int = 64,
                 *, timeout: Timeout = Default.TIMEOUT) -> AsyncIterator[bytes]:
        """The responses to requests, in their order, with up to `in_flight` of them under way.
        `timeout` is that of each wait. A task takes the requests of an asynchronous iterable. So responses
        come also while the next request does not, and before an exception of the iterable. With
        reconnect_timeout an iteration begins on a connection that is not lost; it does not send requests
        again. Raises as request() does, and OffloadError after an exception has ended the iteration."""
        if in_flight < 1:
            raise ValueError("in_flight must be at least 1")
        iteration = Iteration()
        if isinstance(payloads, AsyncIterable):
            return _Responses(self._stream(payloads, in_flight, timeout, iteration), iteration)
        return _Responses(self._pipeline(payloads, in_flight, timeout, iteration), iteration)

    async def _stream(self, payloads: AsyncIterable[Payload], in_flight: int, timeout: Timeout,
                      iteration: Iteration) -> AsyncIterator[bytes]:
        connection = await self._usable(self._repetition(timeout))
        connection.check_owner()
        asked: Deque[_Answer] = deque()
        room = asyncio.Semaphore(in_flight)
        changed = asyncio.Event()  # there is a request more, or there will be no other
        taking = asyncio.ensure_future(_take_all(payloads, connection, asked, room, changed))
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
            _give_up((taking, *asked))

    async def _pipeline(self, payloads: Iterable[Payload], in_flight: int, timeout: Timeout,
                        iteration: Iteration) -> AsyncIterator[bytes]:
        connection = await self._usable(self._repetition(timeout))
        asked: Deque[_Answer] = deque()
        try:
            for payload in payloads:
                request = request_payload(payload)
                try:
                    asked.append(connection.ask(request))
                except OffloadError as error:
                    error.unanswered = (*(answer.request for answer in asked), request)
                    raise
                if len(asked) >= in_flight:
                    yield await self._oldest(asked, timeout)
            while asked:
                yield await self._oldest(asked, timeout)
            iteration.complete = True
        finally:
            _give_up(asked)

    def _repetition(self, timeout: Timeout) -> Repetition:
        return Repetition(Deadline(limit(timeout, self.timeout)), self._reconnect_timeout)

    async def _oldest(self, asked: Deque[_Answer], timeout: Timeout) -> bytes:
        try:
            response = await self._result(asked[0], Deadline(limit(timeout, self.timeout)))
        except OffloadError as error:
            error.unanswered = tuple(answer.request for answer in asked)
            raise
        asked.popleft()
        return response

    async def _result(self, answer: _Answer, deadline: Deadline) -> bytes:
        left = deadline.left()
        # As a timer, and not wait_for(), which before Python 3.12 may lose a cancellation.
        timer = None if left is None else answer.get_loop().call_later(left, _expire, deadline.seconds, answer)
        try:
            response = await answer
        except ConnectionLost as error:
            error.unsent = answer.unsent
            raise
        finally:
            if timer is not None:
                timer.cancel()
        self._pauses.reset()
        return response


async def _take_all(payloads: AsyncIterable[Payload], connection: _Connection, asked: Deque[_Answer],
                    room: asyncio.Semaphore, changed: asyncio.Event) -> None:
    """Submits the requests of an asynchronous iterable, until the connection is lost."""
    await room.acquire()
    async for payload in payloads:
        request = request_payload(payload)
        try:
            asked.append(connection.ask(request))
        except OffloadError as error:
            answer = _Answer(request, connection)
            answer.set_exception(error)
            asked.append(answer)
            return
        finally:
            changed.set()
        await room.acquire()


def _give_up(futures: Iterable[asyncio.Future[Any]]) -> None:
    for future in futures:
        # A failure that no caller retrieves would be logged by asyncio as an error.
        if not future.cancel() and not future.cancelled():
            future.exception()


def _expire(seconds: Optional[float], answer: _Answer) -> None:
    if not answer.done():
        answer.set_exception(ResponseTimeout(f"no response within {seconds} s", (answer.request,)))
