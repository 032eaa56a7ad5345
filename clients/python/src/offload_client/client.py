"""The client for programs without asyncio."""
from __future__ import annotations

import itertools
import selectors
import socket
import ssl
from collections import deque
from types import TracebackType
from typing import Any, Deque, Iterable, Iterator, Optional, Type

from .codec import MAX_MESSAGE_LENGTH, Payload, request_payload
from .connection import Connection, connect_to_one
from .errors import ConnectFailed, ConnectionLost, OffloadError, ResponseTimeout
from .exchange import Iteration
from .settings import PORT, Deadline, Default, Timeout, limit, split_url
from .tls import tls_context

# Unsent bytes above which requests() waits for a response before it adds another request.
MOST_UNSENT = 1 << 20
# Without a separate descriptor, which a forked process would share.
Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


async def _connect_waiting(connected: socket.socket, address: Any, seconds: Optional[float]) -> None:
    connected.settimeout(seconds)
    connected.connect(address)


def _connect(host: str, port: int, deadline: Deadline) -> socket.socket:
    steps = connect_to_one(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), deadline, _connect_waiting)
    try:
        while True:
            steps.send(None)  # to the end, as nothing in it awaits a loop
    except StopIteration as end:
        connected: socket.socket = end.value
        return connected


class _Slot:
    """A request and its outcome."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.end: Optional[int] = None  # of Connection.taken, once it is submitted
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
    """A connection to an offload-server. One thread at a time may use it, of the process that made it;
    others get NotOwner. After an exception within a call, later calls raise ConnectionLost unless the
    connection was not being used at that moment.

    timeout: seconds that a response may take from when it is waited for; None: for ever. It may be
    set at any time. connect_timeout: seconds for TCP and TLS each. tls: see tls_context(); None:
    none. server_name: what the certificate must say; by default the host. max_response_length:
    bytes, above which a response is a ProtocolError.

    Raises ConnectFailed if it cannot connect."""

    def __init__(self, host: str, port: int = PORT, *, timeout: Optional[float] = 30.0,
                 connect_timeout: Optional[float] = 10.0, tls: Optional[ssl.SSLContext] = None,
                 server_name: Optional[str] = None,
                 max_response_length: int = MAX_MESSAGE_LENGTH) -> None:
        self.timeout = timeout
        try:
            deadline = Deadline(connect_timeout)
            connected = _connect(host, port, deadline)
            try:
                if tls is not None:
                    connected.settimeout(deadline.wait())
                    connected = tls.wrap_socket(connected, server_hostname=server_name or host)
            except BaseException:
                connected.close()
                raise
        except OSError as error:
            raise ConnectFailed(f"cannot connect to {host}, port {port}: {error}") from error
        self._connection: Connection[_Slot] = Connection(connected, max_response_length)
        self._selector = Selector()
        self._selector.register(connected, selectors.EVENT_READ)

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Client:
        """Connects to "offload://HOST:PORT", or "offloads://HOST:PORT" in TLS. `options`: as those of
        Client; without `tls` the system's authorities are trusted. Raises ValueError or ConnectFailed."""
        host, port, use_tls = split_url(url)
        if use_tls:
            options.setdefault("tls", tls_context())
        return cls(host, port, **options)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Does not wait. Requests without a response get ConnectionLost. In a forked process the
        connection of the parent stays as it is."""
        self._connection.close()

    def request(self, payload: Payload, *, timeout: Timeout = Default.TIMEOUT) -> bytes:
        """The response to one request, within `timeout`. Raises RequestRefused, ResponseTimeout,
        ConnectionLost or NotOwner."""
        asked = deque([_Slot(request_payload(payload))])
        self._submit(asked)
        return self._oldest(asked, timeout)

    def requests(self, payloads: Iterable[Payload], in_flight: int = 64, *,
                 timeout: Timeout = Default.TIMEOUT) -> Iterator[bytes]:
        """The responses to requests, in their order, with up to `in_flight` of them sent and not
        answered. `timeout` is that of each wait. Raises as request() does, and OffloadError after an exception has ended the
        iteration; what an iteration leaves unanswered that ends early is dropped when it comes."""
        if in_flight < 1:
            raise ValueError("in_flight must be at least 1")
        iteration = Iteration()
        return itertools.chain(self._pipeline(payloads, in_flight, timeout, iteration),
                               iter(iteration.check, None))

    def _pipeline(self, payloads: Iterable[Payload], in_flight: int, timeout: Timeout,
                  iteration: Iteration) -> Iterator[bytes]:
        asked: Deque[_Slot] = deque()
        for payload in payloads:
            asked.append(_Slot(request_payload(payload)))
            self._submit(asked)
            while asked and (len(asked) >= in_flight
                             or len(self._connection.outgoing) > MOST_UNSENT):
                yield self._oldest(asked, timeout)
        while asked:
            yield self._oldest(asked, timeout)
        iteration.complete = True

    def _submit(self, asked: Deque[_Slot]) -> None:
        """Submits the newest request."""
        try:
            with self._connection.use():
                asked[-1].end = self._connection.submit(asked[-1].request, asked[-1])
        except OffloadError as error:
            self._describe(error, asked)
            raise

    def _oldest(self, asked: Deque[_Slot], timeout: Timeout) -> bytes:
        """Waits for the response to the oldest request."""
        seconds = limit(timeout, self.timeout)
        try:
            with self._connection.use():
                self._wait(asked[0], seconds)
            response = asked[0].result()
        except OffloadError as error:
            self._describe(error, asked)
            raise
        asked.popleft()
        return response

    def _describe(self, error: OffloadError, asked: Deque[_Slot]) -> None:
        error.unanswered = tuple(slot.request for slot in asked)
        if isinstance(error, ConnectionLost):
            end = asked[0].end
            error.unsent = end is None or end > self._connection.taken

    def _is_usable(self) -> bool:
        """Whether the next request gets a response, as far as what the server has sent says."""
        with self._connection.use():
            while self._connection.receive():
                pass
            return self._connection.exchange.idle

    def _is_idle(self) -> bool:
        return self._connection.exchange.idle

    def _wait(self, slot: _Slot, seconds: Optional[float]) -> None:
        deadline = Deadline(seconds)
        while not slot.done():
            if self._connection.exchange.lost:
                self._connection.exchange.fail(slot.request, slot)
                return
            remaining = deadline.left()
            if remaining == 0:
                raise ResponseTimeout(f"no response within {seconds} s")
            self._transfer(remaining)

    def _transfer(self, seconds: Optional[float]) -> None:
        """Receives and sends as much as it can; if it cannot, waits for this time until it can."""
        # The server's last message is read before sending fails.
        received = self._connection.receive()
        if self._connection.send() or received or self._connection.exchange.lost:
            return
        outgoing = selectors.EVENT_WRITE if self._connection.outgoing else 0
        self._selector.modify(self._connection.socket, selectors.EVENT_READ | outgoing)
        self._selector.select(seconds)
