"""When requests are due in an open loop: at equal gaps, or as a Poisson process has it."""
import math

import pytest

from results import load_once, requests_of

# Of the Kolmogorov-Smirnov test at 1 %, for many values.
CRITICAL = 1.628
# What is noticed late is of no interest here: this is about when it was intended.
TOLERANT = ["--lag-tolerance", "1s"]


def gaps(stage, server, rate, *options):
    """Seconds between the intended times of a run of `rate` a second."""
    log = stage.folder / "requests.csv"
    load_once(stage, server, "--rate", rate, "--max-concurrent-messages", 8192, *TOLERANT, "--log-requests",
              log, *options)
    times = sorted(each["intended_ns"] for each in requests_of(log))
    return [(other - one) / 1e9 for one, other in zip(times, times[1:])]


def distance(values, rate):
    """Of Kolmogorov and Smirnov: the largest difference of the values' distribution and the exponential
    one, times the root of their number."""
    count = len(values)
    furthest = 0
    for index, value in enumerate(sorted(values)):
        expected = -math.expm1(-rate * value)
        furthest = max(furthest, expected - index / count, (index + 1) / count - expected)
    return furthest * math.sqrt(count)


def correlation(values):
    """Of each value with the next."""
    mean = sum(values) / len(values)
    off = [value - mean for value in values]
    return sum(one * other for one, other in zip(off, off[1:])) / sum(each * each for each in off)


@pytest.mark.parametrize("rate, count, threads", [(1000, 2000, 1), (20_000, 20_000, 1), (20_000, 20_000, 3)])
def test_poisson(stage, rate, count, threads):
    """The seeds are fixed, so that this is the same in each run of the test. Those of several threads
    are Poisson arrivals together as well."""
    server, _ = stage.pair()
    found = gaps(stage, server, rate, "--arrivals", "poisson", "-t", threads, "--duration", f"{count / rate}s")
    assert abs(len(found) - count) < 5 * math.sqrt(count)
    assert distance(found, rate) < CRITICAL
    # Gaps that follow each other are independent.
    assert abs(correlation(found)) < 3 / math.sqrt(len(found))


@pytest.mark.parametrize("threads", [1, 3])
def test_constant(stage, threads):
    """Threads share the rate so that the gaps stay equal; and what rejects this is no test of nothing."""
    server, _ = stage.pair()
    rate, count = 3000, 1500
    found = gaps(stage, server, rate, "-t", threads, "-i", count // threads)
    assert len(found) == count - 1
    assert found == pytest.approx([1 / rate] * len(found), abs=3e-9)
    assert distance(found, rate) > 10 * CRITICAL
