"""The load client's figures match its requests: the test computes the percentiles again from --log-requests, and
the sums over the seconds of --hlog and --csv equal the JSON's figures of the run."""
import csv
import importlib
import math
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import PATIENCE, ROOT, TIME_FACTOR
from results import bucket_of, decode_histogram, finish, requests_of, start

QUANTILES = {"p50": .5, "p90": .9, "p95": .95, "p99": .99, "p99_9": .999, "p99_99": .9999,
             "p99_999": .99999}
HALF_A_STEP = 1 / 256  # there are 128 buckets in a power of two
WARM_UP = 0.5
KINDS = ("service_time", "response_time")


@pytest.fixture(scope="module", name="runs")
def fixture_runs(shared_stage):
    """Runs an open and a closed loop that write all kinds of files."""
    server, _ = shared_stage.pair()
    found = {}
    for name, options in (
            ("open", ["--rate", 4000, "--arrivals", "poisson", "--duration", "2300ms", "--lag-tolerance",
                      f"{0.2 * TIME_FACTOR}s", "--warmup", f"{WARM_UP}s"]),
            ("closed", ["-t", 2, "--duration", "1200ms", "--max-concurrent-messages", 3])):
        files = {kind: shared_stage.folder / f"{name}.{kind}" for kind in ("hlog", "csv", "requests")}
        client = start(shared_stage, server, *options, "--hlog", files["hlog"], "--csv", files["csv"],
                       "--log-requests", files["requests"])
        run, = finish(client)["runs"]
        found[name] = SimpleNamespace(run=run, **files)
    return found


both = pytest.mark.parametrize("name", ["open", "closed"])


def measured(runs):
    """Returns the requests of the open loop that count: those after the warm-up. Its end is the time at which the load
    thread saw that it was over: it is found by the count and then checked to be near that time."""
    requests = sorted(requests_of(runs["open"].requests), key=lambda each: each["done_ns"])
    count = runs["open"].run["operation_count"]
    warm_up, rest = requests[:-count], requests[-count:]
    assert warm_up, "the warm-up was counted"
    assert rest[0]["done_ns"] >= WARM_UP * 1e9
    assert warm_up[-1]["done_ns"] <= (WARM_UP + 0.2 * TIME_FACTOR) * 1e9
    return rest


@pytest.mark.parametrize("figures, since", [("service_time_us", "sent_ns"),
                                            ("response_time_us", "intended_ns")])
def test_percentiles_by_the_log_of_requests(runs, figures, since):
    latencies = sorted(each["done_ns"] - each[since] for each in measured(runs))
    got = runs["open"].run[figures]
    assert got["count"] == len(latencies) == runs["open"].run["valid_responses"]
    assert got["min"] * 1e3 == pytest.approx(latencies[0])
    assert got["max"] * 1e3 == pytest.approx(latencies[-1])
    assert got["mean"] * 1e3 == pytest.approx(sum(latencies) / len(latencies), rel=HALF_A_STEP)
    for name, quantile in QUANTILES.items():
        rank = math.ceil(quantile * len(latencies))  # nearest rank
        if len(latencies) * (1 - quantile) < 1 - 1e-9:  # none lies beyond it
            assert got[name] is None, name
            continue
        assert got[name] * 1e3 == pytest.approx(latencies[rank - 1], rel=HALF_A_STEP, abs=1), name
    assert decode_histogram(got["histogram"]) == Counter(map(bucket_of, latencies))


@both
def test_the_log_has_every_request_in_a_plausible_order_of_times(runs, name):
    requests = requests_of(runs[name].requests)
    assert {each["outcome"] for each in requests} == {"ok"}
    assert {each["run"] for each in requests} == {0} and {each["bytes"] for each in requests} == {5}
    assert {each["connection"] for each in requests} == ({0} if name == "open" else {0, 1})
    for each in requests:
        assert 0 <= each["intended_ns"] <= each["sent_ns"] < each["done_ns"]
    if name == "closed":
        assert len(requests) == runs[name].run["valid_responses"]
        assert all(each["intended_ns"] == each["sent_ns"] for each in requests)


def intervals_of_log(path):
    """Yields tag, start, length, highest value and counts of each line of an HdrHistogram log."""
    for line in path.read_text().splitlines():
        if line.startswith(("#", '"')):
            continue
        fields = line.split(",")
        tag = fields.pop(0).removeprefix("Tag=") if line.startswith("Tag=") else ""
        start, length, highest, encoded = fields
        yield tag, float(start), float(length), float(highest), \
            decode_histogram(encoded)


@both
def test_the_intervals_of_the_histogram_log_add_up(runs, name):
    run = runs[name].run
    lines = list(intervals_of_log(runs[name].hlog))
    for kind in KINDS:
        total = sum((counts for tag, *_, counts in lines if tag == kind), Counter())
        figures = run[f"{kind}_us"]
        if figures is None:
            assert not total
            continue
        assert total == decode_histogram(figures["histogram"])
        assert total.total() == figures["count"] > 0
        of_kind = [line for line in lines if line[0] == kind]
        assert len(of_kind) == len(run["intervals"])
        for (_, start, length, highest, counts), interval in zip(of_kind, run["intervals"]):
            assert start == pytest.approx(interval["start_s"], abs=1e-3)
            assert length == pytest.approx(interval["length_s"], abs=1e-3)
            assert counts == decode_histogram(interval[f"{kind}_us"]["histogram"])
            # In milliseconds; the highest value of the bucket that the largest one belongs to.
            assert highest * 1e3 == pytest.approx(interval[f"{kind}_us"]["max"], rel=3 * HALF_A_STEP)


@both
def test_the_log_has_one_kind_without_a_tag(runs, name):
    """Tools read lines without a tag if they are told none: those of the response time, if there is one."""
    kind = "response_time" if name == "open" else "service_time"
    without, tagged = ([line[1:] for line in intervals_of_log(runs[name].hlog) if line[0] == tag] for tag in ("", kind))
    assert without == tagged != []


JAR = Path("/usr/share/java/hdrhistogram.jar")


@pytest.mark.skipif(not shutil.which("java") or not JAR.exists(), reason="needs java and libhdrhistogram-java")
@pytest.mark.parametrize("name, words, kind", [
    ("open", (), "response_time"), ("closed", (), "service_time"),
    ("open", ("-tag", "service_time"), "service_time"), ("open", ("-tag", "response_time"), "response_time")])
def test_hdrhistograms_log_processor(runs, tmp_path, name, words, kind):
    command = ["java", "-cp", JAR, "org.HdrHistogram.HistogramLogProcessor", "-i", runs[name].hlog, "-o",
               tmp_path / "out", "-outputValueUnitRatio", "1000", *words]
    done = subprocess.run(command, timeout=PATIENCE, text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    text = (tmp_path / "out.hgrm").read_text()
    figures = runs[name].run[f"{kind}_us"]
    total = re.search(r"Max += +([\d.]+), Total count += +(\d+)", text)
    assert int(total[2]) == figures["count"]
    assert float(total[1]) == pytest.approx(figures["max"], rel=3 * HALF_A_STEP)
    assert len(re.findall(r"^\d", (tmp_path / "out").read_text(), re.MULTILINE)) == len(runs[name].run["intervals"])


def test_hdrhistograms_own_reader(runs, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests/metrics")
    try:
        histogram, log = importlib.import_module("hdr_live_test").import_hdrh(str(tmp_path))
    except ImportError as error:
        pytest.skip(f"no Python module hdrhistogram, and pip does not install it: {error}")
    totals = {kind: histogram.HdrHistogram(1, 3_600_000_000_000, 2) for kind in KINDS}
    reader = log.HistogramLogReader(str(runs["open"].hlog), totals["service_time"])
    while interval := reader.get_next_interval_histogram():
        if interval.get_tag():
            totals[interval.get_tag()].add(interval)
    reader.close()
    for kind, total in totals.items():
        figures = runs["open"].run[f"{kind}_us"]
        assert total.get_total_count() == figures["count"]
        assert {index: total.get_count_at_index(index) for index in range(total.counts_len)
                if total.get_count_at_index(index)} == decode_histogram(figures["histogram"])
        # HdrHistogram gives the highest value of the bucket, the client its middle.
        assert total.get_value_at_percentile(50) / 1e3 == pytest.approx(figures["p50"], rel=2 * HALF_A_STEP)


@both
def test_the_lines_of_the_csv_add_up(runs, name):
    run = runs[name].run
    with open(runs[name].csv, newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(run["intervals"]) >= 2
    for column, key in (("operations", "operation_count"), ("valid", "valid_responses")):
        assert sum(int(line[column]) for line in lines) == run[key]
    assert sum(int(line["errors"]) for line in lines) == sum(run["errors"].values()) == 0
    for line, interval in zip(lines, run["intervals"]):
        assert line["run"] == "0" and int(line["operations"]) == interval["operations"]
        for column in ("start_s", "length_s", "in_flight"):
            assert float(line[column]) == pytest.approx(interval[column], abs=1e-3)
        for kind in KINDS:
            for figure in ("p50", "p99", "max"):
                text = line[f"{kind.partition('_')[0]}_{figure}_us"]
                if run[f"{kind}_us"] is None or interval[f"{kind}_us"][figure] is None:
                    assert text == ""  # the last interval of a slow machine has few latencies
                else:
                    assert float(text) == pytest.approx(interval[f"{kind}_us"][figure], abs=1e-3)
    highest = max(float(line["service_max_us"]) for line in lines)
    assert highest == pytest.approx(run["service_time_us"]["max"], abs=1e-3)


@both
def test_the_seconds_follow_each_other(runs, name):
    run = runs[name].run
    intervals = run["intervals"]
    assert intervals[0]["start_s"] == pytest.approx(run["warmup_seconds"], abs=0.2 * TIME_FACTOR)
    for one, other in zip(intervals, intervals[1:]):
        # The two threads begin the next second one after the other.
        assert other["start_s"] == pytest.approx(one["start_s"] + one["length_s"], abs=0.2 * TIME_FACTOR)
    covered = sum(interval["length_s"] for interval in intervals)
    assert covered == pytest.approx(run["duration_seconds"], abs=0.2 * TIME_FACTOR)
    assert run["in_flight"]["mean"] == pytest.approx(run["in_flight"]["by_littles_law"], rel=0.05)
