"""Several kinds of requests in one load: each goes to its own port, with its share of the load and its own results."""
import json
import re
import subprocess
import time
from collections import Counter

import pytest

from results import decode_histogram, finish, load, start
from harness import BIN, EXTENSIONS, TIME_FACTOR, scaled

TOLERANT = ["--lag-tolerance", f"{0.5 * TIME_FACTOR}s"]


@pytest.fixture(name="ports")
def fixture_ports(stage):
    """Returns the ports of the services reverse and echo of one server."""
    server = stage.server("--listen", "0=reverse", "--listen", "0=echo")
    stage.worker()
    server.wait_for_log(r"listening on \S+", count=2)
    return [int(port) for port in re.findall(r"listening on \S+:(\d+) with", server.log)]


def kinds_of(result):
    run, = result["runs"]
    assert sum(kind["operation_count"] for kind in run["kinds"]) == run["operation_count"]
    assert sum(kind["connections"] for kind in run["kinds"]) == run["connections"]
    return {kind["name"]: kind for kind in run["kinds"]}


def test_an_open_loop_has_rates_by_weight(stage, ports):
    options = [f"often:port={ports[0]},weight=3,size=64", f"seldom:port={ports[1]},size=8,service=echo"]
    client = start(stage, ports[0], *(word for kind in options for word in ("--kind", kind)), "--connections", 4,
                   "--rate", 2000, "--duration", f"{scaled(1000, 400)}ms", *TOLERANT)
    result = finish(client, (0, 3, 4))
    kinds = kinds_of(result)
    assert result["options"]["kinds"] == options
    run, = result["runs"]
    assert run["requests"]["due"] == 2 * scaled(1000, 400)
    assert (kinds["often"]["connections"], kinds["seldom"]["connections"]) == (3, 1)
    assert (kinds["often"]["offered_per_second"], kinds["seldom"]["offered_per_second"]) == (1500, 500)
    # Requests that were due at the very end may be unsent.
    assert kinds["often"]["operation_count"] == pytest.approx(3 * kinds["seldom"]["operation_count"], rel=0.1)
    for kind in kinds.values():
        assert kind["valid_responses"] == kind["operation_count"] == kind["response_time_us"]["count"]
        assert 0 < kind["response_time_us"]["p50"] <= kind["response_time_us"]["p99"]
    table = dict(re.findall(r"^  (often|seldom) +(\d+ .*)$", client.out, re.MULTILINE))
    assert table["often"].split()[0] == str(ports[0]) and len(table["seldom"].split()) == 5
    assert "Verification:             often: builtin (service reverse), seldom: builtin (service echo)\n" in client.out


@pytest.mark.skipif("report" not in EXTENSIONS, reason="a build without the extension report")
def test_the_report_has_the_kinds(stage, ports):
    """Two clients that begin together: the merged result has the kinds of both, and its page shows them."""
    kinds = ["--kind", "often:weight=3", "--kind", f"seldom:port={ports[1]},service=echo"]
    begin = f"{time.time() + 3 * TIME_FACTOR:.3f}"
    clients = [start(stage, ports[0], *kinds, "--size", 64, "--connections", 4, "--rate", 500, "--duration", "1s",
                     "--start-at", begin, "--seed", seed, *TOLERANT) for seed in (1, 2)]
    parts = [kinds_of(finish(client)) for client in clients]
    merged, page = stage.folder / "merged.json", stage.folder / "page.html"
    for command in (["merge", *(client.json_file for client in clients), "-o", merged], ["html", merged, "-o", page]):
        done = subprocess.run([BIN / "offload-report", *command], check=False, text=True, capture_output=True,
                              timeout=60 * TIME_FACTOR)
        assert done.returncode == 0, done.stderr
    whole = kinds_of(json.loads(merged.read_text()))
    assert list(whole) == ["often", "seldom"]
    text = page.read_text()
    for name, kind in whole.items():
        both = [part[name] for part in parts]
        for figure in ("operation_count", "valid_responses", "connections", "offered_per_second"):
            assert kind[figure] == sum(each[figure] for each in both), figure
        for latency in ("service_time_us", "response_time_us"):
            assert decode_histogram(kind[latency]["histogram"]) == sum(
                (decode_histogram(each[latency]["histogram"]) for each in both), Counter())
        assert kind["share"] == pytest.approx({"often": 0.75, "seldom": 0.25}[name])
        shown, = re.findall(rf'data-run="1 {name}" data-figure="kind.valid_responses" data-value="(\d+)"', text)
        assert int(shown) == kind["valid_responses"] > 0
    assert f"<td>{ports[1]}</td>" in text


def test_errors_belong_to_their_kind(stage, ports):
    result = load(stage, ports[0], "--size", 64, "--kind", "right", "--kind", f"wrong:port={ports[1]}",
                  "--kind", f"unchecked:port={ports[1]},verify=none", "--connections", 3, "-t", 2, "-i", 100,
                  "--on-error", "count", status=1)
    kinds = kinds_of(result)
    assert {name: kind["errors"] for name, kind in kinds.items()} == {
        "right": {}, "wrong": {"mismatch": 200}, "unchecked": {}}
    assert kinds["right"]["service_time_us"]["count"] == kinds["unchecked"]["valid_responses"] == 200
    assert kinds["right"]["response_time_us"] is None
    assert len(result["faults"]) == 2 and all(fault.startswith("wrong, thread ") for fault in result["faults"])


def test_a_load_of_one_kind_has_no_kinds(stage, ports):
    run, = load(stage, ports[0], "--size", 64, "-i", 10)["runs"]
    assert run["kinds"] == []


@pytest.mark.parametrize("options, hint", [
    (["--kind", "a:b"], "such as lookup:port=12346"),
    (["--kind", "a", "--kind", "a", "--size", 1], "--kind a is given twice"),
    (["--kind", "a"], "--kind a requires a size or requests"),
    (["--kind", "a", "-m", "hello"], "--kind excludes --message-string"),
    (["--kind", "a:size=1", "--kind", "b:size=1"], "2 kinds require at least one connection each"),
    (["--kind", "a", "--schedule", "x"], "--kind excludes --schedule"),
], ids=str)
def test_a_wrong_command_line(stage, options, hint):
    client = stage.client(1, *options)
    assert client.wait() == 2
    line, = client.log.splitlines()
    assert hint in line
