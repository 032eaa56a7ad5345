"""A connection as both clients have it: sends and receives what is possible, and never waits."""
from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import threading
from types import TracebackType
from typing import Any, Awaitable, Callable, Dict, Generic, List, Optional, Type

from .errors import NotOwner, OffloadError
from .exchange import AnySlot, Exchange
from .settings import Deadline

RECEIVE_SIZE = 256 << 10
SEND_SIZE = 64 << 10
NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

# Connects a socket to an address within a number of seconds; None: no limit.
Connect = Callable[[socket.socket, Any, Optional[float]], Awaitable[None]]


async def connect_to_one(addresses: List[Any], deadline: Deadline, connect: Connect) -> socket.socket:
    """Tries each address of getaddrinfo() in turn, with a share of the time, and raises the last one's error."""
    while True:
        family, kind, protocol, _, address = addresses.pop(0)
        try:
            connected = socket.socket(family, kind, protocol)
            try:
                await connect(connected, address, deadline.wait(len(addresses) + 1))
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connected
            except BaseException:
                connected.close()
                raise
        except (OSError, asyncio.TimeoutError):
            if not addresses:
                raise


class Use:
    """The time in which a thread changes a connection. While it lasts, the connection's parts need not
    agree: a request may be sent and not yet be waited for. An exception can come between any two
    steps, also those of __enter__ and __exit__. So a use ends by its last step only; one that has
    not ended breaks the connection, and the next use finds it."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self.thread = threading.get_ident()

    def __enter__(self) -> None:
        self._connection._begin(self)

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self._connection._end(self, kind)


class Connection(Generic[AnySlot]):
    """A socket and the requests on it. It belongs to the process that made it. Except for close(),
    call the functions within `with connection.use():`."""

    def __init__(self, connected: socket.socket, max_response_length: int) -> None:
        connected.setblocking(False)
        self.socket = connected
        self.exchange: Exchange[AnySlot] = Exchange(max_response_length)
        self.outgoing = bytearray()  # frames that the socket has not taken
        self.taken = 0  # bytes that it has taken
        self._process = os.getpid()
        # At most one. A dict, because setdefault() is one step, which no thread or signal divides.
        self._uses: Dict[None, Use] = {}

    def use(self) -> Use:
        """Entering it raises NotOwner in another process, and while another thread uses the
        connection."""
        return Use(self)

    def close(self) -> None:
        """Requests without a response get ConnectionLost. In another process this closes the
        process's copy of the socket, which the server does not notice."""
        if self._forked():
            self.socket.close()
            return
        with self.use():
            self.exchange.lose("this client was closed")

    def submit(self, request: bytes, slot: AnySlot) -> Optional[int]:
        """Returns the value of `taken` from which on the request was sent whole; None: it is not sent."""
        self.outgoing += self.exchange.send(request, slot)
        return None if self.exchange.lost else self.taken + len(self.outgoing)

    def receive(self) -> bool:
        """Receives once. Returns whether anything came."""
        self._check_process()  # again: a signal handler may have forked
        if self.exchange.lost:
            return False
        try:
            data = self.socket.recv(RECEIVE_SIZE)
        except NOT_NOW:
            return False
        except OSError as error:
            self.exchange.lose(f"receiving failed: {error}")
            return False
        self.exchange.receive(data)
        return True

    def send(self) -> bool:
        """Sends once. Returns whether the socket took anything."""
        if self.exchange.lost or not self.outgoing:
            return False
        try:
            # TLS requires unsent bytes again, with or without more behind them: this never shrinks.
            sent = self.socket.send(self.outgoing[:SEND_SIZE])
        except NOT_NOW:
            return False
        except OSError as error:
            # The server's last message comes before the failure.
            while self.receive():
                pass
            self.exchange.lose(f"sending failed: {error}")
            return False
        self.taken += sent
        del self.outgoing[:sent]
        return True

    def _forked(self) -> bool:
        return os.getpid() != self._process

    def _check_process(self) -> None:
        if self._forked():
            raise NotOwner(f"this client belongs to process {self._process}: connect a new client after a fork")

    def _begin(self, use: Use) -> None:
        self._check_process()
        current = self._uses.setdefault(None, use)
        if current is use:
            return
        if current.thread != use.thread:
            raise NotOwner("another thread is in a call of this client")
        self.exchange.lose("a call of this client was interrupted before its end")
        self._follow(use)

    def _follow(self, use: Use) -> None:
        """Called when an earlier use by this thread has not ended. `use` may be a signal handler's in the
        middle of it. So the socket stays open for the earlier one, as a closed descriptor may become
        another file's, and the base class's shutdown() keeps the TLS object for it."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)

    def _end(self, use: Use, kind: Optional[Type[BaseException]]) -> None:
        if self._forked():
            return
        orderly = kind is None or issubclass(kind, OffloadError)
        if kind is not None and not orderly:
            self.exchange.lose(f"{kind.__name__} interrupted a call of this client")
        if self._uses.get(None) is use:
            if self.exchange.lost:
                self._hang_up(orderly)
            del self._uses[None]

    def _hang_up(self, notify: bool) -> None:
        """Ends the lost connection, in TLS with a close_notify if `notify`."""
        self.exchange.lose("")  # again, for requests submitted meanwhile
        self.outgoing.clear()
        if self.socket.fileno() < 0:
            return
        if notify and isinstance(self.socket, ssl.SSLSocket):
            with contextlib.suppress(OSError, ValueError):
                self.socket.unwrap()  # does not wait for the server's close_notify
        # close() alone would not end the connection while a forked process has a copy of the socket.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
