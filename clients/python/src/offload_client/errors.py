"""The errors of this package. Every one is an OffloadError."""
from __future__ import annotations

import enum
from typing import Iterable, Optional, Tuple


class Refusal(enum.IntEnum):
    """The code of an error frame, as docs/reference/wire-protocol.md has them. A server may know more."""

    FRAME_TOO_SHORT = 1
    FRAME_TOO_LONG = 2
    LENGTH_MISMATCH = 3
    UNKNOWN_MESSAGE = 4
    MISPLACED_MESSAGE = 5
    WORKER_UNAVAILABLE = 6
    SHUTTING_DOWN = 7
    WORKER_FAILED = 8
    REQUEST_TIMED_OUT = 13
    OUT_OF_MEMORY = 20
    FRAME_TIMED_OUT = 21
    IDLE_TIMED_OUT = 22
    TOO_MANY_CLIENTS = 23
    TOO_MANY_OF_ADDRESS = 24
    TLS_REQUIRED = 25

    @classmethod
    def of(cls, code: int) -> Optional[Refusal]:
        """None for a code that this package does not know."""
        return cls(code) if code in cls._value2member_map_ else None


# The server closes the connection after these, and means the first unanswered request with the first
# six; the others are about the connection.
BAD_FRAMES = frozenset(range(Refusal.FRAME_TOO_SHORT, Refusal.MISPLACED_MESSAGE + 1))
CLOSING = BAD_FRAMES | {Refusal.SHUTTING_DOWN}
OF_CONNECTION = frozenset(range(Refusal.OUT_OF_MEMORY, Refusal.TLS_REQUIRED + 1))


class OffloadError(Exception):
    """`unanswered` has the requests of the call that got no response, the oldest first. The server
    may have processed any of them. For requests(), these are all that were taken from the iterable:
    they and the rest of the iterable are what is left to do."""

    def __init__(self, message: str, unanswered: Iterable[bytes] = ()) -> None:
        super().__init__(message)
        self.unanswered: Tuple[bytes, ...] = tuple(unanswered)


class ConnectFailed(OffloadError, ConnectionError):
    """The connection could not be established: resolution, TCP or TLS failed; __cause__ has the reason."""


class RequestRefused(OffloadError):
    """The server answered with an error frame instead of a response. Other requests are not
    concerned, unless it closes the connection, too: these then get ConnectionLost."""

    def __init__(self, code: int, text: str, unanswered: Iterable[bytes] = ()) -> None:
        self.code = code
        self.refusal = Refusal.of(code)
        self.text = text  # for people; it may change
        super().__init__(refusal_message(code, text), unanswered)


class ResponseTimeout(OffloadError, TimeoutError):
    """No response in time. The connection stays usable: the response is dropped when it comes."""


class ConnectionLost(OffloadError, ConnectionError):
    """The connection has ended. If the server said why, by an error frame, code and text have it.
    `unsent`: no request of `unanswered` was sent whole, so the server processes none of them."""

    def __init__(self, message: str, unanswered: Iterable[bytes] = (), code: Optional[int] = None,
                 text: str = "") -> None:
        self.code = code
        self.refusal = None if code is None else Refusal.of(code)
        self.text = text
        self.unsent = False
        super().__init__(message, unanswered)


class NotOwner(OffloadError, RuntimeError):
    """Another process, thread or event loop uses this client, which refuses the call. Nothing was
    sent, and the connection stays as it is."""


class ProtocolError(ConnectionLost):
    """The server sent what the protocol does not allow. The connection was closed."""


def refusal_message(code: int, text: str) -> str:
    refusal = Refusal.of(code)
    return f"{refusal.name.lower() if refusal else 'unknown code'} ({code}): {text}"
