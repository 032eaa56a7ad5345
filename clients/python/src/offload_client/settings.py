"""Addresses as URLs, and time limits of single calls."""
from __future__ import annotations

import enum
import time
from typing import Optional, Tuple, Union
from urllib.parse import urlsplit

PORT = 12345
SHORTEST_WAIT = 0.001


class Default(enum.Enum):
    """The limit of a call that names none."""

    TIMEOUT = "the client's timeout"

    def __repr__(self) -> str:
        return self.value


Timeout = Union[float, None, Default]


def limit(timeout: Timeout, default: Optional[float]) -> Optional[float]:
    """The seconds of a call; None: for ever."""
    return default if isinstance(timeout, Default) else timeout


class Deadline:
    """The end of a number of seconds; None: never."""

    def __init__(self, seconds: Optional[float]) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self, most: Optional[float] = None) -> Optional[float]:
        """Seconds, at least 0 and at most `most`; None: no limit."""
        if self._end is None:
            return most
        left = max(self._end - time.monotonic(), 0)
        return left if most is None else min(left, most)

    def wait(self, share: int = 1) -> Optional[float]:
        """The limit of a wait of a socket that may use one part in `share` of the time that is left.
        At least SHORTEST_WAIT, as a socket takes 0 for "do not wait"."""
        left = self.left()
        return None if left is None else max(left / share, SHORTEST_WAIT)


def split_url(url: str) -> Tuple[str, int, bool]:
    """Host, port, and whether to use TLS, of "offload://HOST:PORT", or "offloads://" for TLS. Raises
    ValueError."""
    parts = urlsplit(url)
    extra = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in ("offload", "offloads") or not parts.hostname or extra:
        raise ValueError(f"invalid URL {url!r}; offload://HOST:PORT is allowed, or offloads:// for TLS")
    return parts.hostname, PORT if parts.port is None else parts.port, parts.scheme == "offloads"
