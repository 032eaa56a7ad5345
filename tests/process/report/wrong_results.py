"""Makes results that are wrong in one way each out of right ones, for test_wrong_results.py. Each generator yields names
and texts of files."""
import copy
import json
import random

CODES = ("server_late", "client_late", "cut_short", "too_few")
LATENCIES = ("service_time_us", "response_time_us", "schedule_lag_us", "connect_time_us")
STATISTICS = {"min": 1, "mean": 1, "p50": 1, "p90": 10, "p95": 20, "p99": 100, "p99_9": 1000, "max": 1}
ERRORS = ("mismatch", "bad_frame", "late", "time_out", "closed", "reset", "refused", "connect_failed",
          "never_connected", "worker_unavailable", "request_timed_out")
NOT_NUMBERS = ("NaN", "Infinity", "-1", "1e400", "null", '"7"', "[]", "true")


def changed(result, change):
    """Returns the text of a copy that `change(copy)` has changed."""
    other = copy.deepcopy(result)
    change(other)
    return json.dumps(other)


def of_verdicts(result):
    """A late server, a late client, a run that was cut, too few requests: any run of a result says so."""
    for number in range(len(result["runs"])):
        for code in CODES:
            yield f"run {number} {code}", changed(
                result, lambda other, n=number, c=code: other["runs"][n]["verdict"].update(code=c))
    for status in ("failed", "interrupted"):
        yield status, changed(result, lambda other, s=status: other.update(status=s))
    yield "a fault", changed(result, lambda other: other.update(faults=["thread 0: a fault"]))
    yield "no runs", changed(result, lambda other: other.update(runs=[], repeats=None))


def of_errors(result):
    """Survivors: some requests have errors, or no answer."""
    for number, kind in enumerate(ERRORS):
        def fail(other, n=number % len(result["runs"]), name=kind):
            other["runs"][n]["errors"][name] = 3
        yield f"error {kind}", changed(result, fail)
    for number in range(len(result["runs"])):
        yield f"unanswered in run {number}", changed(
            result, lambda other, n=number: other["runs"][n].update(unanswered_requests=1))


def multiply(factor, *path):
    def change(other):
        at = other
        for name in path[:-1]:
            at = at[name]
        at[path[-1]] = type(at[path[-1]])(at[path[-1]] * factor)
    return change


def of_totals(result):
    """Figures that others of the same file contradict."""
    run = result["runs"][0]
    for name in ("operation_count", "valid_responses", "io_rate_miops"):
        for factor in (0, 0.5, 2, 10):
            yield f"{name} x {factor}", changed(result, multiply(factor, "runs", 0, name))
    for factor in (0, 2):
        yield f"duration x {factor}", changed(result, multiply(factor, "runs", 0, "duration_seconds"))
    for name in ("tx_bytes", "rx_bytes", "connections", "max_concurrent_messages"):
        yield f"no {name}", changed(result, multiply(0, "runs", 0, name))
    for name in ("tx_data_rate_gib_s", "rx_data_rate_gib_s"):
        yield f"{name} x 3", changed(result, multiply(3, "runs", 0, name))
    for latency in LATENCIES:
        for statistic, fewest in STATISTICS.items() if run[latency] else ():
            is_known = run[latency]["count"] >= fewest and run[latency][statistic] > 0.002  # beyond a clock's step
            for factor in (0.25, 4) if is_known else ():
                yield f"{latency}.{statistic} x {factor}", changed(
                    result, multiply(factor, "runs", 0, latency, statistic))
        if run[latency]:
            yield f"{latency}.count", changed(result, multiply(2, "runs", 0, latency, "count"))
    for name in ("operations", "valid"):
        yield f"interval {name}", changed(result, multiply(2, "runs", 0, "intervals", 0, name))
    yield "interval errors", changed(result, lambda other: other["runs"][0]["intervals"][0].update(errors=5))
    yield "an interval less", changed(result, lambda other: other["runs"][0]["intervals"].pop())
    yield "an interval twice", changed(
        result, lambda other: other["runs"][0]["intervals"].append(other["runs"][0]["intervals"][-1]))
    other_code = "closed_loop" if run["arrivals"] else "kept_up"
    yield "another loop's verdict", changed(
        result, lambda other: other["runs"][0]["verdict"].update(code=other_code))
    if run["offered_per_second"]:
        for factor in (2, 100):
            yield f"offered x {factor}", changed(result, multiply(factor, "runs", 0, "offered_per_second"))
        yield "no response time", changed(result, lambda other: other["runs"][0].update(response_time_us=None))
    if result["repeats"]:
        yield "a median beside its interval", changed(
            result, lambda other: other["repeats"]["io_rate_miops"].update(median=1e9))


def numbers_of(value, path=()):
    if isinstance(value, dict):
        for name, each in value.items():
            if name not in ("options", "datagrams", "requests", "errors"):
                yield from numbers_of(each, path + (name,))
    elif isinstance(value, list) and value:
        yield from numbers_of(value[0], path + (0,))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


# Figures that only the client writes: offload-report shows none of them.
UNREAD = {"client_busy", "in_flight", "tx_wire_rate_gib_s", "rx_wire_rate_gib_s"}
# These are null by right: in a closed loop, and where too few latencies hold them.
OPTIONAL = {"offered_per_second", "p90", "p95", "p99", "p99_9", "p99_99", "p99_999"}


def of_numbers(result):
    """Each figure is absent, or one of two values that are no numbers, which take turns."""
    for number, path in enumerate(numbers_of(result)):
        name = path[-1]
        if name in UNREAD:
            continue
        for literal in (NOT_NUMBERS * 2)[number % len(NOT_NUMBERS):][:2]:
            if literal == "null" and name in OPTIONAL:
                continue
            def mark(other, at_path=path):
                at = other
                for step in at_path[:-1]:
                    at = at[step]
                at[at_path[-1]] = "@"
            yield f"{'.'.join(map(str, path))} {literal}", changed(result, mark).replace('"@"', literal)
        def remove(other, at_path=path):
            at = other
            for step in at_path[:-1]:
                at = at[step]
            del at[at_path[-1]]
        yield f"{'.'.join(map(str, path))} absent", changed(result, remove)


def of_texts(result):
    """Files that were cut or are damaged."""
    text = json.dumps(result)
    yield "empty", ""
    for tenth in range(1, 10):
        yield f"cut after {tenth} tenths", text[:len(text) * tenth // 10]
    yield "the last byte less", text[:-1]
    yield "something behind it", text + "x"
    yield "two results", text + text
    rng = random.Random(7)
    for number in range(5):
        at = text.index('"histogram": "') + 40 + rng.randrange(30)
        yield f"a damaged histogram {number}", text[:at] + "!" + text[at + 1:]
    yield "another program", text.replace('"offload-client"', '"wrk"', 1)
    yield "another format", text.replace('"format": 1', '"format": 2', 1)


# Options that say where a load goes and how often, but not what it is.
BESIDE_THE_LOAD = {"server_ip_address", "server_ip_port", "seed", "repeat"}


def of_options(result):
    """Other loads: right by themselves, and not to be compared with this one."""
    for name, value in result["options"].items():
        if name in BESIDE_THE_LOAD:
            continue
        other_value = (not value if isinstance(value, bool) else value + 1 if isinstance(value, (int, float))
                       else f"{value} and more" if value else 7)
        yield f"option {name}", changed(
            result, lambda other, n=name, v=other_value: other["options"].update({n: v}))
        yield f"without option {name}", changed(result, lambda other, n=name: other["options"].pop(n))
