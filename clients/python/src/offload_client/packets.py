"""The client for offload-worker --udp."""
from __future__ import annotations

import errno
import os
import random
import socket
import struct
import sys
from types import TracebackType
from typing import Optional, Type

from .codec import HEADER, FrameDecoder, MessageId, Payload, decode_error, encode_frame, request_payload
from .errors import (ConnectFailed, ConnectionLost, NotOwner, ProtocolError, RequestRefused,
                     ResponseTimeout)
from .settings import Deadline

SEQUENCE = struct.Struct(">Q")
MOST_RECEIVED = 1 << 16
# <linux/in.h> and <linux/in6.h> define these; Python has no names for them.
IP_MTU_DISCOVER, IP_MTU, IPV6_MTU_DISCOVER, IPV6_MTU, PMTUDISC_DO = 10, 14, 23, 24, 2
USUAL_MTU = 1500
IPV4_AND_UDP, IPV6_AND_UDP = 28, 48  # bytes of their headers


class PacketClient:
    """Sends one request at a time in a datagram to an offload-worker with --udp, for one thread of the
    process that made it. Threads that share it would drop each other's responses; each needs its own.

    timeout: seconds of a call. attempts: how often the datagram of a request is sent at most, in equal
    parts of the timeout. With more than one, the worker may process a request twice.

    Raises ConnectFailed if the name cannot be resolved or there is no route."""

    def __init__(self, host: str, port: int, *, timeout: float = 1.0, attempts: int = 1) -> None:
        if attempts < 1:
            raise ValueError("attempts must be at least 1")
        self.timeout = timeout
        self._attempts = attempts
        self._process = os.getpid()
        self._sequence = random.getrandbits(64)  # so that no response to an earlier client is taken
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
            self._socket = socket.socket(family, kind, protocol)
            try:
                self._socket.connect(address)
                self._most = self._find_most()
            except BaseException:
                self._socket.close()
                raise
        except OSError as error:
            raise ConnectFailed(f"cannot send to {host}, port {port}: {error}") from error

    def __enter__(self) -> PacketClient:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Later calls raise ConnectionLost."""
        self._socket.close()

    def request(self, payload: Payload, *, timeout: Optional[float] = None) -> bytes:
        """The response to one request, within `timeout` seconds; None: the client's. Raises
        ResponseTimeout, also if a datagram was lost; RequestRefused; ConnectionLost if the system says
        that nothing receives there; NotOwner; and ValueError if the request does not fit in a datagram."""
        request = request_payload(payload)
        self._check_length(request)
        if os.getpid() != self._process:
            raise NotOwner(f"this client belongs to process {self._process}: make a new one after a fork")
        seconds = self.timeout if timeout is None else timeout
        self._sequence = (self._sequence + 1) % (1 << 64)
        sequence = SEQUENCE.pack(self._sequence)
        try:
            for _ in range(self._attempts):
                self._socket.send(sequence + encode_frame(MessageId.REQUEST, request))
                response = self._receive(sequence, request, seconds / self._attempts)
                if response is not None:
                    return response
        except OSError as error:
            if error.errno == errno.EMSGSIZE:  # the path has become narrower
                self._most = self._find_most()
                self._check_length(request)
            raise ConnectionLost(f"the datagram was not delivered: {error}", (request,)) from error
        raise ResponseTimeout(f"no response within {seconds} s", (request,))

    def _receive(self, sequence: bytes, request: bytes, seconds: float) -> Optional[bytes]:
        """None if the response does not come in time. Drops all other datagrams."""
        deadline = Deadline(seconds)
        while left := deadline.left():
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(MOST_RECEIVED)
            except socket.timeout:
                return None
            if data[:SEQUENCE.size] != sequence:
                continue
            decoder = FrameDecoder()
            try:
                frames = list(decoder.decode(data[SEQUENCE.size:]))
            except ProtocolError:
                continue
            if len(frames) != 1 or decoder.inside_frame:
                continue
            if frames[0].message_id == MessageId.ERROR:
                raise RequestRefused(*decode_error(frames[0].payload), (request,))
            return frames[0].payload
        return None

    def _check_length(self, request: bytes) -> None:
        if len(request) > self._most:
            raise ValueError(f"a request in a datagram must have at most {self._most} bytes, not {len(request)}")

    def _find_most(self) -> int:
        """Returns the longest request. The worker takes no fragments, so none are sent."""
        mtu, is_ipv6 = USUAL_MTU, self._socket.family == socket.AF_INET6
        if sys.platform == "linux":
            level = socket.IPPROTO_IPV6 if is_ipv6 else socket.IPPROTO_IP
            self._socket.setsockopt(level, IPV6_MTU_DISCOVER if is_ipv6 else IP_MTU_DISCOVER, PMTUDISC_DO)
            mtu = self._socket.getsockopt(level, IPV6_MTU if is_ipv6 else IP_MTU)
        return mtu - (IPV6_AND_UDP if is_ipv6 else IPV4_AND_UDP) - SEQUENCE.size - HEADER.size
