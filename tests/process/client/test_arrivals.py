"""Checks when requests are due in an open loop: at equal gaps, or as a Poisson process."""
import math

import pytest

from results import load_once, requests_of

# The critical value of the Kolmogorov-Smirnov test at 1 %, for many values.
CRITICAL = 1.628
# These tests check the intended times; late sending does not matter here.
TOLERANT = ["--lag-tolerance", "1s"]


def gaps(stage, server, rate, *options):
    """Returns the seconds between the intended times of a run with `rate` requests a second."""
    log = stage.folder / "requests.csv"
    load_once(stage, server, "--rate", rate, "--max-concurrent-messages", 8192, *TOLERANT, "--log-requests",
              log, *options)
    times = sorted(each["intended_ns"] for each in requests_of(log))
    return [(other - one) / 1e9 for one, other in zip(times, times[1:])]


def distance(values, rate):
    """Returns the Kolmogorov-Smirnov distance: the largest difference of the values' distribution and the exponential
    one, times the square root of their number."""
    count = len(values)
    furthest = 0
    for index, value in enumerate(sorted(values)):
        expected = -math.expm1(-rate * value)
        furthest = max(furthest, expected - index / count, (index + 1) / count - expected)
    return furthest * math.sqrt(count)


def correlation(values):
    """Returns the correlation of each value with the next."""
    mean = sum(values) / len(values)
    off = [value - mean for value in values]
    return sum(one * other for one, other in zip(off, off[1:])) / sum(each * each for each in off)


@pytest.mark.parametrize("rate, count, threads", [(1000, 2000, 1), (20_000, 20_000, 1), (20_000, 20_000, 3)])
def test_poisson(stage, rate, count, threads):
    """The seeds are fixed, so that each run of the test gives the same result. The arrivals of several
    threads together are Poisson arrivals as well."""
    server, _ = stage.pair()
    found = gaps(stage, server, rate, "--arrivals", "poisson", "-t", threads, "--duration", f"{count / rate}s")
    assert abs(len(found) - count) < 5 * math.sqrt(count)
    assert distance(found, rate) < CRITICAL
    # Successive gaps are independent.
    assert abs(correlation(found)) < 3 / math.sqrt(len(found))


@pytest.mark.parametrize("threads", [1, 3])
def test_constant(stage, threads):
    """Threads share the rate so that the gaps stay equal; and the Poisson test rejects these gaps, so it can fail."""
    server, _ = stage.pair()
    rate, count = 3000, 1500
    found = gaps(stage, server, rate, "-t", threads, "-i", count // threads)
    assert len(found) == count - 1
    assert found == pytest.approx([1 / rate] * len(found), abs=3e-9)
    assert distance(found, rate) > 10 * CRITICAL
