"""Frames of the wire protocol's version 1 (docs/reference/wire-protocol.md): bytes, no I/O."""
from __future__ import annotations

import enum
import struct
from typing import Iterator, NamedTuple, Tuple, Union

from .errors import ProtocolError

Payload = Union[bytes, bytearray, memoryview]

HEADER = struct.Struct(">III")  # wire_size, msg_id, length
MAX_MESSAGE_LENGTH = 16 << 20  # bytes of payload that an offload-server can be set to take
MAX_ERROR_LENGTH = 4096  # far above the sentences that there are


class MessageId(enum.IntEnum):
    REQUEST = 4
    RESPONSE = 5
    ERROR = 6


class Frame(NamedTuple):
    message_id: MessageId  # RESPONSE or ERROR
    payload: bytes


def encode_frame(message_id: int, payload: bytes) -> bytes:
    return HEADER.pack(HEADER.size + len(payload), message_id, len(payload)) + payload


def request_payload(payload: Payload) -> bytes:
    """A copy of the payload that cannot change. Raises TypeError if it is not bytes-like, ValueError
    if no server would take it."""
    copy = payload if type(payload) is bytes else bytes(memoryview(payload))
    if len(copy) > MAX_MESSAGE_LENGTH:
        raise ValueError(f"a request must have at most {MAX_MESSAGE_LENGTH} bytes, not {len(copy)}")
    return copy


def decode_error(payload: bytes) -> Tuple[int, str]:
    """The code and the text of an error frame, the latter as it can be printed. 4 bytes at least."""
    text = payload[4:].decode("utf-8", "replace")
    return int.from_bytes(payload[:4], "big"), "".join(map(_printable, text))


def _printable(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


class FrameDecoder:
    """Cuts what a server sends into frames. A header is judged before its payload has come, so that
    no more is ever held than the longest response and one piece of data."""

    def __init__(self, max_response_length: int = MAX_MESSAGE_LENGTH) -> None:
        self._max_response_length = max_response_length
        self._buffer = bytearray()

    @property
    def inside_frame(self) -> bool:
        return bool(self._buffer)

    def decode(self, data: bytes) -> Iterator[Frame]:
        """The frames that `data` completes; all of them have to be taken. Raises ProtocolError at the
        first that is malformed: nothing that follows it means anything."""
        self._buffer += data
        start = 0
        try:
            while len(self._buffer) - start >= HEADER.size:
                message_id, length = self._check(*HEADER.unpack_from(self._buffer, start))
                end = start + HEADER.size + length
                if len(self._buffer) < end:
                    break
                yield Frame(message_id, bytes(self._buffer[start + HEADER.size:end]))
                start = end
        finally:
            del self._buffer[:start]

    def _check(self, wire_size: int, msg_id: int, length: int) -> Tuple[MessageId, int]:
        if wire_size != HEADER.size + length:
            raise ProtocolError(f"a frame of {wire_size} bytes says that its payload has {length}")
        if msg_id == MessageId.ERROR:
            if not 4 <= length <= MAX_ERROR_LENGTH:
                raise ProtocolError(f"an error frame with {length} bytes of payload")
            return MessageId.ERROR, length
        # The reference server echoes the request's.
        if msg_id not in (MessageId.RESPONSE, MessageId.REQUEST):
            raise ProtocolError(f"a frame with msg_id {msg_id} instead of a response")
        if length > self._max_response_length:
            raise ProtocolError(
                f"a response of {length} bytes; at most {self._max_response_length} are allowed")
        return MessageId.RESPONSE, length
