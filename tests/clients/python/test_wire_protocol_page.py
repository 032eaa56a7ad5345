"""docs/reference/wire-protocol.md and the Python client say the same, byte for byte."""
import re
import struct
from pathlib import Path

import pytest

from offload_client import Refusal
from offload_client.codec import FrameDecoder, MessageId, decode_error, encode_frame

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/reference/wire-protocol.md").read_text()
# Section 1: what is between server and client.
SECTION = PAGE[PAGE.index("## 1."):PAGE.index("## 2.")]


@pytest.fixture(scope="module", name="example")
def fixture_example():
    """The example's frames in their order, each as its bytes and the comments beside them."""
    block = re.search(r"```\n(.*?# request.*?)```", SECTION, re.DOTALL)[1]
    frames = []
    for lines in block.strip().split("\n\n"):
        columns = [line.split("  # ") for line in lines.splitlines()]
        frames.append((bytes.fromhex("".join(bytes_ for bytes_, _ in columns)),
                       [comment for _, comment in columns]))
    assert len(frames) == 3
    return frames


def quoted(comments):
    return "".join(text for comment in comments for text in re.findall('"(.*)"', comment)).encode()


def test_the_request_and_the_response(example):
    (request, of_request), (response, of_response), _ = example
    assert request == encode_frame(MessageId.REQUEST, quoted(of_request))
    assert response == encode_frame(MessageId.RESPONSE, quoted(of_response))
    assert quoted(of_response) == quoted(of_request)[::-1]
    assert list(FrameDecoder().decode(response)) == [(MessageId.RESPONSE, quoted(of_response))]


def test_the_error(example):
    error, comments = example[2]
    payload = struct.pack(">I", Refusal.WORKER_UNAVAILABLE) + quoted(comments)
    assert error == encode_frame(MessageId.ERROR, payload)
    assert list(FrameDecoder().decode(error)) == [(MessageId.ERROR, payload)]
    assert decode_error(payload) == (Refusal.WORKER_UNAVAILABLE, quoted(comments).decode())
    # The sentence is the server's.
    assert f'"{quoted(comments).decode()}"' in (ROOT / "lib/protocol/frame.cpp").read_text()


def test_the_numbers_beside_the_bytes(example):
    for data, comments in example:
        said = {name: int(value) for name, value in
                re.findall(r"(wire_size|msg_id|length) (\d+)", "\n".join(comments))}
        assert struct.unpack_from(">III", data) == (
            said["wire_size"], said["msg_id"], said["length"])
        code = re.search(r"code (\d+), (\w+)", "\n".join(comments))
        if code:
            assert Refusal(int(code[1])).name == code[2].upper()


def test_the_codes():
    """All that a client may see, and no other."""
    table = SECTION[SECTION.index("### Error frames"):]
    page = {}
    for codes, names, when in re.findall(r"^\| ([\d, –]+) \| (.*?) \| (.*?) \|", table, re.MULTILINE):
        if when != "control channel only":
            page.update(zip(map(int, codes.split(", ")), re.findall(r"`(\w+)`", names)))
    assert page == {refusal.value: refusal.name.lower() for refusal in Refusal}
