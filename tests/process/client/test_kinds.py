"""Several kinds of requests in one load: each goes to its own port, with its share of the load and its own results."""
import re

import pytest

from results import finish, load, start
from harness import TIME_FACTOR, scaled

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
