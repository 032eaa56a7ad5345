"""The control channel and the memory behind it, a second time from docs/wire-protocol.md and
docs/architecture.md: what it takes to play a worker or a server, well or badly."""
import fcntl
import mmap
import os
import socket
import struct

from harness import PATIENCE
from wire import ERROR, frame

START_SHUTDOWN, SHUTDOWN_COMPLETE, CONSUMER_ID_REQUEST, CONSUMER_ID_RESPONSE = 0, 1, 2, 3
HELLO, WELCOME, DESCRIPTOR, KEEP_ALIVE = 16, 17, 18, 19
CHALLENGE, PROOF, ATTACH_CHANNEL, CHANNEL_ATTACHED = 20, 21, 22, 23
DETACH, ASSIGNMENT = 24, 25

SERVER_LEAVES, TOGETHER, RELEASED = b"\0", b"\1", b"\2"  # payloads of START_SHUTDOWN
RINGS_DOORBELL, STANDS_BY, REPLACES = 1, 2, 4  # capabilities of a worker
VERSION = 4

MAGIC = 0x4f464c44
LONGEST = 1024


def names(*services):
    return struct.pack("B", len(services)) + b"".join(
        struct.pack("B", len(name)) + name for name in services)


def hello(magic=MAGIC, version=VERSION, capabilities=0, max_channels=64, max_length=16 << 20):
    return (struct.pack(">IHIII", magic, version, capabilities, max_channels, max_length) + b"\4fake"
            + names(b"reverse"))


def welcome(version=VERSION, channels=1, keep_alive_ms=1000, service=b"reverse"):
    return struct.pack(">HHI", version, channels, keep_alive_ms) + names(service)


LOCAL_READ, LOCAL_WRITE, PEER_PCIE = 1, 2, 32
READABLE, WRITABLE = LOCAL_READ | PEER_PCIE, LOCAL_READ | LOCAL_WRITE | PEER_PCIE
FOR_PROCESS, MEMFD = 1, 1


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 * (crc & 1)
    return crc ^ 0xffffffff


def region(region_bytes, access, version=1):
    """The export of a region of one memfd (docs/doca-core.md)."""
    body = struct.pack(">BIHBQQ", FOR_PROCESS, access, 1, MEMFD, 0, region_bytes)
    blob = struct.pack(">IHI", 0x4f464d52, version, 10 + len(body) + 4) + body
    return blob + struct.pack(">I", crc32c(blob))


def region_bytes(blob, access):
    """The length of the memory that a region's export is of."""
    length, = struct.unpack_from(">Q", blob, 26)
    assert blob == region(length, access), "no export as docs/doca-core.md has it"
    return length


def blob(content):
    return struct.pack(">H", len(content)) + content


def descriptor(channel, depth, max_length, request_bytes, response_bytes=None,
               access=READABLE, response_access=WRITABLE, version=1):
    """`response_bytes`: as many as for the requests, if not given."""
    responses = request_bytes if response_bytes is None else response_bytes
    return (struct.pack(">III", channel, depth, max_length)
            + blob(region(request_bytes, access, version))
            + blob(region(responses, response_access, version)) + struct.pack(">IB", 48, 0))


def consumer_id(channel):
    return struct.pack(">II", channel, channel)


def not_a_frame(msg_id, payload):
    """Messages that break the framing: each is to be one whole frame with up to 1024 bytes."""
    whole = frame(payload, msg_id)
    return {
        "one byte": b"x",
        "half a header": whole[:11],
        "half a frame": whole[:-1],
        "a byte too many": whole + b"x",
        "two frames": whole + whole,
        "too long": frame(bytes(LONGEST + 1), msg_id),
        "far too long": frame(bytes(65536), msg_id),
        "a lying size": struct.pack(">III", 0xffffffff, msg_id, 0xfffffff3) + payload,
        "an unknown kind": frame(b"", 99),
    }


class Control:
    """One end of a control channel. Every wait has a bound."""

    def __init__(self, connected):
        self.socket = connected
        self.socket.settimeout(PATIENCE)

    @classmethod
    def connect(cls, path):
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connected.connect(str(path))
        return cls(connected)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, msg_id, payload=b"", fds=()):
        self.send_raw(frame(payload, msg_id), fds)

    def send_raw(self, message, fds=()):
        socket.send_fds(self.socket, [message], fds)

    def receive(self):
        """The next message other than a keep-alive or an assignment, as (msg_id, payload,
        descriptors); None at the end."""
        while True:
            message, fds, _, _ = socket.recv_fds(self.socket, 12 + LONGEST, 4)
            if not message:
                return None
            wire_size, msg_id, length = struct.unpack_from(">III", message)
            assert wire_size == len(message) == 12 + length
            if msg_id not in (KEEP_ALIVE, ASSIGNMENT):
                return msg_id, message[12:], fds

    def expect(self, expected):
        """The payload and descriptors of the next message, which must be of this kind."""
        msg_id, payload, fds = self.receive() or (None, b"", [])
        assert msg_id == expected, f"message {msg_id} with {payload!r} in place of {expected}"
        return payload, fds

    def expect_refusal(self):
        """The code and the text of the error that comes next; after it the channel is closed."""
        payload, _ = self.expect(ERROR)
        self.expect_end()
        return struct.unpack_from(">I", payload)[0], payload[4:].decode()

    def expect_end(self):
        try:
            assert self.receive() is None
        except ConnectionError:
            pass  # closed with messages unread


def round_up(value, to):
    return (value + to - 1) // to * to


class Memory:
    """A channel's memory: requests, and responses. Sequences count slots from 0."""

    REQUEST_HEADER, RESPONSE_HEADER = 128, 256  # consumed; two doorbells, each 128 bytes
    VECTORS, VECTOR = 32, 16
    DATA = 12
    PACKED = (VECTORS - 1) * DATA
    LONGEST_BATCH = 5120

    def __init__(self, depth, max_length, fds=None, seals=fcntl.F_SEAL_SHRINK):
        """`fds`: a server's, where requests can only be read."""
        self.depth, self.max_length = depth, max(max_length, 4 * self.DATA)
        content = max(self.max_length, self.LONGEST_BATCH)
        self.stride = self.VECTORS * self.VECTOR + round_up(content + 16, 128)
        slots = depth * self.stride
        self.request_bytes = round_up(self.REQUEST_HEADER + slots, 4096)
        self.response_bytes = round_up(self.RESPONSE_HEADER + slots, 4096)
        own = fds is None
        self.fds = fds or [self.create(size, seals)
                           for size in (self.request_bytes, self.response_bytes)]
        self.requests = mmap.mmap(self.fds[0], self.request_bytes,
                                  access=mmap.ACCESS_WRITE if own else mmap.ACCESS_READ)
        self.responses = mmap.mmap(self.fds[1], self.response_bytes)

    @staticmethod
    def create(size, seals):
        fd = os.memfd_create("fake-channel", os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
        return fd

    def close(self):
        for mapped, fd in zip((self.requests, self.responses), self.fds):
            mapped.close()
            os.close(fd)

    def _part(self, sequence, response):
        """The memory of a slot, and where it begins in it."""
        first = self.RESPONSE_HEADER if response else self.REQUEST_HEADER
        return (self.responses if response else self.requests,
                first + sequence % self.depth * self.stride)

    def turn(self, sequence):
        return (sequence // self.depth << 1 | 1) & 0xffffffff

    def write(self, sequence, payload, response, length=None, status=0, turn=None, vectors=None,
              count=0):
        """Writes a message, by default a valid one, or a batch of `count`; `vectors`: how many of
        its data's."""
        memory, part = self._part(sequence, response)
        turn = self.turn(sequence) if turn is None else turn
        if len(payload) > self.PACKED:
            memory[part + 512:part + 512 + len(payload)] = payload
            pieces = []
        else:
            pieces = [payload[at:at + self.DATA] for at in range(0, len(payload), self.DATA)]
        for number, piece in enumerate(pieces[:vectors], 1):
            self._store(memory, part + number * self.VECTOR, piece.ljust(self.DATA, b"\0"), turn)
        length = len(payload) if length is None else length
        self._store(memory, part, struct.pack("<III", length, status, count), turn)

    def _store(self, memory, at, data, turn):
        memory[at:at + self.DATA] = data
        struct.pack_into("<I", memory, at + self.DATA, turn)  # what makes it valid, last

    def count(self, sequence, response):
        """Of the messages of a batch that is there; 0: it is one message."""
        memory, part = self._part(sequence, response)
        return struct.unpack_from("<I", memory, part + 8)[0]

    def read(self, sequence, response):
        """A message, or a batch's content, as (status, payload); None as long as it is not there,
        whole."""
        memory, part = self._part(sequence, response)
        turn = self.turn(sequence)
        if self._turn_at(memory, part) != turn:
            return None
        length, status = struct.unpack_from("<II", memory, part)
        if length > self.PACKED:
            return status, memory[part + 512:part + 512 + length]
        payload = b""
        for number in range(1, 1 + -(-length // self.DATA)):
            at = part + number * self.VECTOR
            if self._turn_at(memory, at) != turn:
                return None
            payload += memory[at:at + self.DATA]
        return status, payload[:length]

    def _turn_at(self, memory, vector):
        """To be read before the data: the writer makes both visible at once, which a reader in two
        steps sees only in this order."""
        return struct.unpack_from("<I", memory, vector + self.DATA)[0]


class FakeWorker:
    """A worker that does what a test wants, attached to a real server with one channel."""

    def __init__(self, path, capabilities=0):
        self.control = Control.connect(path)
        self.control.send(HELLO, hello(capabilities=capabilities))
        payload, _ = self.control.expect(WELCOME)
        assert struct.unpack_from(">HH", payload) == (VERSION, 1)
        payload, self.fds = self.control.expect(DESCRIPTOR)
        _, depth, max_length = struct.unpack_from(">III", payload)
        self.memory = Memory(depth, max_length, fds=self.fds[:2])
        size, = struct.unpack_from(">H", payload, 12)
        requests, responses = payload[14:14 + size], payload[16 + size:-5]
        assert self.memory.request_bytes == region_bytes(requests, READABLE)
        assert self.memory.response_bytes == region_bytes(responses, WRITABLE)
        self.control.send(CONSUMER_ID_REQUEST, consumer_id(0))
        self.control.expect(CONSUMER_ID_RESPONSE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.control.socket.close()
        self.memory.close()
        for fd in self.fds[2:]:
            os.close(fd)

    def keep_alive(self):
        self.control.send(KEEP_ALIVE, bytes(8))

    def server_sleeps(self):
        return struct.unpack_from("=I", self.memory.responses, 128)[0] == 1

    def ring(self):
        os.write(self.fds[3], b"\1")


class FakeServer:
    """A server that does what a test wants, with one channel."""

    def __init__(self, path, depth=4, max_length=256):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        self.listener.listen()
        self.listener.settimeout(PATIENCE)
        self.memory = Memory(depth, max_length)
        (waiting, self.ringing), (self.waiting, ringing) = os.pipe(), os.pipe()
        self.bells = [waiting, ringing]  # the worker's ends
        self.control = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        if self.control:
            self.control.socket.close()
        self.memory.close()
        for bell in (*self.bells, self.ringing, self.waiting):
            os.close(bell)

    def accept(self):
        """The next worker's connection, its greeting read."""
        if self.control:
            self.control.socket.close()
        self.control = Control(self.listener.accept()[0])
        payload, _ = self.control.expect(HELLO)
        magic, version = struct.unpack_from(">IH", payload)
        assert (magic, version) == (MAGIC, VERSION)
        return self.control

    def fds(self):
        return [*self.memory.fds, *self.bells]

    def descriptor(self):
        return descriptor(0, self.memory.depth, self.memory.max_length,
                          self.memory.request_bytes, self.memory.response_bytes)

    def attach(self):
        """Lets the next worker in: it serves the channel."""
        self.accept()
        self.control.send(WELCOME, welcome())
        self.control.send(DESCRIPTOR, self.descriptor(), self.fds())
        assert self.control.expect(CONSUMER_ID_REQUEST)[0] == consumer_id(0)
        self.control.send(CONSUMER_ID_RESPONSE, consumer_id(0))
        self.control.send(ASSIGNMENT, struct.pack(">I", 1))

    def ring(self):
        os.write(self.ringing, b"\1")
