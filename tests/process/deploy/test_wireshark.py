"""deploy/wireshark: tshark shows frames, errors, malformed frames and the connections of server and worker."""
import re
import shutil
import sys

import pytest

from harness import ROOT, free_port, wait_until
from wire import Wire, frame, header

sys.path.insert(0, str(ROOT / "tests/process/comch"))

from capture import CLIENT, SERVER, Capture  # noqa: E402, after the line above
from relay import Relay  # noqa: E402, after the line above

pytestmark = pytest.mark.skipif(not shutil.which("tshark"), reason="needs tshark")
PORT = 2000  # one that the dissector does not know: it recognizes the first bytes, if they are in one segment
AS_FRAMES = ("-d", f"tcp.port=={PORT},offload")


@pytest.fixture
def capture(tmp_path):
    return Capture(tmp_path / "recorded.pcap")


def recorded(relay, number, direction):
    """Returns the bytes of one direction of a connection through the relay."""
    return b"".join(chunk for at, way, chunk in relay.heard if (at, way) == (number, direction))


@pytest.fixture(scope="module")
def conversation(shared_stage):
    """Returns what a client and a server said to each other: requests, and one that ends the connection."""
    server, _ = shared_stage.pair("--service", "reverse")
    with Relay(server.port) as relay, Wire(relay.port) as wire:
        wire.send(frame(b"hello") + frame(b"") + frame(b"x" * 200))
        wire.expect([b"olleh", b"", b"x" * 200])
        wire.send(header(16, 99, 4) + b"lost")
        assert wire.receive_error() == 4
        return recorded(relay, 0, "to server"), recorded(relay, 0, "to worker")


# One byte in each segment, a header in two of them, and several frames in one.
@pytest.mark.parametrize("segment, passes", [(1, ()), (7, ("-2",)), (1400, ())])
def test_frames_of_any_segments(capture, conversation, segment, passes):
    to_server, to_client = conversation
    there, back = capture.connect(PORT, 40000)
    capture.send(there, to_server, segment)
    capture.send(back, to_client, segment)
    names = ("frame.number", "offload.msg_id", "offload.length", "offload.payload", "offload.number",
             "offload.request_in", "offload.response_in", "offload.error.code")
    packets, ids, lengths, payloads, numbers, requests, responses, codes = [
        [value for values in column for value in values]
        for column in zip(*capture.fields("offload", *names, options=(*AS_FRAMES, *passes)))]
    assert ids == ["4", "4", "4", "99", "5", "5", "5", "6"]
    assert lengths[:7] == ["5", "0", "200", "4", "5", "0", "200"]
    assert payloads == [b"hello".hex(), (b"x" * 200).hex(), b"olleh".hex(), (b"x" * 200).hex()]
    assert numbers == ["0", "1", "2", "0", "1", "2"]
    assert len(requests) == 3 and set(requests) <= set(packets)
    assert len(responses) == (3 if passes else 0) and set(responses) <= set(packets)  # known in the second pass only
    assert codes == ["4"]
    malformed = capture.all_fields("_ws.expert.group == \"Malformed\"", "_ws.expert.message", options=AS_FRAMES)
    assert malformed == ["unknown_message: msg_id 99"]


@pytest.mark.parametrize("bad, words", [
    (header(11, 4, 0), "frame_too_short: wire_size 11 is less than 12"),
    (header(0, 0, 0)[:4], "frame_too_short: wire_size 0 is less than 12"),
    (header(12 + (1 << 24) + 1, 4, 1), "frame_too_long: a payload of 16777217 bytes, of 16777216 at most"),
    (header(20, 4, 9) + bytes(8), "length_mismatch: wire_size 20 is not 12 + 9"),
    (header(12, 15, 0), "unknown_message: msg_id 15"),
    (header(12, 16, 0), "misplaced_message: hello"),
    (header(12, 5, 0), "misplaced_message: response from the client"),
    (header(15, 6, 3) + b"why", "misplaced_message: error from the client"),
])
def test_a_malformed_frame_is_shown_as_one(capture, bad, words):
    there, _ = capture.connect(PORT, 40000)
    capture.send(there, frame(b"good"))
    capture.send(there, bad)
    [row] = capture.fields("_ws.expert.group == \"Malformed\"", "_ws.expert.message", "_ws.col.Info", "frame.number")
    assert row == [[words], [f"[Malformed: {words}]"], ["5"]]


def test_a_payload_longer_than_the_server_takes_is_malformed(capture):
    there, _ = capture.connect(PORT, 40000)
    capture.send(there, frame(b"12345678"))
    assert capture.all_fields("offload", "_ws.expert.message") == []
    assert capture.all_fields("offload", "_ws.expert.message", options=("-o", "offload.longest:7")) == \
        ["frame_too_long: a payload of 8 bytes, of 7 at most"]


def test_an_error_has_its_name_and_text(capture):
    there, back = capture.connect(PORT, 40000)
    capture.send(there, frame(b"hello"))
    capture.send(back, frame(b"\0\0\0\6no worker is attached", 6))
    [row] = capture.fields("offload.error.code", "_ws.col.Info", "offload.error.text", "offload.request_in")
    assert row == [["error worker_unavailable"], ["no worker is attached"], ["4"]]
    assert "Code: worker_unavailable (6)" in capture.text("-V")


@pytest.fixture(scope="module")
def attachment(shared_stage):
    """Returns the bytes of the two connections of server and worker over TCP without TLS, each way."""
    port = free_port()
    server = shared_stage.program("offload-server", "--comch", f"tcp:127.0.0.1:{port}", "--insecure", "-p", 0)
    server.wait_for_log("waiting for a worker")
    with Relay(port) as relay:
        worker = shared_stage.program("offload-worker", "--comch", f"tcp:127.0.0.1:{relay.port}", "--insecure",
                               "--backend", "cpu")
        with Wire(int(server.wait_for_log(r"listening on \S+:(\d+) with")[1])) as wire:
            wire.send(frame(b"hello"))
            wire.expect([b"olleh"])
            wire.ask([b"%d" % number for number in range(1000, 1064)])
        assert worker.terminate() == 0
        wait_until(lambda: recorded(relay, 0, "to server").endswith(frame(b"", 1)), "its last message has passed")
        return [[recorded(relay, number, way) for way in ("to server", "to worker")] for number in range(2)]


@pytest.mark.parametrize("segment", [3, 1400])
def test_server_and_worker(capture, attachment, segment):
    for number, (to_server, to_worker) in enumerate(attachment):
        there, back = capture.connect(PORT, 40000 + number)
        if number == 0:
            capture.send(there, to_server, segment)
            capture.send(back, to_worker, segment)
        else:
            # The worker's first message, and the server's answer, come before the contents.
            hello = int.from_bytes(to_server[:4], "big")
            capture.send(there, to_server[:hello], segment)
            capture.send(back, to_worker, segment)
            capture.send(there, to_server[hello:], segment)
    as_workers = ("-d", f"tcp.port=={PORT},offload_worker") if segment < 16 else ()

    def shown(chosen, name):
        return capture.all_fields(chosen, name, options=as_workers)

    messages = shown("offload_worker", "offload.msg_id")
    assert messages[0] == "16"
    assert {int(one) for one in messages} == {0, 1, 2, 3, 5, 16, 17, 18, 19, 22, 23, 24, 25}
    assert shown("offload.msg_id == 16", "offload_worker.backend") == ["cpu"]
    assert shown("offload.msg_id == 16", "offload_worker.service") == ["reverse", "echo", "crc32c"]
    assert shown("offload.msg_id == 18", "offload_worker.depth") == ["128"]
    assert shown("offload_worker.reason", "offload_worker.reason") == ["2"]
    assert b"hello".hex() in shown("offload_worker.message", "offload_worker.message")
    assert "Message: hello (16)" in capture.text("-V", *as_workers)
    # All requests are there, alone or in batches, and as many responses.
    contents = capture.fields("offload_worker.content_length", "offload_worker.count", "ip.src",
                              options=as_workers)
    count = {place: sum(max(int(one), 1) for counts, [source] in contents if source == place for one in counts)
             for place in (CLIENT, SERVER)}
    assert count == {CLIENT: 65, SERVER: 65}
    assert shown("_ws.expert.group == \"Malformed\"", "_ws.expert.message") == []


HELLO = b"OFLD\0\4" + bytes(12) + b"\3cpu\1\4echo"


@pytest.mark.parametrize("bad, words", [
    (frame(b"\0" * 7, 19), "the payload of keep_alive is too short"),
    (frame(b"\0" * 9, 19), "the payload of keep_alive is too long"),
    (frame(HELLO[:-1], 16), "the payload of hello is too short"),
    (frame(HELLO + b"x", 16), "the payload of hello is too long"),
    (frame(b"", 4), "misplaced_message: request"),
    (frame(b"", 77), "unknown_message: msg_id 77"),
    (frame(bytes(1025), 26), "frame_too_long: a payload of 1025 bytes, of 1024 at most"),
])
def test_a_malformed_control_message_is_shown_as_one(capture, bad, words):
    there, _ = capture.connect(PORT, 40000)
    capture.send(there, frame(HELLO, 16))
    capture.send(there, bad)
    assert capture.all_fields("_ws.expert.group == \"Malformed\"", "_ws.expert.message") == [words]


def data(sequence, length, count, content):
    return sequence.to_bytes(8, "big") + length.to_bytes(4, "big") + count.to_bytes(2, "big") + b"\0\0" + content


@pytest.mark.parametrize("to_worker, bad, words", [
    (True, data(0, 4, 2, b"\1\0\2\0"), "a message longer than its batch"),
    (True, data(0, 4, 1, b"\1\0ab"), "bytes behind the last message"),
    (True, data(0, 3, 2, b"abc"), "a batch of 2 messages in 3 bytes"),
    (True, data(0, 200, 65, bytes(200)), "a batch of 65 messages in 200 bytes"),
    (False, data(0, 12, 2, frame(b"", 5)), "fewer frames than its count"),
    (False, data(0, 12, 1, frame(b"", 4)), "a frame that is no response"),
    (False, data(0, 13, 1, frame(b"", 5) + b"x"), "bytes behind the last frame"),
])
def test_a_malformed_batch_is_shown_as_one(capture, to_worker, bad, words):
    there, back = capture.connect(PORT, 40000)
    capture.send(there, frame(b"\0\0\0\0" + b"t" * 16 + b"\0\0", 22))
    capture.send(back, frame(b"", 23))
    capture.send(back if to_worker else there, bad)
    assert capture.all_fields("_ws.expert.group == \"Malformed\"", "_ws.expert.message") == [words]


def test_a_datagram(capture):
    ways = (CLIENT, 5000, SERVER, PORT), (SERVER, PORT, CLIENT, 5000)
    for way, kind, payload in ((ways[0], 4, b"hello"), (ways[1], 5, b"olleh")):
        capture.send_datagram(way, (7).to_bytes(8, "big") + frame(payload, kind))
    shown = capture.fields("offload.sequence == 7", "offload.msg_id", "offload.payload",
                           options=("-d", f"udp.port=={PORT},offload"))
    assert shown == [[["4"], [b"hello".hex()]], [["5"], [b"olleh".hex()]]]


def test_other_traffic_is_not_taken(capture):
    there, back = capture.connect(PORT, 40000)
    capture.send(there, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    capture.send(back, b"\0\0\0\x0c\0\0\0\4\0\0\0\1")  # a length that does not match
    assert capture.fields("offload or offload_worker", "frame.number") == []


def test_its_names_are_those_of_the_page_and_of_the_code():
    lua = (ROOT / "deploy/wireshark/offload.lua").read_text()
    listed = dict(re.findall(r"\[(\d+)\] = \"(\w+)\"", re.search(r"local CODES = {(.*?)\n}", lua, re.DOTALL)[1]))
    codes = re.search(r"enum class Refusal.*?};", (ROOT / "lib/protocol/frame.hpp").read_text(), re.DOTALL)[0]
    assert listed == {number: name for name, number in re.findall(r"(\w+) = (\d+),", codes)}
    listed = dict(re.findall(r"\[(\d+)\] = \"(\w+)\"", re.search(r"local MESSAGES = {(.*?)\n}", lua, re.DOTALL)[1]))
    ids = re.search(r"enum class MessageId.*?};", (ROOT / "lib/protocol/frame.hpp").read_text(), re.DOTALL)[0]
    known = {int(number) for _, number in re.findall(r"(\w+) = (\d+),", ids)}
    assert {int(number) for number in listed} == known
    version = re.search(r"kControlVersion = (\d+);", (ROOT / "lib/protocol/control.hpp").read_text())[1]
    assert f"local CONTROL_VERSION = {version}" in lua
