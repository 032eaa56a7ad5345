"""How long a call connects again after its connection was lost, and which requests are sent twice."""
from __future__ import annotations

from typing import Optional

from .errors import ConnectFailed, ConnectionLost, OffloadError, ProtocolError
from .settings import Deadline

# Pauses between attempts to reconnect, in seconds. The first attempt is made at once.
SHORTEST_PAUSE = 0.01
LONGEST_PAUSE = 0.5


class Pauses:
    """The seconds before each attempt to reconnect."""

    def __init__(self) -> None:
        self._next = 0.0

    def next(self) -> float:
        pause = self._next
        self._next = min(max(2 * pause, SHORTEST_PAUSE), LONGEST_PAUSE)
        return pause

    def reset(self) -> None:
        self._next = 0.0


class Repetition:
    """The limits of a call that may be made again. reconnect_timeout: seconds from the loss, or from its
    first error on; None: it is not made again."""

    def __init__(self, deadline: Deadline, reconnect_timeout: Optional[float], idempotent: bool = False) -> None:
        self.deadline = deadline
        self._reconnect_timeout = reconnect_timeout
        self._idempotent = idempotent
        self._patience: Optional[Deadline] = None

    def left(self, most: Optional[float] = None) -> Optional[float]:
        """Seconds for the next attempt, at most `most`; None: no limit."""
        return self.deadline.left(most if self._patience is None else self._patience.left(most))

    def left_after(self, error: OffloadError) -> float:
        """Seconds for attempts after this error; 0: the call ends with it."""
        if self._reconnect_timeout is None or not self._may_follow(error):
            return 0.0
        self.begin()
        return self.left() or 0.0

    def begin(self) -> None:
        """The connection was lost, or an attempt failed: from now on there is a limit."""
        if self._reconnect_timeout is not None:
            self._patience = self._patience or Deadline(self._reconnect_timeout)

    def _may_follow(self, error: OffloadError) -> bool:
        if isinstance(error, ConnectionLost) and not isinstance(error, ProtocolError):
            return error.unsent or self._idempotent
        return isinstance(error, ConnectFailed)
