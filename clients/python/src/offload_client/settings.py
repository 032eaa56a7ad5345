"""Addresses as URLs, and time limits of single calls."""
from __future__ import annotations

import enum
from typing import Optional, Tuple, Union
from urllib.parse import urlsplit

PORT = 12345


class Default(enum.Enum):
    """The limit of a call that names none."""

    TIMEOUT = "the client's timeout"

    def __repr__(self) -> str:
        return self.value


Timeout = Union[float, None, Default]


def limit(timeout: Timeout, default: Optional[float]) -> Optional[float]:
    """The seconds of a call; None: for ever."""
    return default if isinstance(timeout, Default) else timeout


def split_url(url: str) -> Tuple[str, int, bool]:
    """Host, port, and whether to use TLS, of "offload://HOST:PORT", or "offloads://" for TLS. Raises
    ValueError."""
    parts = urlsplit(url)
    extra = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in ("offload", "offloads") or not parts.hostname or extra:
        raise ValueError(f"invalid URL {url!r}; offload://HOST:PORT is allowed, or offloads:// for TLS")
    return parts.hostname, PORT if parts.port is None else parts.port, parts.scheme == "offloads"
