"""A HAProxy of the tests, with deploy/haproxy/haproxy.cfg or a changed copy."""
import contextlib
import os
import socket
import struct
import subprocess
import threading

from harness import PATIENCE, ROOT

CONFIGURATION = ROOT / "deploy/haproxy/haproxy.cfg"


class Balancer:
    """HAProxy with these variables in its environment."""

    def __init__(self, folder, environment):
        self.admin = folder / "admin"
        self.environment = {**os.environ, **environment, "ADMIN": str(self.admin)}
        self.process = None

    def start(self, file=CONFIGURATION):
        self.process = subprocess.Popen(["haproxy", "-db", "-f", file], env=self.environment)

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait(PATIENCE)

    def command(self, line):
        with socket.socket(socket.AF_UNIX) as admin:
            admin.settimeout(PATIENCE)
            admin.connect(str(self.admin))
            admin.sendall(line.encode() + b"\n")
            return b"".join(iter(lambda: admin.recv(65536), b"")).decode()

    def is_up(self, *names):
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            return all(self.field(name, 17) == "UP" for name in names or ("one", "two"))
        return False

    def field(self, server, index):
        for line in self.command("show stat").splitlines():
            if line.startswith(f"offload,{server},"):
                return line.split(",")[index]
        return None


@contextlib.contextmanager
def balancers(folder):
    """Yields a function that makes a Balancer; ends them all."""
    made = []

    def make(environment):
        made.append(Balancer(folder, environment))
        return made[-1]

    try:
        yield make
    finally:
        for one in made:
            one.end()


class Names:
    """A context with a DNS server that gives every name the addresses in `addresses`, which may change."""

    def __init__(self, *addresses):
        self.addresses = list(addresses)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        # An empty datagram is the sign to end.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join(PATIENCE)
        self._socket.close()

    def _run(self):
        while True:
            data, peer = self._socket.recvfrom(4096)
            if not data:
                return
            end = data.index(b"\0", 12) + 5  # the name, type and class of the question (RFC 1035, 4.1.2)
            found = self.addresses if data[end - 4:end - 2] == b"\0\1" else []  # A records only
            # A response without an error, to one question, whose name the answers point to (4.1.1, 4.1.4).
            head = data[:2] + struct.pack(">HHHHH", 0x8580, 1, len(found), 0, 0)
            records = (struct.pack(">HHHIH", 0xc00c, 1, 1, 1, 4) + socket.inet_aton(address) for address in found)
            self._socket.sendto(head + data[12:end] + b"".join(records), peer)
