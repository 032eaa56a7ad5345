"""The Python client's pairing of responses with requests."""
import struct
from concurrent.futures import Future

import pytest

from offload_client import ConnectionLost, ProtocolError, Refusal, RequestRefused
from offload_client.codec import MessageId, encode_frame
from offload_client.exchange import Exchange


def response(payload):
    return encode_frame(MessageId.RESPONSE, payload)


def error(code, text="why"):
    return encode_frame(MessageId.ERROR, struct.pack(">I", code) + text.encode())


@pytest.fixture
def exchange():
    return Exchange(1000)


def ask(exchange, *requests):
    slots = [Future() for _ in requests]
    for request, slot in zip(requests, slots):
        assert exchange.send(request, slot) == encode_frame(MessageId.REQUEST, request)
    return slots


def lost(slot):
    """The error of a slot whose connection was lost."""
    failure = slot.exception(timeout=0)
    assert isinstance(failure, ConnectionLost)
    return failure


def test_responses_are_the_requests_in_their_order(exchange):
    slots = ask(exchange, b"a", b"b", b"c")
    exchange.receive(response(b"A") + response(b""))
    assert [slot.done() for slot in slots] == [True, True, False]
    exchange.receive(response(b"C"))
    assert [slot.result() for slot in slots] == [b"A", b"", b"C"]


def test_a_caller_that_gave_up_does_not_shift_the_others(exchange):
    slots = ask(exchange, b"a", b"b", b"c", b"d")
    slots[0].cancel()
    slots[2].cancel()
    exchange.receive(response(b"A") + response(b"B") + error(8) + response(b"D"))
    assert slots[1].result() == b"B" and slots[3].result() == b"D"


@pytest.mark.parametrize("refusal", [Refusal.WORKER_UNAVAILABLE, Refusal.WORKER_FAILED,
                                     Refusal.REQUEST_TIMED_OUT])
def test_a_refused_request_is_one_only(exchange, refusal):
    slots = ask(exchange, b"a", b"b", b"c")
    exchange.receive(response(b"A") + error(refusal) + response(b"C"))
    assert slots[0].result() == b"A" and slots[2].result() == b"C"
    failure = slots[1].exception()
    assert isinstance(failure, RequestRefused)
    assert (failure.code, failure.refusal, failure.text) == (refusal, refusal, "why")
    assert failure.unanswered == (b"b",)
    assert str(failure) == f"{refusal.name.lower()} ({refusal.value}): why"
    # It is no reason for a later end.
    slots = ask(exchange, b"d")
    exchange.receive(b"")
    assert lost(slots[0]).code is None


@pytest.mark.parametrize("refusal", [Refusal.FRAME_TOO_LONG, Refusal.SHUTTING_DOWN])
def test_a_refusal_that_ends_the_connection(exchange, refusal):
    slots = ask(exchange, b"a", b"b", b"c")
    exchange.receive(response(b"A") + error(refusal))
    assert slots[1].exception().refusal is refusal
    assert not slots[2].done() and not exchange.lost
    exchange.receive(b"")
    assert exchange.lost
    failure = lost(slots[2])
    assert failure.refusal is refusal and failure.text == "why"
    assert failure.unanswered == (b"c",)


@pytest.mark.parametrize("refusal", [Refusal.OUT_OF_MEMORY, Refusal.FRAME_TIMED_OUT,
                                     Refusal.IDLE_TIMED_OUT, Refusal.TOO_MANY_CLIENTS,
                                     Refusal.TOO_MANY_OF_ADDRESS])
def test_a_refusal_of_the_connection_is_no_answer(exchange, refusal):
    slots = ask(exchange, b"a", b"b")
    exchange.receive(error(refusal))
    assert not any(slot.done() for slot in slots)
    exchange.receive(b"")
    for slot, request in zip(slots, (b"a", b"b")):
        assert lost(slot).refusal is refusal and lost(slot).unanswered == (request,)
        assert str(lost(slot)) == \
            f"the server ended the connection: {refusal.name.lower()} ({refusal.value}): why"


def test_a_code_of_a_later_server(exchange):
    slots = ask(exchange, b"a", b"b")
    exchange.receive(error(77, "new") + response(b"B"))
    failure = slots[0].exception()
    assert isinstance(failure, RequestRefused)
    assert failure.code == 77 and failure.refusal is None
    assert str(failure) == "unknown code (77): new"
    assert slots[1].result() == b"B"
    assert not exchange.ending
    exchange.receive(error(78))  # nothing was asked: it is about the connection
    assert exchange.ending and not exchange.lost
    exchange.receive(b"")
    slot = Future()
    exchange.send(b"c", slot)
    assert lost(slot).code == 78 and lost(slot).refusal is None


def test_a_response_that_nothing_asked_for(exchange):
    slots = ask(exchange, b"a")
    exchange.receive(response(b"A") + response(b"B"))
    assert slots[0].result() == b"A"
    assert exchange.lost
    slot = Future()
    assert exchange.send(b"b", slot) == b""
    assert isinstance(lost(slot), ProtocolError)
    assert lost(slot).unanswered == (b"b",)


def test_what_is_malformed_loses_all(exchange):
    slots = ask(exchange, b"a", b"b", b"c")
    slots[1].cancel()
    exchange.receive(response(b"A") + bytes(12))
    assert slots[0].result() == b"A"
    assert isinstance(lost(slots[2]), ProtocolError)
    exchange.receive(b"")
    exchange.lose("closed")
    assert "of 0 bytes" in str(lost(slots[2]))


def test_an_end_inside_a_frame(exchange):
    slots = ask(exchange, b"a")
    exchange.receive(response(b"A")[:-1])
    exchange.receive(b"")
    assert str(lost(slots[0])) == "the server ended inside a frame"
