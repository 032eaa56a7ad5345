"""Hundreds of results that are wrong on purpose, of real runs: no output of offload-report shows one as good."""
import json
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import wrong_results as wrong
from harness import BIN, PATIENCE, SANITIZER_REPORT, TIME_FACTOR, scaled

LOADS = {"closed": ["-i", 1000], "open": ["--rate", 2000, "--duration", "600ms", "--lag-tolerance", "500ms"]}
# Far apart, so that the machine's other work does not decide.
THRESHOLDS = ["--fail", "p50>50", "--fail", "rate<0.02"]
GOOD, NOTHING_FOUND = 'class="banner good"', "nothing found"


def report(*arguments):
    done = subprocess.run([BIN / "offload-report", *map(str, arguments)], check=False, capture_output=True,
                          timeout=60 * TIME_FACTOR)
    done.out, done.log = done.stdout.decode(), done.stderr.decode(errors="replace")
    assert not SANITIZER_REPORT.search(done.log), done.log
    assert done.returncode >= 0, f"signal {-done.returncode}"
    if done.returncode not in (0, 3):
        assert done.out or len(done.log.splitlines()) == 1, done.log
    return done


@pytest.fixture(name="server", scope="module")
def a_server(shared_stage):
    return shared_stage.pair()[0]


@pytest.fixture(name="good", scope="module", params=LOADS)
def a_right_result(request, shared_stage, server):
    """Three runs of the real client, all right."""
    for attempt in range(5):
        path = shared_stage.folder / f"{request.param}-{attempt}.json"
        client = shared_stage.client(server, "--size", 64, *LOADS[request.param], "--repeat", 3, "--output", path)
        if client.wait(60 * TIME_FACTOR) == 0:
            return json.loads(path.read_text())
    pytest.fail(f"no run in five was right: {client.out}")


def shown_as_good(folder, good, text):
    """Returns which outputs show a result as good; `good`: the path of a right one, of another host."""
    folder.mkdir()
    path, page, merged = folder / "wrong.json", folder / "page.html", folder / "merged.json"
    path.write_text(text)
    outputs = []
    if report("html", path, "-o", page).returncode == 0 and GOOD in page.read_text():
        outputs.append("html")
    for others in [], [good]:
        if report("merge", path, *others, "-o", merged).returncode != 0:
            continue
        assert report("html", merged, "-o", page).returncode == 0
        if GOOD in page.read_text():
            outputs.append(f"merge with {len(others)}")
    return outputs + compared_as_good(folder, good, text)


def compared_as_good(folder, good, text):
    folder.mkdir(exist_ok=True)
    path = folder / "wrong.json"
    path.write_text(text)
    outputs = []
    for sides in (good, path), (path, good), (path, path):
        done = report("compare", *sides, *THRESHOLDS)
        if done.returncode == 0 or NOTHING_FOUND in done.out:
            outputs.append(f"compare with NEW {sides[1].name}")
    return outputs


def check(tmp_path, good, cases, judge):
    """Fails with the name of each case, and the outputs, that show it as good. Returns the number of cases."""
    other_host = tmp_path / "good.json"
    other_host.write_text(wrong.changed(good, lambda other: other["machine"].update(host="another")))
    cases = list(cases)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda numbered: judge(tmp_path / str(numbered[0]), other_host, numbered[1][1]),
                              enumerate(cases)))
    assert {name: outputs for (name, _), outputs in zip(cases, found) if outputs} == {}
    return len(cases)


def test_a_right_result_is_shown_as_good(tmp_path, good):
    """Otherwise the other tests could not fail."""
    other_host = tmp_path / "good.json"
    other_host.write_text(wrong.changed(good, lambda other: other["machine"].update(host="another")))
    assert shown_as_good(tmp_path / "of_one", other_host, json.dumps(good)) == [
        "html", "merge with 0", "merge with 1", "compare with NEW wrong.json", "compare with NEW good.json",
        "compare with NEW wrong.json"]


@pytest.mark.parametrize("kind, fewest", [("verdicts", 16), ("errors", 14), ("totals", 40), ("numbers", 120),
                                          ("texts", 20)])
def test_no_output_shows_a_wrong_result_as_good(tmp_path, good, kind, fewest):
    assert check(tmp_path, good, getattr(wrong, f"of_{kind}")(good), shown_as_good) >= fewest


def test_other_loads_are_not_compared(tmp_path, good):
    """They are right, so a page shows them as good."""
    def of_two_loads(folder, path, text):
        """Without the comparison with itself."""
        folder.mkdir()
        other = folder / "wrong.json"
        other.write_text(text)
        done = [report("compare", *sides, *THRESHOLDS) for sides in ((path, other), (other, path))]
        return [each.out for each in done if each.returncode != 3 or "the loads differ: " not in each.out]

    assert check(tmp_path, good, wrong.of_options(good), of_two_loads) >= 30


# How each real run goes wrong: options of server and client, what happens 0.4 s after the client is connected, and its
# exit statuses.
def stop_server(server, client):
    server.stop()
    time.sleep(1.2)
    server.send_signal(signal.SIGCONT)


def stop_client(server, client):
    client.stop()
    time.sleep(0.6)
    client.send_signal(signal.SIGCONT)


def interrupt(server, client):
    client.send_signal(signal.SIGINT)


OPEN = ["--rate", 1000, "--duration", "1s", "--max-concurrent-messages", 4]
WRONG_RUNS = {
    "late server": ([], OPEN, stop_server, {3}),
    "late client": ([], OPEN, stop_client, {3, 4}),  # its server has waited for it, too
    "cut short": ([], ["--duration", "60s"], interrupt, {130}),
    "cut open loop": ([], ["--rate", 1000, "--duration", "60s"], interrupt, {130}),
    "survivors": (["--max-message-length", "1k"], ["--mix", "64:9,2k:1", "--duration", "1s", "--on-error", "count"],
                  None, {1}),
    "stopped by an error": (["--max-message-length", "1k"], ["--mix", "64:99,2k:1", "--duration", "60s"], None, {1}),
}


@pytest.mark.parametrize("name", WRONG_RUNS)
def test_a_run_that_went_wrong(stage, name):
    """Neither the client's own text and exit status nor any output of offload-report shows it as good."""
    server_options, load, happens, statuses = WRONG_RUNS[name]
    server, _ = stage.pair(*server_options)
    path = stage.folder / "result.json"
    client = stage.client(server, *load, "--output", path)
    if happens:
        client.wait_for_log("connected to")
        time.sleep(0.4)
        happens(server, client)
    assert client.wait(PATIENCE) in statuses, client.out + client.log
    assert "the server kept up" not in client.out
    result = json.loads(path.read_text())
    assert result["runs"][0]["verdict"]["code"] != "kept_up"
    good = stage.folder / "good.json"
    for attempt in range(5):
        if stage.client(server, "--size", 64, *LOADS["closed"], "--output", good).wait(PATIENCE) == 0:
            break
    assert shown_as_good(stage.folder / "outputs", good, path.read_text()) == []


def test_few_samples(stage, tmp_path):
    """A right result of a few requests has dashes for percentiles that they do not hold, and neither page nor comparison is good."""
    server, _ = stage.pair()
    path = tmp_path / "few.json"
    client = stage.client(server, "-i", 30, "--repeat", 5, "--output", path, "--csv", tmp_path / "few.csv")
    assert client.wait() == 0
    result = json.loads(path.read_text())
    for run in result["runs"]:
        latency = run["service_time_us"]
        assert latency["p95"] > 0 and [latency[name] for name in ("p99", "p99_9", "p99_99", "p99_999")] == [None] * 4
        assert run["intervals"][0]["service_time_us"]["p99"] is None
    assert "service_time_us.p95" in result["repeats"] and "service_time_us.p99" not in result["repeats"]
    assert all(line.split(",")[8] == "" for line in (tmp_path / "few.csv").read_text().splitlines()[1:])
    assert client.out.count("p99         - ") == 5
    assert shown_as_good(tmp_path / "outputs", path, path.read_text()) == []


@pytest.mark.parametrize("load, status", [(["--rate", 50, "--duration", "1s", "--lag-tolerance", "1s"], 5),
                                          (["-i", 50], 0)],
                         ids=["open loop", "closed loop"])
def test_the_outputs_agree_on_few_requests(stage, tmp_path, load, status):
    """Text, exit status, JSON, page, merged result and comparison: none calls fifty requests good, and all say why."""
    server, _ = stage.pair()
    paths = [tmp_path / f"{number}.json" for number in range(4)]
    for path in paths:
        client = stage.client(server, *load, "--output", path)
        assert client.wait() == status, client.out
        assert "50 right responses, and 100 are needed" in client.out and "kept up" not in client.out
        verdict = json.loads(path.read_text())["runs"][0]["verdict"]
        assert verdict["code"] == {5: "too_few", 0: "closed_loop"}[status]
        assert verdict["text"].endswith("50 right responses, and 100 are needed")
    page, merged = tmp_path / "page.html", tmp_path / "merged.json"
    for result in paths[0], merged:
        assert report("merge", paths[0], "-o", merged).returncode == 0
        assert report("html", result, "-o", page).returncode == 0
        assert 'class="banner warn"' in page.read_text() and "100 are needed" in page.read_text()
    lists = [",".join(map(str, some)) for some in (paths[:3], paths[1:])]
    done = report("compare", *lists, *THRESHOLDS)
    assert done.returncode == 3 and "there were fewer than 100 right responses" in done.out, done.out
    assert shown_as_good(tmp_path / "outputs", paths[0], paths[1].read_text()) == []


def test_a_run_without_answers(stage, tmp_path):
    server, _ = stage.pair("--max-message-length", "1k")
    path = tmp_path / "none.json"
    client = stage.client(server, "--size", "2k", "-i", scaled(20), "--on-error", "count", "--output", path, "--hlog",
                          tmp_path / "none.hlog")
    assert client.wait() == 1
    run, = json.loads(path.read_text())["runs"]
    assert {run["service_time_us"][name] for name in wrong.STATISTICS} == {None}
    assert all(interval["service_time_us"]["max"] is None for interval in run["intervals"])
    assert "Tag=" not in (tmp_path / "none.hlog").read_text()
    assert "Not in the latencies" in client.out
    assert shown_as_good(tmp_path / "outputs", path, path.read_text()) == []
