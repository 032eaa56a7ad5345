"""Ethernet frames with UDP datagrams of any addresses, which no socket would send."""
import socket
import struct


def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def udp_frame(payload, *, to, by, source, destination, source_port, port, tags=(), hops=64, options=b"",
              has_checksum=True):
    """`to`, `by`: Ethernet addresses; `tags`: the control of each VLAN tag; `options`: of IPv4, whole words."""
    family = socket.AF_INET6 if ":" in destination else socket.AF_INET
    addresses = socket.inet_pton(family, source) + socket.inet_pton(family, destination)
    udp = struct.pack(">HHHH", source_port, port, 8 + len(payload), 0)
    if has_checksum:
        pseudo = addresses + struct.pack(">HH", 17, len(udp) + len(payload))
        udp = udp[:6] + struct.pack(">H", checksum(pseudo + udp + payload) or 0xffff)
    if family == socket.AF_INET6:
        ip = struct.pack(">IHBB", 6 << 28, 8 + len(payload), 17, hops) + addresses
    else:
        length = 20 + len(options)
        ip = struct.pack(">BBHHHBBH", 0x40 + length // 4, 0, length + 8 + len(payload), 0, 0, hops, 17, 0)
        ip += addresses + options
        ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    kinds = b"".join(struct.pack(">HH", 0x8100, tag) for tag in tags)
    return to + by + kinds + (b"\x86\xdd" if family == socket.AF_INET6 else b"\x08\0") + ip + udp + payload


class Datagram:
    """A parsed frame; `source_port` is None if it is no UDP datagram."""

    def __init__(self, frame):
        self.to, self.by, at = frame[:6], frame[6:12], 12
        while frame[at:at + 2] == b"\x81\0":
            at += 4
        is_v6 = frame[at:at + 2] == b"\x86\xdd"
        self.source_port = None
        if not is_v6 and frame[at:at + 2] != b"\x08\0":
            return
        ip = frame[at + 2:]
        if ip[6 if is_v6 else 9] != 17:
            return
        size, family = (16, socket.AF_INET6) if is_v6 else (4, socket.AF_INET)
        begin = 8 if is_v6 else 12
        self.source = socket.inet_ntop(family, ip[begin:begin + size])
        self.destination = socket.inet_ntop(family, ip[begin + size:begin + 2 * size])
        udp = ip[40 if is_v6 else (ip[0] & 15) * 4:]
        self.source_port, self.port = struct.unpack(">HH", udp[:4])
        self.payload = udp[8:]
