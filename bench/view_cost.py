#!/usr/bin/env python3
"""Measures the cost of --metrics for a server: one scrape of its threads, many scrapes a second, half-sent
requests; and which part of the latency of a request its stages account for.

The processor time is that of the thread of the view, as the kernel counts it; a load in the background
keeps the counters moving. Exit status 0 only if every answer was right.
"""

import argparse
import http.client
import json
import re
import socket
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path

from end_to_end import start, stop, wait_for_port
from probe import REQUEST

LIMIT_S = 10


class Scraper:
    """One kept connection."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)

    def ask(self, path):
        """How long an answer took, in seconds, and its body."""
        before = time.perf_counter()
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            sys.exit(f"{path}: {answer.status}")
        return time.perf_counter() - before, body


def thread_seconds(server):
    """Returns the processor time of libmicrohttpd's thread."""
    for task in Path(f"/proc/{server.pid}/task").iterdir():
        if (task / "comm").read_text().startswith("MHD"):
            return int((task / "schedstat").read_text().split()[0]) / 1e9
    sys.exit("the server has no thread that serves HTTP")


def at_rate(scraper, server, path, rate, seconds):
    """Time of the thread for each request at `rate` a second, and its share of a processor."""
    count = int(rate * seconds)
    scraper.ask(path)
    spent, began = thread_seconds(server), time.perf_counter()
    for i in range(count):
        time.sleep(max(0, began + i / rate - time.perf_counter()))
        scraper.ask(path)
    spent = thread_seconds(server) - spent
    return spent / count, spent / (time.perf_counter() - began)


def health(port, count):
    """Returns the median and longest time until /healthz answers, over `count` new connections."""
    times = [Scraper(port).ask("/healthz")[0] for _ in range(count)]
    return statistics.median(times), max(times)


def in_stages(port, view, size, count):
    """Returns the median share of a request's time at the client that /trace explains. The client has one request
    in flight and polls for its answer, so that it need not wait to be woken."""
    request = struct.pack(">III", 12 + size, REQUEST, size) + bytes(size)
    times = []
    with socket.create_connection(("127.0.0.1", port), LIMIT_S) as client:
        client.setblocking(False)
        for _ in range(64 * count):
            began, left = time.perf_counter_ns(), len(request)
            client.send(request)
            while left:
                try:
                    left -= len(client.recv(left))
                except BlockingIOError:
                    pass
            times.append((time.perf_counter_ns() - began) / 1e3)
    spans = json.loads(Scraper(view).ask("/trace")[1])["traceEvents"]
    requests = [span["dur"] for span in spans if span["name"] == "request"][-count:]
    theirs = times[63::64]
    return statistics.median(ours / whole for ours, whole in zip(requests, theirs)), statistics.median(theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=16, help="of the server")
    parser.add_argument("--seconds", type=float, default=5, help="of each figure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as name:
        folder = Path(name)
        comch = ("--comch", f"unix:{folder / 'comch'}")
        running = []
        try:
            server, log = start(folder, "offload-server", "-p", 0, "--threads", options.threads,
                                "--metrics", 0, *comch)
            running.append(server)
            running.append(start(folder, "offload-worker", "--backend", "cpu", *comch)[0])
            port = wait_for_port(server, log)
            view = int(re.search(r"metrics on http://127\.0\.0\.1:(\d+)/", log.read_text())[1])
            for size in (64, 4096, 30000):
                share, whole = in_stages(port, view, size, 100)
                print(f"of a client's {whole:.1f} us for {size} bytes: {100 * share:.0f} % in stages")
            running.append(start(folder, "offload-client", "-s", "127.0.0.1", "-p", port, "--connections",
                                 options.threads, "--rate", 1000, "--duration", 10 * options.seconds,
                                 "--quiet")[0])
            scraper = Scraper(view)
            for path in ("/metrics", "/metrics?per_thread=1", "/status", "/trace"):
                size = len(scraper.ask(path)[1])
                each, _ = at_rate(scraper, server, path, 5, options.seconds)  # all are made again
                print(f"one {path:<22} {size / 1000:7.1f} KB  {1e6 * each:7.0f} us of a processor")
            each, share = at_rate(scraper, server, "/metrics", 1000, options.seconds)
            print(f"1000 a second of /metrics: {1e6 * each:.0f} us each, {100 * share:.1f} % of a processor")
            before = health(view, 500)
            halves = [socket.create_connection(("127.0.0.1", view), LIMIT_S) for _ in range(20)]
            for half in halves:
                half.sendall(b"GET /metrics HTTP/1.1\r\nHo")
            beside = health(view, 500)
            for text, (median, longest) in (("alone", before), ("beside 20 half-sent", beside)):
                print(f"/healthz {text}: median {1e6 * median:.0f} us, longest {1e6 * longest:.0f} us")
        finally:
            codes = [stop(process) for process in reversed(running)]
    sys.exit(0 if codes[1:] == [0, 0] else 1)


if __name__ == "__main__":
    main()
