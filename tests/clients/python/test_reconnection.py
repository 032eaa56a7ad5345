"""The limits of calls that are made again, and the pauses between attempts to reconnect."""
import pytest

from offload_client import ConnectFailed, ConnectionLost, OffloadError, ProtocolError, RequestRefused, ResponseTimeout
from offload_client.reconnection import Pauses, Repetition
from offload_client.settings import Deadline


def lost(unsent):
    error = ConnectionLost("lost")
    error.unsent = unsent
    return error


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("error, repeats", [
    (ConnectFailed("refused"), "always"), (lost(unsent=True), "always"), (lost(unsent=False), "if idempotent"),
    (ProtocolError("malformed"), "never"), (ResponseTimeout("late"), "never"), (RequestRefused(6, "none"), "never"),
    (OffloadError("other"), "never")])
def test_which_errors_let_a_call_be_made_again(error, repeats, idempotent):
    left = Repetition(Deadline(None), 100, idempotent).left_after(error)
    assert (left > 0) == (repeats == "always" or (repeats == "if idempotent" and idempotent))
    assert Repetition(Deadline(None), None, idempotent).left_after(error) == 0


def test_the_shorter_limit_counts():
    for deadline, reconnect_timeout, most in ((100, 5, 5), (5, 100, 5), (None, 5, 5), (100, 0, 0), (0, 100, 0)):
        repetition = Repetition(Deadline(deadline), reconnect_timeout)
        assert repetition.left() == pytest.approx(deadline, abs=1)  # before the first error
        assert repetition.left_after(ConnectFailed("refused")) == pytest.approx(most, abs=1)
        assert repetition.left(3) == pytest.approx(min(most, 3), abs=1)


def test_pauses_grow_and_begin_again():
    pauses = Pauses()
    for _ in range(2):
        assert [pauses.next() for _ in range(9)] == [0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5]
        pauses.reset()
