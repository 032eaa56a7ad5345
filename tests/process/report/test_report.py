"""offload-report as its users run it: what it merges, compares and refuses."""
import json
import re
import subprocess

import pytest
import report_results as made
from harness import BIN, SANITIZER_REPORT, TIME_FACTOR

START = 1763879556.1


def report(*arguments):
    done = subprocess.run([BIN / "offload-report", *map(str, arguments)], check=False,
                          capture_output=True, timeout=60 * TIME_FACTOR)
    done.out, done.log = done.stdout.decode(), done.stderr.decode(errors="replace")
    assert not SANITIZER_REPORT.search(done.log), done.log
    assert done.returncode >= 0, f"signal {-done.returncode}"
    return done


def expect_one_line(done, status, *hints):
    assert done.returncode == status, done.log
    assert done.out == ""
    assert done.log.endswith("\n") and len(done.log.splitlines()) == 1, done.log
    assert done.log.startswith("offload-report: ")
    for hint in hints:
        assert hint in done.log


@pytest.fixture(name="two_hosts")
def results_of_two_hosts(tmp_path):
    """Two results of processes that began within 4 ms of each other, and their paths."""
    results = [made.result([made.run(seed=1, started_at=START, seconds=5, rate=100_000.0)]),
               made.result([made.run(seed=2, started_at=START + 0.004, seconds=5, rate=150_000.0,
                                     errors={"mismatch": 2})],
                           host="load-2", status="failed", faults=["thread 1: a fault"])]
    return results, [made.write(tmp_path / f"{i}.json", each) for i, each in enumerate(results)]


def test_merge(tmp_path, two_hosts):
    results, paths = two_hosts
    merged_path, log_path = tmp_path / "merged.json", tmp_path / "merged.hlog"
    done = report("merge", *paths, "-o", merged_path, "--hlog", log_path)
    assert done.returncode == 0 and done.log == "", done.log
    merged = json.loads(merged_path.read_text())
    (run,), (one,), (other,) = merged["runs"], results[0]["runs"], results[1]["runs"]
    assert merged["status"] == "failed"
    assert merged["faults"] == ["load-2: thread 1: a fault"]
    assert merged["machine"]["host"] == "load-1, load-2"
    assert run["errors"] == {"load-2: mismatch": 2}
    for counter in ("operation_count", "valid_responses", "tx_bytes", "rx_bytes", "connections"):
        assert run[counter] == one[counter] + other[counter]
    assert run["duration_seconds"] == pytest.approx(5.004, abs=1e-6)
    assert run["io_rate_miops"] == pytest.approx(run["operation_count"] / 5.004e6)

    # The same latencies again, made here: percentiles of all of them, and not means of percentiles.
    expected = made.Histogram()
    for seed, rate in ((1, 100_000.0), (2, 150_000.0)):
        expected.merge(made.run_histogram(seed, 5, rate))
    latency = expected.latency()
    for name in ("count", "min", "p50", "p90", "p99", "p99_9", "p99_99", "max"):
        assert run["service_time_us"][name] == pytest.approx(latency[name]), name
    assert sum(i["operations"] for i in run["intervals"]) == run["operation_count"]
    assert [i["start_s"] for i in run["intervals"]] == [0, 1, 2, 3, 4]
    for number, interval in enumerate(run["intervals"]):
        assert interval["errors"] == one["intervals"][number]["errors"] + \
            other["intervals"][number]["errors"]

    log = log_path.read_text().splitlines()
    assert log[0] == "#[Histogram log format version 1.3]"
    lines = [line for line in log if line.startswith("Tag=")]
    assert len(lines) == 5
    assert lines[0].split(",")[4] == run["intervals"][0]["service_time_us"]["histogram"]

    again = report("merge", merged_path, "-o", merged_path)
    assert again.returncode == 0, again.log
    assert json.loads(merged_path.read_text())["runs"] == merged["runs"]


def test_merge_refuses_results_that_did_not_run_together(tmp_path):
    first = made.write(tmp_path / "a.json", made.result([made.run(started_at=START, seconds=2)]))
    later = made.write(tmp_path / "b.json",
                       made.result([made.run(started_at=START + 9, seconds=2)]))
    other = made.write(tmp_path / "c.json",
                       made.result([made.run(started_at=START, seconds=2, offered=100.0)]))
    target = tmp_path / "merged.json"
    expect_one_line(report("merge", first, later, "-o", target), 1, first, later, "overlap")
    expect_one_line(report("merge", first, other, "-o", target), 1, first, other, "closed loop")
    expect_one_line(report("merge", first, first, "-o", target), 1, "same result")
    assert not target.exists()


def test_outputs_replace_only_their_own_kind(tmp_path):
    result = made.write(tmp_path / "a.json", made.result([made.run(seconds=2)]))
    page, merged, precious = tmp_path / "a.html", tmp_path / "m.json", tmp_path / "precious"
    for _ in range(2):
        assert report("html", result, "-o", page).returncode == 0
        assert report("merge", result, "-o", merged).returncode == 0
    precious.write_text("<!doctype html>\n<p>mine")
    for arguments in (("html", result, "-o", precious), ("merge", result, "-o", precious),
                      ("html", result, "-o", merged), ("merge", result, "-o", page),
                      ("merge", result, "-o", tmp_path / "n.json", "--hlog", precious)):
        expect_one_line(report(*arguments), 1, "is not overwritten")
    assert precious.read_text() == "<!doctype html>\n<p>mine"
    precious.write_text("")
    assert report("html", result, "-o", precious).returncode == 0
    assert not list(tmp_path.glob("*.part"))


@pytest.fixture(name="series", scope="module")
def series_of_repeats(tmp_path_factory):
    """Results of ten repeats, 3 % noise, those of NEW ten seconds after those of BASE."""
    folder = tmp_path_factory.mktemp("series")
    options = {"seconds": 2, "sampled": 500}
    write = made.write
    return {
        "base": write(folder / "base.json", made.result(made.repeats(10, 1, START, **options))),
        "same": write(folder / "same.json", made.result(made.repeats(10, 2, START + 10, **options))),
        "slower": write(folder / "slower.json", made.result(
            made.repeats(10, 3, START + 10, speed=1 / 1.2, **options))),
        "after": write(folder / "after.json", made.result(
            made.repeats(10, 4, START + 500, **options))),
        "few": write(folder / "few.json", made.result(made.repeats(2, 5, START + 10, **options))),
        "failed": write(folder / "failed.json", made.result(
            made.repeats(10, 6, START + 10, errors={"mismatch": 1}, **options), status="failed")),
    }


def test_compare_equal(series):
    done = report("compare", series["base"], series["same"], "--fail", "p50>1.2", "--fail", "rate<0.8")
    assert done.returncode == 0, done.out
    assert "10 pairs of runs, alternated" in done.out
    assert re.search(r"^service p99 \(us\) .* \d\.\d{3} to \d\.\d{3} +\d+\.\d % +\d+\.\d %$",
                     done.out, re.MULTILINE)
    assert done.out.endswith("nothing found\n")
    assert "warning" not in done.out


def test_compare_slower(series):
    done = report("compare", series["base"], series["slower"], "--fail", "p50 > 1.1")
    assert done.returncode == 1, done.out
    assert "p50>1.1: EXCEEDED" in done.out


def test_compare_with_a_threshold_in_the_noise(series):
    done = report("compare", series["base"], series["same"], "--fail", "p50>1.01")
    assert done.returncode == 3, done.out
    assert re.search(r"p50>1.01: no verdict: the noise .* about \d+ alternated repeats", done.out)


def test_compare_errors_first(series):
    done = report("compare", series["base"], series["failed"], "--fail", "p50>1.01")
    assert done.returncode == 1, done.out
    assert done.out.index("ERRORS") < done.out.index("pairs of runs")
    assert "mismatch: 10" in done.out


def test_compare_not_alternated(series):
    done = report("compare", series["base"], series["after"])
    assert done.returncode == 0, done.out
    assert "warning: the runs were not alternated" in done.out


def test_compare_too_few(series):
    done = report("compare", series["base"], series["few"])
    assert done.returncode == 3, done.out
    assert "2 pairs of runs: a verdict needs at least 3" in done.out


def test_compare_lists_and_folders(tmp_path):
    sides = {"base": tmp_path / "base", "new": tmp_path / "new"}
    for number, (name, folder) in enumerate(sides.items()):
        folder.mkdir()
        for repeat in range(3):
            started = START + 20 * repeat + 10 * number
            made.write(folder / f"{repeat}.json",
                       made.result([made.run(seed=repeat, started_at=started, seconds=2)]))
    done = report("compare", sides["base"], ",".join(map(str, sides["new"].iterdir())),
                  "--fail", "p99>1.1")
    assert done.returncode == 0, done.out
    assert "3 pairs of runs, alternated" in done.out
    expect_one_line(report("compare", tmp_path, sides["new"]), 3, str(tmp_path), "*.json")


@pytest.mark.parametrize("text, hint", [
    (b"", "is empty"), (b"no JSON", "is not valid JSON"), (b"\xff\xfe{}", "is not valid JSON"), (b"[]", "is not an object"),
    (b"{}", "program is missing"), (b'{"program": "wrk"}', "program is not offload-client"),
    (b"[" * 100_000, "levels deep"), (b'{"program": 1e999}', "is not valid JSON"),
    (b"\x00" * 100, "is not valid JSON"),
])
@pytest.mark.parametrize("command", ["merge", "html", "compare"])
def test_files_that_are_no_results(tmp_path, command, text, hint):
    path = tmp_path / "a.json"
    path.write_bytes(text)
    arguments = (path, path) if command == "compare" else (path, "-o", tmp_path / "out")
    expect_one_line(report(command, *arguments), 3 if command == "compare" else 1, f"'{path}'", hint)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("place, value", [
    (("runs", 0, "operation_count"), -1), (("runs", 0, "operation_count"), 2**60),
    (("runs", 0, "duration_seconds"), 1e300), (("runs", 0, "service_time_us", "p99"), "fast"),
    (("runs", 0, "service_time_us", "histogram"), "HISTFAAAA"), (("runs", 0, "errors"), [1]),
    (("runs", 0, "intervals", 1, "start_s"), None), (("machine", "host"), {}), (("runs",), {}),
    (("status",), "fine"), (("format",), 2), (("command_line",), "a b"),
])
def test_fields_that_are_wrong(tmp_path, place, value):
    result = made.result([made.run(seconds=2, sampled=50)])
    *way, last = place
    parent = result
    for step in way:
        parent = parent[step]
    parent[last] = value
    path = made.write(tmp_path / "a.json", result)
    named = re.sub(r"\.(\d+)", r"[\1]", ".".join(map(str, place)))
    expect_one_line(report("html", path, "-o", tmp_path / "out"), 1, f"'{path}' {named}")


def test_files_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "none", tmp_path, "/dev/zero", ""):
        done = report("compare", path, path)
        expect_one_line(done, 3, str(path))


@pytest.mark.parametrize("arguments, hint", [
    ((), "a command is required: merge, html, compare"), (("plot",), "unknown command 'plot'"), (("merge", "a"), "--output"),
    (("html", "-o", "b"), "RESULT"), (("compare", "a"), "NEW"),
    (("compare", "a", "b", "--fail", "p99"), "FIGURE > NUMBER"),
    (("compare", "a", "b", "--fail", "p99>x"), "FIGURE > NUMBER"),
])
def test_wrong_command_lines(arguments, hint):
    expect_one_line(report(*arguments), 2, hint)


OPTIONS = {
    (): {"-h", "--help", "--version"},
    ("merge",): {"-h", "--help", "-o", "--output", "--hlog"},
    ("html",): {"-h", "--help", "-o", "--output"},
    ("compare",): {"-h", "--help", "--fail"},
}


@pytest.mark.parametrize("command", OPTIONS)
def test_help(command):
    """Every option in the help is one that is tested here."""
    done = report(*command, "--help")
    assert done.returncode == 0 and done.log == ""
    heads = re.findall(r"^  (-[^ ]+)", done.out, re.MULTILINE)
    assert {option for head in heads for option in head.split(",")} == OPTIONS[command]
    assert "Exit status: 0" in done.out


def test_version():
    assert re.fullmatch(r"offload-report \d+\.\d+\.\d+\n", report("--version").out)
