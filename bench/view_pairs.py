#!/usr/bin/env python3
"""Tests whether --metrics affects a load: the three programs without it, with it and a scrape a second, and
without it again, some rounds in turn.

Prints the median of the requests a second of each, of "with" to the mean of its two neighbours, and of
the second "without" to the first, with least and most: the second is the spread of the machine alone.
Exit status 0 only if every answer was right.
"""

import argparse
import http.client
import re
import statistics
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

from end_to_end import load, start, stop, wait_for_port


def scrape(port, ended):
    while not ended.wait(1):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/metrics")
        if connection.getresponse().status != 200:
            sys.exit("a scrape failed")
        connection.close()


def rate(options, shown):
    """Requests a second, in millions."""
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as name:
        folder, ended, running = Path(name), threading.Event(), []
        comch = ("--comch", f"unix:{folder / 'comch'}")
        scraper = threading.Thread()
        try:
            server, log = start(folder, "offload-server", "-p", 0, "--threads", options.threads, *comch,
                                *(("--metrics", 0) if shown else ()))
            running.append(server)
            running.append(start(folder, "offload-worker", "--backend", options.backend, *comch)[0])
            port = wait_for_port(server, log)
            if shown:
                view = int(re.search(r"metrics on http://127\.0\.0\.1:(\d+)/", log.read_text())[1])
                scraper = threading.Thread(target=scrape, args=(view, ended))
                scraper.start()
            row = SimpleNamespace(client_threads=options.clients, connections=2 * options.clients,
                                  in_flight=options.in_flight)
            return load(folder, port, options, row, "reverse")[0]
        finally:
            ended.set()
            if scraper.ident:
                scraper.join()
            for process in reversed(running):
                stop(process)


def line(name, values):
    return f"{name}: median {statistics.median(values):.3f}, {min(values):.3f} to {max(values):.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=4, help="of the server")
    parser.add_argument("--clients", type=int, default=4, help="threads of the client")
    parser.add_argument("--in-flight", type=int, default=16, help="of each connection, of two a thread")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--size", type=int, default=64, help="of a request, bytes")
    parser.add_argument("--seconds", type=float, default=2, help="of each run")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    rounds = [(rate(options, False), rate(options, True), rate(options, False))
              for _ in range(options.rounds)]
    print(line("without, M requests/s", [first for first, _, _ in rounds]))
    print(line("with, M requests/s", [shown for _, shown, _ in rounds]))
    print(line("with / without", [2 * shown / (first + last) for first, shown, last in rounds]))
    print(line("without / without", [last / first for first, _, last in rounds]))


if __name__ == "__main__":
    main()
