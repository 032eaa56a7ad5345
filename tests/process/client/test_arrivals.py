"""Checks when requests are due in an open loop: at equal gaps, as a Poisson process, in bursts or by steps of the rate;
and how long a closed loop thinks."""
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


@pytest.mark.parametrize("threads", [1, 3])
def test_bursts(stage, threads):
    server, _ = stage.pair()
    found = gaps(stage, server, 1000, "--burst", 50, "-t", threads, "--duration", "1s")
    apart = [gap for gap in found if gap > 1e-6]
    assert len(found) == 999 and len(apart) == 19
    assert apart == pytest.approx([0.05] * 19, abs=1e-8)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_steps(stage, threads, arrivals):
    server, _ = stage.pair()
    log = stage.folder / "requests.csv"
    run = load_once(stage, server, "--rate", "2k:300ms,8k:200ms,1k:500ms", "--arrivals", arrivals, "-t", threads,
                    "--warmup", "100ms", "--max-concurrent-messages", 8192, *TOLERANT, "--log-requests", log)
    assert run["offered_per_second"] == pytest.approx(2700) and run["duration_seconds"] == 1
    # Times count from the start, to a millisecond.
    times = [each["intended_ns"] / 1e9 for each in requests_of(log)]
    for begin, end, expected in ((0, 0.4, 800), (0.4, 0.6, 1600), (0.6, 1.1, 500)):
        count = sum(begin <= time < end for time in times)
        spread = 0.02 * expected if arrivals == "constant" else 5 * math.sqrt(expected)
        assert abs(count - expected) < spread + 10, (begin, count)


def test_think_time(stage):
    """Each slot waits after its response; with a window of one, slots are connections."""
    server, _ = stage.pair()
    log = stage.folder / "requests.csv"
    run = load_once(stage, server, "--think", "20ms", "--connections", 5, "--max-concurrent-messages", 1,
                    "--duration", "1s", "--log-requests", log)
    # 50 rounds fit; a slow machine makes some fewer.
    assert 5 * 10 < run["operation_count"] <= 5 * 50
    requests = requests_of(log)
    for connection in range(5):
        own = [each for each in requests if each["connection"] == connection]
        pauses = [later["sent_ns"] - earlier["done_ns"] for earlier, later in zip(own, own[1:])]
        assert len(pauses) > 9 and min(pauses) >= 20e6


def test_think_time_of_a_window(stage):
    """The slots of a connection wait each for themselves, also with fewer requests than slots in a batch."""
    server, _ = stage.pair()
    run = load_once(stage, server, "--think", "10ms", "--max-concurrent-messages", 30, "-i", 3000)
    assert run["valid_responses"] == 3000
    assert run["duration_seconds"] >= 0.99  # 100 rounds


def test_think_time_of_a_connection_that_is_made_again(stage):
    server, _ = stage.pair()
    run = load_once(stage, server, "--think", "5ms", "--reconnect-every", 3, "--max-concurrent-messages", 2, "-i", 20)
    assert run["valid_responses"] == 20 and run["connect_time_us"]["count"] == 7


@pytest.mark.parametrize("options, hint", [
    (["--rate", "1k:1s,"], "steps, such as 10k:5s,20k:5s"), (["--rate", "1k:1s,2k"], "steps, such as"),
    (["--rate", "1k:0"], "steps, such as"), (["--rate", "0:1s"], "steps, such as"),
    (["--rate", "1k:1s", "--duration", "1s"], "--rate with steps excludes --duration"),
    (["--rate", "1k:1s", "--scan", "depth=1,2"], "--rate with steps excludes --scan"),
    (["--rate", "1:1s,20m:1s"], "a thread sends at most"),
    (["--think", "1ms", "--rate", "1k"], "--think requires a closed loop"),
    (["--burst", "5"], "--burst requires an open loop"),
    (["--burst", "5", "--rate", "1k", "--arrivals", "poisson"], "--burst excludes --schedule and --arrivals"),
], ids=str)
def test_a_wrong_command_line(stage, options, hint):
    client = stage.client(1, *options)
    assert client.wait() == 2
    line, = client.log.splitlines()
    assert hint in line
