"""Sends pipelined requests to a server of the service reverse, checks each response, prints how many.

PYTHONPATH=clients/python/src python3 client.py HOST PORT [COUNT]
"""
import sys

from offload_client import Client, OffloadError


def make_request(number):
    return b"request %d" % number


def ask(host, port, count):
    with Client(host, port) as client:
        answered = 0
        for response in client.requests(map(make_request, range(count)), in_flight=64):
            request = make_request(answered)
            if response != request[::-1]:
                raise ValueError(f"a wrong response to {request!r}")
            answered += 1
        return answered


def main():
    if len(sys.argv) < 3:
        print(f"usage: {sys.argv[0]} HOST PORT [COUNT]", file=sys.stderr)
        return 2
    try:
        count = int(sys.argv[3]) if len(sys.argv) > 3 else 10000
        print(f"{ask(sys.argv[1], int(sys.argv[2]), count)} responses, all right")
        return 0
    except (OffloadError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
