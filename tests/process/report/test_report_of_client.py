"""offload-report on what the load client really writes."""
import json
import subprocess
import time

import pytest
from harness import BIN, RIGHT, TIME_FACTOR


def report(*arguments):
    return subprocess.run([BIN / "offload-report", *map(str, arguments)], check=False, text=True,
                          capture_output=True, timeout=60 * TIME_FACTOR)


def results(stage, loads):
    """The results of clients that run at the same time, one for each list of options."""
    server, _ = stage.pair()
    paths = [stage.folder / f"{number}.json" for number in range(len(loads))]
    clients = [stage.client(server, "--size", 64, *load, "--output", path)
               for load, path in zip(loads, paths)]
    for client in clients:
        assert client.wait() in RIGHT, client.log
    return paths


@pytest.mark.parametrize("load", [["--rate", "500"], []], ids=["open loop", "closed loop"])
def test_a_page_of_repeats(stage, load):
    path, = results(stage, [[*load, "--duration", "200ms", "--repeat", "3"]])
    page = stage.folder / "page.html"
    done = report("html", path, "-o", page)
    assert done.returncode == 0, done.stderr
    for run in json.loads(path.read_text())["runs"]:
        assert f'data-figure="valid_responses" data-value="{run["valid_responses"]}"' in page.read_text()


def test_clients_that_began_together_are_merged(stage):
    start = ["--rate", "500", "--duration", "1s", "--start-at", f"{time.time() + 3:.3f}"]
    paths = results(stage, [[*start, "--seed", "1"], [*start, "--seed", "2"]])
    merged = stage.folder / "merged.json"
    done = report("merge", *paths, "-o", merged)
    assert done.returncode == 0, done.stderr
    parts = [json.loads(path.read_text())["runs"][0] for path in paths]
    whole, = json.loads(merged.read_text())["runs"]
    for latency in ("service_time_us", "response_time_us"):
        assert whole[latency]["count"] == sum(part[latency]["count"] for part in parts)
        assert whole[latency]["max"] == pytest.approx(max(part[latency]["max"] for part in parts))
    assert report("html", merged, "-o", stage.folder / "page.html").returncode == 0


def test_a_result_beside_itself_is_no_slower(stage):
    path, = results(stage, [["-i", "500", "--repeat", "6"]])
    done = report("compare", path, path, "--fail", "p50>1.5")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_run_that_ended_early(stage):
    server, _ = stage.pair()
    path = stage.folder / "failed.json"
    client = stage.client(server, "-m", "hello", "-e", "wrong", "--rate", "100", "--output", path)
    assert client.wait() == 1
    page = stage.folder / "page.html"
    done = report("html", path, "-o", page)
    assert done.returncode == 0, done.stderr
    assert "differs at offset" in page.read_text()
    assert report("compare", path, path, "--fail", "p50>1.5").returncode == 1  # errors come first
