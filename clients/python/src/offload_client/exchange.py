"""Which response is whose, for both clients: no I/O, no waiting."""
from __future__ import annotations

from collections import deque
from typing import Deque, Generic, Optional, Protocol, Tuple, Type, TypeVar

from .codec import Frame, FrameDecoder, MessageId, decode_error, encode_frame
from .errors import (CLOSING, OF_CONNECTION, ConnectionLost, OffloadError, ProtocolError,
                     RequestRefused, refusal_message)


class Slot(Protocol):
    """Receives the outcome of a request: an asyncio.Future, for example. One that is done when the
    outcome comes was given up by its caller."""

    def done(self) -> bool: ...
    def set_result(self, result: bytes, /) -> None: ...
    def set_exception(self, exception: BaseException, /) -> None: ...


AnySlot = TypeVar("AnySlot", bound=Slot)


class Iteration:
    """Records whether an iteration of requests() has reached its end. A generator that an exception ended
    looks the same afterwards as one that has reached it."""

    def __init__(self) -> None:
        self.complete = False

    def check(self) -> Optional[bytes]:
        """Raises OffloadError if an exception ended the iteration."""
        if not self.complete:
            raise OffloadError("an exception has ended this iteration: not all requests were answered")
        return None


class Exchange(Generic[AnySlot]):
    """The requests of a connection that wait for their responses, which come in the same order. Where an
    exception interrupts a function, lose() still reaches each slot that has no outcome: a request is
    removed after that."""

    def __init__(self, max_response_length: int) -> None:
        self._decoder = FrameDecoder(max_response_length)
        self._waiting: Deque[Tuple[bytes, AnySlot]] = deque()
        self._reason: Optional[Tuple[int, str]] = None  # the server's, for closing the connection
        self._lost: Optional[Tuple[Type[ConnectionLost], str]] = None

    @property
    def lost(self) -> bool:
        return self._lost is not None

    @property
    def ending(self) -> bool:
        """Whether it is lost, or the server has said that it closes it: it takes no more requests then."""
        return self.lost or self._reason is not None

    @property
    def idle(self) -> bool:
        """Whether it is not ending, and no response can come, not even one that its caller gave up."""
        return not self.ending and not self._waiting

    def send(self, request: bytes, slot: AnySlot) -> bytes:
        """The frame to be sent; nothing if the connection is lost, which the slot then says."""
        if self.lost:
            self.fail(request, slot)
            return b""
        self._waiting.append((request, slot))
        return encode_frame(MessageId.REQUEST, request)

    def receive(self, data: bytes) -> None:
        """Bytes from the server; none at the end of the stream. The connection may be lost then."""
        if not data:
            where = "inside a frame" if self._decoder.inside_frame else "the connection"
            self.lose(f"the server ended {where}")
            return
        try:
            for frame in self._decoder.decode(data):
                self._take(frame)
        except ProtocolError as error:
            self.lose(str(error), ProtocolError)

    def lose(self, message: str, kind: Type[ConnectionLost] = ConnectionLost) -> None:
        """Nothing will come any more. Only the first message counts."""
        if self._lost is None:
            if self._reason is not None and kind is ConnectionLost:
                message = f"{message}: {refusal_message(*self._reason)}"
            self._lost = (kind, message)
        for request, slot in list(self._waiting):
            self.fail(request, slot)
        self._waiting.clear()

    def fail(self, request: bytes, slot: AnySlot) -> None:
        """Tells the slot why the connection was lost, unless the slot is done."""
        assert self._lost is not None
        kind, message = self._lost
        if not slot.done():
            slot.set_exception(kind(message, (request,), *(self._reason or ())))

    def _take(self, frame: Frame) -> None:
        if frame.message_id == MessageId.ERROR:
            self._refuse(*decode_error(frame.payload))
        elif not self._waiting:
            raise ProtocolError("a response without a request")
        else:
            _, slot = self._waiting[0]
            if not slot.done():
                slot.set_result(frame.payload)
            self._waiting.popleft()

    def _refuse(self, code: int, text: str) -> None:
        if code in CLOSING or code in OF_CONNECTION or not self._waiting:
            self._reason = (code, text)
        if code not in OF_CONNECTION and self._waiting:
            request, slot = self._waiting[0]
            if not slot.done():
                slot.set_exception(RequestRefused(code, text, (request,)))
            self._waiting.popleft()
