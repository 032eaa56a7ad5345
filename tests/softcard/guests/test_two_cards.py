"""Cards of two guests, on one Ethernet: random operations between them, with the data compared."""
import os
import subprocess
from pathlib import Path

import pytest

GUEST = Path(__file__).parents[3] / "softcard/guest"
CANNOT_RUN = 77
MODULE, BUILT = (os.environ[name] for name in ("SOFTCARD_MODULE", "OFFLOAD_BUILT"))
# The operations of each run, and the options of both cards.
RUNS = {"some is lost": (300, ("--lose=5",))}
if os.environ.get("OFFLOAD_LONG") == "1":
    RUNS = {"some is lost": (1000, ("--lose=5",)), "all arrives": (4000, ())}


def start(tmp_path, number, operations, *card):
    return subprocess.Popen(
        [GUEST, MODULE, f"{BUILT}/softcard", "--timeout", "350", "--link", f"{tmp_path}/wire:{number}",
         *(f"--card={option}" for option in card), "--", f"{BUILT}/softcard_traffic", str(operations),
         "10.77.1.1", str(number)],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("operations, card", RUNS.values(), ids=RUNS)
def test_two_guests_exchange_data(tmp_path, operations, card):
    guests = [start(tmp_path, number, operations, *card) for number in (1, 2)]
    try:
        for guest in guests:
            output, errors = guest.communicate(timeout=500)
            if guest.returncode == CANNOT_RUN:
                pytest.exit(errors.strip(), returncode=CANNOT_RUN)
            assert guest.returncode == 0, errors
            assert output.startswith(f"{operations} operations, 0 wrong, 0 lost"), errors
    finally:
        for guest in guests:
            guest.terminate()
