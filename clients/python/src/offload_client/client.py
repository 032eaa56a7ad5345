"""The client for programs without asyncio."""
from __future__ import annotations

import selectors
import socket
import ssl
import time
from collections import deque
from types import TracebackType
from typing import Deque, Iterable, Iterator, Optional, Type

from .codec import MAX_MESSAGE_LENGTH, Payload, request_payload
from .errors import ConnectFailed, OffloadError, ResponseTimeout
from .exchange import Exchange

RECEIVE_SIZE = 256 << 10
SEND_SIZE = 64 << 10
# Unsent bytes above which requests() waits for a response before it adds another request.
MOST_UNSENT = 1 << 20
NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Slot:
    """A request and its outcome."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self._response: Optional[bytes] = None
        self._error: Optional[BaseException] = None

    def done(self) -> bool:
        return self._response is not None or self._error is not None

    def set_result(self, result: bytes, /) -> None:
        self._response = result

    def set_exception(self, exception: BaseException, /) -> None:
        self._error = exception

    def result(self) -> bytes:
        if self._error is not None:
            raise self._error
        assert self._response is not None
        return self._response


class Client:
    """A connection to an offload-server. One thread at a time may use it.

    timeout: seconds that a response may take from when it is waited for; None: for ever. It may be
    set at any time. connect_timeout: seconds for TCP and TLS each. tls: see tls_context(); None:
    none. server_name: what the certificate must say; by default the host. max_response_length:
    bytes, above which a response is a ProtocolError.

    Raises ConnectFailed if it cannot connect."""

    def __init__(self, host: str, port: int = 12345, *, timeout: Optional[float] = 30.0,
                 connect_timeout: Optional[float] = 10.0, tls: Optional[ssl.SSLContext] = None,
                 server_name: Optional[str] = None,
                 max_response_length: int = MAX_MESSAGE_LENGTH) -> None:
        self.timeout = timeout
        self._exchange: Exchange[_Slot] = Exchange(max_response_length)
        self._unsent = bytearray()
        try:
            self._socket = socket.create_connection((host, port), connect_timeout)
            try:
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if tls is not None:
                    self._socket = tls.wrap_socket(self._socket, server_hostname=server_name or host)
            except BaseException:
                self._socket.close()
                raise
        except OSError as error:
            raise ConnectFailed(f"cannot connect to {host}, port {port}: {error}") from error
        self._socket.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Does not wait. Requests without a response get ConnectionLost."""
        self._lose("this client was closed")

    def request(self, payload: Payload) -> bytes:
        """The response to one request. Raises RequestRefused, ResponseTimeout or ConnectionLost."""
        return self._result(self._submit(payload))

    def requests(self, payloads: Iterable[Payload], in_flight: int = 64) -> Iterator[bytes]:
        """The responses to requests, in their order, with up to `in_flight` of them sent and not
        answered. Raises as request() does; what an iteration leaves unanswered that ends early is
        dropped when it comes."""
        if in_flight < 1:
            raise ValueError("in_flight is 1 at least")
        return self._pipeline(payloads, in_flight)

    def _pipeline(self, payloads: Iterable[Payload], in_flight: int) -> Iterator[bytes]:
        asked: Deque[_Slot] = deque()
        for payload in payloads:
            asked.append(self._submit(payload))
            while asked and (len(asked) >= in_flight or len(self._unsent) > MOST_UNSENT):
                yield self._oldest(asked)
        while asked:
            yield self._oldest(asked)

    def _oldest(self, asked: Deque[_Slot]) -> bytes:
        try:
            response = self._result(asked[0])
        except OffloadError as error:
            error.unanswered = tuple(slot.request for slot in asked)
            raise
        asked.popleft()
        return response

    def _submit(self, payload: Payload) -> _Slot:
        slot = _Slot(request_payload(payload))
        self._unsent += self._exchange.send(slot.request, slot)
        return slot

    def _result(self, slot: _Slot) -> bytes:
        deadline = None if self.timeout is None else time.monotonic() + self.timeout
        while not slot.done():
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                raise ResponseTimeout(f"no response within {self.timeout} s", (slot.request,))
            self._transfer(remaining)
        return slot.result()

    def _transfer(self, seconds: Optional[float]) -> None:
        """Receives and sends what it can; if that is nothing, waits so long until it can."""
        # What the server said last is read before sending fails.
        received = self._receive()
        if self._exchange.lost or self._send() or received:
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
        self._selector.modify(self._socket, events)
        self._selector.select(seconds)

    def _receive(self) -> bool:
        try:
            data = self._socket.recv(RECEIVE_SIZE)
        except NOT_NOW:
            return False
        except OSError as error:
            self._lose(f"receiving failed: {error}")
            return False
        self._exchange.receive(data)
        if self._exchange.lost:
            self._lose("")
        return True

    def _send(self) -> bool:
        if not self._unsent:
            return False
        try:
            # What TLS could not send it wants again, with more behind it or not: this never shrinks.
            sent = self._socket.send(self._unsent[:SEND_SIZE])
        except NOT_NOW:
            return False
        except OSError as error:
            while not self._exchange.lost and self._receive():
                pass
            self._lose(f"sending failed: {error}")
            return False
        del self._unsent[:sent]
        return True

    def _lose(self, message: str) -> None:
        self._exchange.lose(message)
        self._unsent.clear()
        if self._socket.fileno() < 0:
            return
        self._selector.close()
        if isinstance(self._socket, ssl.SSLSocket):
            try:
                self._socket.unwrap()  # sends a close_notify, and does not wait for the server's
            except (OSError, ValueError):
                pass
        self._socket.close()
