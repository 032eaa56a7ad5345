"""Captures of TCP and UDP as files, made of bytes that a test recorded, and read by tshark with the dissector."""
import csv
import io
import socket
import struct
import subprocess

from harness import ROOT

DISSECTOR = ROOT / "deploy/wireshark/offload.lua"
CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
SYN, ACK, PUSH = 2, 16, 8


class Capture:
    """A file in pcap's format, of raw IPv4 packets."""

    def __init__(self, path):
        self.path = path
        self._file = open(path, "wb")
        self._packets = 0
        self._next = {}  # the next sequence number of each direction of a connection
        self._file.write(struct.pack("=IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 1 << 18, 101))

    def connect(self, port, client_port):
        """Adds the handshake of a connection of the client with the server's `port`."""
        there, back = (CLIENT, client_port, SERVER, port), (SERVER, port, CLIENT, client_port)
        for way, flags in ((there, SYN), (back, SYN | ACK), (there, ACK)):
            self._segment(way, b"", flags)
            self._next[way] = 1
        return there, back

    def send(self, way, data, segment=1400):
        """Adds `data` in segments of that many bytes."""
        for at in range(0, len(data), segment):
            self._segment(way, data[at:at + segment], ACK | PUSH)

    def send_datagram(self, way, data):
        self._packet(way, 17, struct.pack(">HHHH", way[1], way[3], 8 + len(data), 0) + data)

    def _segment(self, way, data, flags):
        sequence = self._next.get(way, 0)
        other = self._next.get((way[2], way[3], way[0], way[1]), 0)
        self._next[way] = sequence + len(data)
        self._packet(way, 6, struct.pack(">HHIIBBHHH", way[1], way[3], sequence, other, 5 << 4, flags, 65535, 0, 0)
                     + data)

    def _packet(self, way, protocol, body):
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), self._packets, 0, 64, protocol, 0)
        packet = head + socket.inet_aton(way[0]) + socket.inet_aton(way[2]) + body
        self._file.write(struct.pack("=IIII", self._packets // 1000, self._packets % 1000 * 1000, len(packet),
                                     len(packet)) + packet)
        self._packets += 1

    def _tshark(self, *words):
        self._file.flush()
        done = subprocess.run(["tshark", "-n", "-r", self.path, "-X", f"lua_script:{DISSECTOR}", *words],
                              text=True, timeout=60, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 0 and "Lua" not in done.stderr and "Lua" not in done.stdout, \
            done.stderr + done.stdout
        return done.stdout

    def fields(self, chosen, *names, options=()):
        """Returns the values of the fields `names` in each packet that the filter `chosen` matches, one list for each
        field."""
        rows = csv.reader(io.StringIO(self._tshark(
            *options, "-Y", chosen, "-T", "fields", "-E", "separator=,", "-E", "quote=d", "-E", "occurrence=a",
            "-E", "aggregator=|", *[word for name in names for word in ("-e", name)])))
        return [[value.split("|") if value else [] for value in row or [""]] for row in rows]

    def all_fields(self, chosen, name, options=()):
        """Returns the values of the field in all packets that the filter matches."""
        return [value for row in self.fields(chosen, name, options=options) for value in row[0]]

    def text(self, *words):
        return self._tshark(*words)
