"""The client for programs on asyncio."""
from __future__ import annotations

import asyncio
import ssl
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, AsyncIterator, Deque, Iterable, Optional, Tuple, Type

from .codec import MAX_MESSAGE_LENGTH, Payload, request_payload
from .errors import ConnectFailed, ConnectionLost, OffloadError, ResponseTimeout
from .exchange import Exchange

if TYPE_CHECKING:
    Answer = asyncio.Future[bytes]

CLOSE_SECONDS = 1.0  # for the server to see the end of TLS


class _Connection(asyncio.Protocol):
    """Requests wait in `_unsent` while the transport has enough to send. One whose caller has gone
    by then is never sent."""

    def __init__(self, max_response_length: int) -> None:
        self._exchange: Exchange[Answer] = Exchange(max_response_length)
        self._unsent: Deque[Tuple[bytes, Answer]] = deque()
        self._writable = True
        self._transport: Optional[asyncio.Transport] = None
        self.closed = asyncio.get_running_loop().create_future()

    def submit(self, request: bytes) -> Answer:
        answer: Answer = asyncio.get_running_loop().create_future()
        self._unsent.append((request, answer))
        self._flush()
        return answer

    async def close(self) -> None:
        self._exchange.lose("this client was closed")
        self._flush()
        if self._transport is not None:
            self._transport.close()
            await asyncio.wait([self.closed], timeout=CLOSE_SECONDS)
            self._abort()

    def _flush(self) -> None:
        while self._unsent and (self._writable or self._exchange.lost):
            request, answer = self._unsent.popleft()
            if not answer.done():
                frame = self._exchange.send(request, answer)
                if frame and self._transport is not None:
                    self._transport.write(frame)

    def _receive(self, data: bytes) -> None:
        self._exchange.receive(data)
        if self._exchange.lost:
            self._flush()
            self._abort()

    def _abort(self) -> None:
        # In TLS a transport that is closed has no abort() any more.
        if self._transport is not None and not self.closed.done():
            self._transport.abort()

    # ---- Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._receive(data)

    def eof_received(self) -> None:
        self._receive(b"")

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self._exchange.lose(f"the connection failed: {exc}" if exc else "the connection has ended")
        self._flush()
        if not self.closed.done():
            self.closed.set_result(None)

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self._flush()


class AsyncClient:
    """A connection to an offload-server, for any number of tasks of one event loop. It has the
    parameters and the errors of Client. A task that is cancelled disturbs no other one: its response
    is dropped when it comes."""

    def __init__(self, host: str, port: int = 12345, *, timeout: Optional[float] = 30.0,
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

    async def __aenter__(self) -> AsyncClient:
        await self.connect()
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        traceback: Optional[TracebackType]) -> None:
        await self.close()

    async def connect(self) -> None:
        """Connects, once. Raises ConnectFailed."""
        if self._connection is not None:
            raise RuntimeError("this client has connected before")
        connecting = asyncio.get_running_loop().create_connection(
            lambda: _Connection(self._max_response_length), self._host, self._port, ssl=self._tls,
            server_hostname=(self._server_name or self._host) if self._tls else None)
        try:
            _, self._connection = await asyncio.wait_for(connecting, self._connect_timeout)
        except (OSError, asyncio.TimeoutError) as error:
            why = str(error) or "timed out"
            raise ConnectFailed(
                f"cannot connect to {self._host}, port {self._port}: {why}") from error

    async def close(self) -> None:
        """Requests without a response get ConnectionLost."""
        if self._connection is not None:
            await self._connection.close()

    async def request(self, payload: Payload) -> bytes:
        """The response to one request. Raises RequestRefused, ResponseTimeout or ConnectionLost."""
        request = request_payload(payload)
        return await self._result(request, self._submit(request))

    async def requests(self, payloads: Iterable[Payload],
                       in_flight: int = 64) -> AsyncIterator[bytes]:
        """The responses to requests, in their order, with up to `in_flight` of them under way."""
        if in_flight < 1:
            raise ValueError("in_flight is 1 at least")
        asked: Deque[Tuple[bytes, Answer]] = deque()
        try:
            for payload in payloads:
                request = request_payload(payload)
                asked.append((request, self._submit(request)))
                if len(asked) >= in_flight:
                    yield await self._oldest(asked)
            while asked:
                yield await self._oldest(asked)
        finally:
            for _, answer in asked:
                # Where it has failed already, that would be logged as an error that nobody saw.
                if not answer.cancel() and not answer.cancelled():
                    answer.exception()

    async def _oldest(self, asked: Deque[Tuple[bytes, Answer]]) -> bytes:
        try:
            response = await self._result(*asked[0])
        except OffloadError as error:
            error.unanswered = tuple(request for request, _ in asked)
            raise
        asked.popleft()
        return response

    def _submit(self, request: bytes) -> Answer:
        if self._connection is None:
            raise ConnectionLost("this client has not connected: use `async with`", (request,))
        return self._connection.submit(request)

    async def _result(self, request: bytes, answer: Answer) -> bytes:
        if self.timeout is None:
            return await answer
        # As a timer, and not wait_for(), which before Python 3.12 may lose a cancellation.
        timer = asyncio.get_running_loop().call_later(self.timeout, self._expire, request, answer)
        try:
            return await answer
        finally:
            timer.cancel()

    def _expire(self, request: bytes, answer: Answer) -> None:
        if not answer.done():
            answer.set_exception(
                ResponseTimeout(f"no response within {self.timeout} s", (request,)))
