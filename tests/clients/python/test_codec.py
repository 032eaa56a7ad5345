"""The Python client's frames: bytes in, frames or a ProtocolError out."""
import random
import struct

import pytest

from offload_client import MAX_MESSAGE_LENGTH, ProtocolError
from offload_client.codec import (MAX_ERROR_LENGTH, FrameDecoder, MessageId, decode_error,
                                  encode_frame, request_payload)

REQUEST, RESPONSE, ERROR = MessageId.REQUEST, MessageId.RESPONSE, MessageId.ERROR


def header(wire_size, msg_id, length):
    return struct.pack(">III", wire_size, msg_id, length)


def decoded(data, **limits):
    return list(FrameDecoder(**limits).decode(data))


@pytest.mark.parametrize("payload", [b"", b"\0", b"hello", bytes(range(256)) * 40])
@pytest.mark.parametrize("msg_id", [REQUEST, RESPONSE])
def test_what_was_encoded_is_decoded(payload, msg_id):
    data = encode_frame(msg_id, payload)
    assert data == header(12 + len(payload), msg_id, len(payload)) + payload
    # The reference server's responses have the request's msg_id.
    assert decoded(data) == [(RESPONSE, payload)]


def test_frames_in_pieces_of_any_size():
    source = random.Random(1)
    payloads = [source.randbytes(source.choice((0, 1, 11, 12, 13, 400))) for _ in range(300)]
    data = b"".join(encode_frame(RESPONSE, payload) for payload in payloads)
    for most in (1, 2, 13, 50, 5000):
        decoder, got, start = FrameDecoder(), [], 0
        while start < len(data):
            end = start + source.randint(1, most)
            got += [frame.payload for frame in decoder.decode(data[start:end])]
            start = end
        assert got == payloads
        assert not decoder.inside_frame


def test_it_knows_when_it_is_inside_a_frame():
    data = encode_frame(RESPONSE, b"hello")
    decoder = FrameDecoder()
    for byte in data[:-1]:
        assert list(decoder.decode(bytes([byte]))) == []
        assert decoder.inside_frame
    assert list(decoder.decode(data[-1:])) == [(RESPONSE, b"hello")]
    assert not decoder.inside_frame


@pytest.mark.parametrize("data, message", [
    (header(0, RESPONSE, 0), "of 0 bytes says"),
    (header(11, RESPONSE, 0xffffffff), "of 11 bytes says"),
    (header(12, RESPONSE, 1), "of 12 bytes says"),
    (header(18, RESPONSE, 5) + b"hello!", "of 18 bytes says"),
    (header(0, RESPONSE, 0xfffffff4), "of 0 bytes says"),  # 12 + length is 2^32
    (header(12 + 101, RESPONSE, 101), "a response of 101 bytes; at most 100 are allowed"),
    (header(12 + 101, REQUEST, 101), "a response of 101 bytes; at most 100 are allowed"),
    (header(0xffffffff, RESPONSE, 0xfffffff3), "a response of 4294967283 bytes"),
    (header(12, ERROR, 0), "an error frame with 0 bytes"),
    (header(15, ERROR, 3), "an error frame with 3 bytes"),
    (header(12 + MAX_ERROR_LENGTH + 1, ERROR, MAX_ERROR_LENGTH + 1), "an error frame with 4097"),
    *((header(12, msg_id, 0), f"msg_id {msg_id} instead")
      for msg_id in (0, 1, 3, 7, 16, 0x05000000, 0xffffffff)),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", "a frame of 1213486160 bytes says"),
])
def test_malformed_frames(data, message):
    """The error follows from the header alone, and the frames before it are not lost."""
    decoder = FrameDecoder(max_response_length=100)
    frames = decoder.decode(encode_frame(RESPONSE, b"good") + data[:12])
    assert next(frames).payload == b"good"
    with pytest.raises(ProtocolError, match=message):
        next(frames)


def test_the_longest_response():
    limits = {"max_response_length": 100}
    assert decoded(encode_frame(RESPONSE, bytes(100)), **limits) == [(RESPONSE, bytes(100))]
    error = struct.pack(">I", 1) + b"x" * (MAX_ERROR_LENGTH - 4)
    assert decoded(encode_frame(ERROR, error), **limits) == [(ERROR, error)]


def test_random_bytes_are_frames_or_refused():
    """The decoder holds at most a frame, and raises only ProtocolError, whatever bytes come."""
    source = random.Random(2)
    refused = 0
    for _ in range(2000):
        length = source.choice((0, 3, 4, 20))
        data = bytearray(encode_frame(source.choice((RESPONSE, ERROR)), source.randbytes(length)))
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
        try:
            decoded(bytes(data), max_response_length=64)
        except ProtocolError:
            refused += 1
    assert refused > 500


def test_errors():
    assert decode_error(struct.pack(">I", 2) + "zu groß".encode()) == (2, "zu groß")
    assert decode_error(struct.pack(">I", 0xffffffff)) == (0xffffffff, "")
    # A server's text is printable after decoding.
    code, text = decode_error(struct.pack(">I", 6) + b"\x1b[2J\xff\n\0end")
    assert code == 6 and text.isprintable() and text.endswith("end")
    assert text.startswith("\\x1b[2J\ufffd\\n\\x00")


def test_requests():
    payload = bytearray(b"hello")
    copy = request_payload(payload)
    payload[0] = 0
    assert copy == b"hello"
    assert request_payload(memoryview(b"hello")[1:]) == b"ello"
    assert len(request_payload(bytes(MAX_MESSAGE_LENGTH))) == MAX_MESSAGE_LENGTH
    with pytest.raises(ValueError, match="at most 16777216 bytes"):
        request_payload(bytes(MAX_MESSAGE_LENGTH + 1))
    for wrong in ("hello", 5, None):
        with pytest.raises(TypeError):
            request_payload(wrong)
