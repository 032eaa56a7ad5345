"""A wire with two ends, each in a separate network namespace."""
import array
import contextlib
import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess

import pytest

from harness import PATIENCE

HERE, THERE = f"pk{os.getpid()}a", f"pk{os.getpid()}b"
ADDRESS, PEER = "10.9.0.1", "10.9.0.2"
CLONE_NEWNET = 0x40000000
LIMIT = PATIENCE


def run(*command):
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT)


@contextlib.contextmanager
def namespace(name):
    """Moves this thread into the namespace: sockets that are made here stay there."""
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    other = os.open(f"/run/netns/{name}", os.O_RDONLY)
    try:
        assert libc.setns(other, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        yield
    finally:
        assert libc.setns(own, CLONE_NEWNET) == 0
        os.close(own)
        os.close(other)


def send_whole_checksums(interface):
    """Does the same as `ethtool -K INTERFACE tx off`: on veth no hardware would complete the checksums."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        value = array.array("B", struct.pack("II", 0x17, 0))  # ETHTOOL_STXCSUM
        request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
        fcntl.ioctl(control, 0x8946, request)  # SIOCETHTOOL


def link_of(name, interface):
    """Returns the output of `ip -s link show` for an interface."""
    shown = subprocess.run(["ip", "-n", name, "-s", "-j", "link", "show", interface], check=True,
                           capture_output=True, text=True, timeout=LIMIT).stdout
    return json.loads(shown)[0]


class Program:
    """A program in a namespace that has written `ready`; its test is skipped without privileges."""

    def __init__(self, ready, *command, where=HERE):
        self.process = subprocess.Popen(["ip", "netns", "exec", where, *command], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.log = ""
        while ready not in self.log:
            line = self.process.stderr.readline()
            self.log += line
            if not line:
                self.process.wait(LIMIT)
                if "missing: CAP" in self.log:
                    pytest.skip(self.log)
                raise AssertionError(self.log)

    def end(self, number):
        self.process.send_signal(number)
        self.text, log = self.process.communicate(timeout=LIMIT)
        self.log += log
        assert self.process.returncode == 0, self.log


@contextlib.contextmanager
def both_ends(*options):
    """Makes interface x0 with ADDRESS in the namespace HERE, x1 with PEER in THERE, both with `options`."""
    try:
        run("ip", "netns", "add", HERE)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no network namespaces: {error}")
    try:
        run("ip", "netns", "add", THERE)
        run("ip", "link", "add", "x0", "netns", HERE, *options, "type", "veth", "peer", "name", "x1",
            "netns", THERE, *options)
        for name, interface, address in ((HERE, "x0", ADDRESS), (THERE, "x1", PEER)):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", interface)
            run("ip", "-n", name, "link", "set", interface, "up")
        with namespace(THERE):
            send_whole_checksums("x1")
        yield
    finally:
        for name in (HERE, THERE):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=LIMIT)
