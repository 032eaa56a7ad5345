"""Connections that threads share."""
from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import deque
from types import TracebackType
from typing import Any, Deque, Iterator, Optional, Type, cast

from .client import Client
from .codec import Payload, request_payload
from .errors import ConnectionLost, NotOwner, OffloadError, ResponseTimeout
from .reconnection import Pauses, Repetition
from .settings import PORT, Deadline, Default, Timeout, limit, split_url
from .tls import tls_context

# Seconds after which a thread that waits for a connection looks whether it is still in the queue.
LOOK_INTERVAL = 1.0


class _Permit:
    """The right to one connection of a pool. An exception may interrupt a call before it gives its
    permit back; then the pool gets another one as soon as this one is collected."""

    def __init__(self, permits: _Permits) -> None:
        self._permits = weakref.ref(permits)

    def __del__(self) -> None:
        permits = self._permits()
        if permits is not None:
            permits.give(_Permit(permits))


class _Waiter:
    def __init__(self) -> None:
        self.permit: Optional[_Permit] = None
        self.ready = threading.Lock()  # held until the permit is there
        self.ready.acquire()


class _Permits:
    """A number of permits, which threads get in the order in which they ask. There is no lock that a
    forked process would find held, or an interrupted thread would keep: each operation of a deque is
    one step, which no thread and no signal divides."""

    def __init__(self, count: int) -> None:
        self._free: Deque[_Permit] = deque(_Permit(self) for _ in range(count))
        self._waiters: Deque[_Waiter] = deque()

    def take(self, deadline: Deadline) -> Optional[_Permit]:
        """None: the deadline has passed."""
        waiter = _Waiter()
        try:
            while True:
                if waiter not in self._waiters:  # at first, or after a thread that was interrupted
                    self._waiters.append(waiter)
                self._match()
                if waiter.ready.acquire(timeout=cast(float, deadline.left(LOOK_INTERVAL))):
                    return waiter.permit
                if deadline.left() == 0:
                    return None
        finally:
            with contextlib.suppress(ValueError):
                self._waiters.remove(waiter)

    def give(self, permit: _Permit) -> None:
        self._free.append(permit)
        self._match()

    def _match(self) -> None:
        while self._free and self._waiters:
            with contextlib.suppress(IndexError):  # another thread was quicker
                permit = self._free.popleft()
                try:
                    waiter = self._waiters.popleft()
                except IndexError:
                    self._free.append(permit)
                    raise
                waiter.permit = permit
                with contextlib.suppress(RuntimeError):  # it had got one: this one is collected
                    waiter.ready.release()


class Pool:
    """Up to `size` connections to an offload-server, for any number of threads of one process. A
    connection is made when a call needs one and none is free; one that is lost is replaced.

    timeout: seconds of a call, with the wait for a free connection; None: for ever. It may be set at
    any time. reconnect_timeout: seconds for which a call tries to connect again after its connection
    was lost or could not be made; None: such a call raises the error. connect_timeout, `options`: as
    those of Client."""

    def __init__(self, size: int, host: str, port: int = PORT, *, timeout: Optional[float] = 30.0,
                 reconnect_timeout: Optional[float] = None, connect_timeout: Optional[float] = 10.0,
                 **options: Any) -> None:
        if size < 1:
            raise ValueError("size must be at least 1")
        self.timeout = timeout
        self._host, self._port = host, port
        self._reconnect_timeout = reconnect_timeout
        self._connect_timeout = connect_timeout
        self._options = options
        self._process = os.getpid()
        self._closed = False
        self._idle: Deque[Client] = deque()  # the one that was used last at the end
        self._permits = _Permits(size)

    @classmethod
    def from_url(cls, size: int, url: str, **options: Any) -> Pool:
        """As Client.from_url()."""
        host, port, use_tls = split_url(url)
        if use_tls:
            options.setdefault("tls", tls_context())
        return cls(size, host, port, **options)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Does not wait. Calls in progress end as usual; later ones raise ConnectionLost. In a forked
        process the connections of the parent stay as they are."""
        self._closed = True
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()

    def request(self, payload: Payload, *, timeout: Timeout = Default.TIMEOUT,
                idempotent: bool = False) -> bytes:
        """The response to one request, within `timeout`. With reconnect_timeout, a request that was
        not sent whole is sent again on another connection. One that was sent whole is sent again only
        if it is `idempotent`: the server may process it twice. Raises as Client.request() does, and
        ConnectFailed."""
        request = request_payload(payload)
        deadline = Deadline(limit(timeout, self.timeout))
        repetition = Repetition(deadline, self._reconnect_timeout, idempotent)
        pauses = Pauses()
        while True:
            try:
                with self._lend(repetition) as client:
                    return self._ask(client, request, deadline)
            except OffloadError as error:
                error.unanswered = (request,)
                left = repetition.left_after(error)
                if self._closed or not left:
                    raise
            time.sleep(min(pauses.next(), left))

    @contextlib.contextmanager
    def client(self, *, timeout: Timeout = Default.TIMEOUT) -> Iterator[Client]:
        """A connection for the calls of a `with` block, for example of requests(). `timeout`: of the
        wait for a free connection. Raises ConnectFailed, ResponseTimeout, ConnectionLost or NotOwner."""
        with self._lend(Repetition(Deadline(limit(timeout, self.timeout)), None)) as client:
            client.timeout = self.timeout
            yield client

    @staticmethod
    def _ask(client: Client, request: bytes, deadline: Deadline) -> bytes:
        try:
            return client.request(request, timeout=deadline.left())
        except ResponseTimeout:
            raise ResponseTimeout(f"no response within {deadline.seconds} s") from None

    @contextlib.contextmanager
    def _lend(self, repetition: Repetition) -> Iterator[Client]:
        self._check()
        permit = self._permits.take(repetition.deadline)
        if permit is None:
            raise ResponseTimeout(f"no connection of the pool was free within {repetition.deadline.seconds} s")
        try:
            self._check()
            client = self._usable(repetition) or Client(self._host, self._port, **self._options,
                                              connect_timeout=repetition.left(self._connect_timeout))
            try:
                yield client
            finally:
                self._take_back(client)
        finally:
            self._permits.give(permit)

    def _usable(self, repetition: Repetition) -> Optional[Client]:
        """A connection that is not lost, as far as that is known; None: there is none."""
        with contextlib.suppress(IndexError):
            while True:
                client = self._idle.pop()
                if client._is_usable():
                    return client
                client.close()
                repetition.begin()
        return None

    def _take_back(self, client: Client) -> None:
        """Keeps a connection, unless it is lost or the response to an earlier request may still come:
        the next call would wait for that."""
        if not client._is_idle():
            client.close()
            return
        self._idle.append(client)
        if self._closed:
            self.close()

    def _check(self) -> None:
        if os.getpid() != self._process:
            raise NotOwner(f"this pool belongs to process {self._process}: make a new one after a fork")
        if self._closed:
            raise ConnectionLost("this pool was closed")
