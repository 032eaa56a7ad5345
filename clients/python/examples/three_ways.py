"""Sends requests in three ways: one by one, pipelined, and from many tasks of asyncio.

usage: three_ways.py [HOST [PORT [CA-FILE]]]      (default: 127.0.0.1 12345, without TLS)

    offload-server -p 12345 & offload-worker --backend cpu &
    python3 three_ways.py
"""
import asyncio
import sys

from offload_client import (AsyncClient, Client, ConnectionLost, OffloadError, RequestRefused,
                            tls_context)

HOST = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1"
PORT = int(sys.argv[2]) if len(sys.argv) > 2 else 12345
TLS = tls_context(ca=sys.argv[3]) if len(sys.argv) > 3 else None


def one_by_one() -> None:
    with Client(HOST, PORT, tls=TLS, timeout=5) as client:
        for message in (b"hello", b"world"):
            print(message, "->", client.request(message))


def pipelined() -> None:
    """64 requests are under way at any time: one round trip no longer waits for another."""
    messages = (b"message %d" % number for number in range(10_000))
    with Client(HOST, PORT, tls=TLS) as client:
        size = sum(len(response) for response in client.requests(messages, in_flight=64))
    print("10000 pipelined requests,", size, "bytes of responses")


async def many_tasks() -> None:
    """The tasks share a connection; each gets its own response."""
    async with AsyncClient(HOST, PORT, tls=TLS) as client:
        messages = [b"task %d" % number for number in range(100)]
        responses = await asyncio.gather(*map(client.request, messages))
        print(messages[-1], "->", responses[-1])
        # Cancelled, here by a time limit, a task leaves the others and the connection as they are.
        try:
            await asyncio.wait_for(client.request(b"late"), timeout=1)
        except asyncio.TimeoutError:
            print("no response within a second")


def main() -> int:
    try:
        one_by_one()
        pipelined()
        asyncio.run(many_tasks())
    except RequestRefused as error:  # the connection may still be good: error.refusal says why
        print("refused:", error, file=sys.stderr)
    except ConnectionLost as error:  # the server may have processed some of these
        print("lost:", error, "-", len(error.unanswered), "requests unanswered", file=sys.stderr)
    except OffloadError as error:
        print(error, file=sys.stderr)
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
