"""A wire between client and worker that fails."""
import random
import select
import socket
import threading
import time

from veth import ADDRESS, LIMIT, PEER, THERE, namespace


class LossyWire:
    """Between a client and the worker, in the client's namespace: loses, doubles and delays
    datagrams in both directions, by numbers that are the same each time."""

    def __init__(self, port, late_s):
        with namespace(THERE):
            self.near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.near.bind((PEER, port))
        self.far.connect((ADDRESS, port))
        self.random = random.Random(17)
        self.late_s = late_s
        self.held = []
        self.peer = None
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.carry)
        self.thread.start()

    def carry(self):
        while not self.ending.is_set():
            ready, _, _ = select.select([self.near, self.far], [], [], 0.005)
            for end in ready:
                if end is self.near:
                    datagram, self.peer = self.near.recvfrom(4096)
                    self.pass_on(lambda data=datagram: self.far.send(data))
                else:
                    datagram = self.far.recv(4096)
                    self.pass_on(lambda data=datagram: self.near.sendto(data, self.peer))
            while self.held and self.held[0][0] < time.monotonic():
                self.held.pop(0)[1]()

    def pass_on(self, send):
        draw = self.random.random()
        if draw < 0.05:
            return
        if draw < 0.08:
            self.held.append((time.monotonic() + self.late_s, send))
            return
        send()
        if draw > 0.95:
            send()

    def close(self):
        self.ending.set()
        self.thread.join(LIMIT)
        self.near.close()
        self.far.close()
