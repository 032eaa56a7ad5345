#!/usr/bin/env python3
"""Logs of ours are read by PyPI's hdrhistogram, and its logs by us, with the same counts.

usage: hdr_live_test.py HDR-LOG-TOOL
Exits with 77, and says why, where the module neither is nor can be installed.
"""
import importlib
import random
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
INSTALL_SECONDS = 60
HOUR = 3_600_000_000_000


def import_hdrh(folder):
    """Returns hdrh.histogram and hdrh.log; installs them into `folder` if needed. Raises ImportError with a reason."""
    try:
        importlib.import_module("hdrh.histogram")
    except ImportError:
        try:
            done = subprocess.run((sys.executable, "-m", "pip", "install", "--quiet", "--target", folder,
                                   "--disable-pip-version-check", "hdrhistogram"),
                                  timeout=INSTALL_SECONDS, capture_output=True, text=True)
        except subprocess.TimeoutExpired:
            raise ImportError(f"pip took more than {INSTALL_SECONDS} s") from None
        if done.returncode != 0:
            raise ImportError((done.stderr.strip().splitlines() or ["pip failed"])[-1]) from None
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
    return importlib.import_module("hdrh.histogram"), importlib.import_module("hdrh.log")


def run_tool(tool, mode, text):
    return subprocess.run((tool, mode), input=text, stdout=subprocess.PIPE, text=True, check=True,
                          timeout=60).stdout


def counts_of(histogram):
    return {i: histogram.get_count_at_index(i) for i in range(histogram.counts_len)
            if histogram.get_count_at_index(i)}


def significant_digits(hdrh, tool):
    """Returns the significant digits of our histograms, as their format states them."""
    last_line = run_tool(tool, "write", "any 0 1\n").splitlines()[-1]
    return hdrh.HdrHistogram.decode(last_line.split(",")[-1]).significant_figures


def recorded(hdrh, digits, latencies):
    histogram = hdrh.HdrHistogram(1, HOUR, digits)
    for latency in latencies:
        assert histogram.record_value(latency)
    return histogram


def intervals():
    """Returns latencies of several kinds, in ns, by tag."""
    source = random.Random(1)
    short = [int(source.lognormvariate(10.3, 0.5)) for _ in range(20_000)]
    return {
        "empty": [],
        "one": [31_337],
        "short": short,
        "first_half": short[::2],
        "second_half": short[1::2],
        "wide": [int(source.expovariate(1) * 10 ** source.randrange(10)) for _ in range(20_000)],
        "edges": [(1 << bit) + step for bit in range(1, 42) for step in (-1, 0, 1)] + [HOUR],
    }


def test_they_read_ours(hdrh, hdrh_log, tool, folder):
    digits = significant_digits(hdrh, tool)
    expected = intervals()
    lines = [f"{tag} {index}.5 {1 + index} {' '.join(map(str, latencies))}\n"
             for index, (tag, latencies) in enumerate(expected.items())]
    path = Path(folder) / "ours.hlog"
    path.write_text(run_tool(tool, "write", "".join(lines)))
    reader = hdrh_log.HistogramLogReader(str(path), recorded(hdrh, digits, []))
    found = {}
    while histogram := reader.get_next_interval_histogram():
        index = len(found)
        found[histogram.get_tag()] = histogram
        assert histogram.get_start_time_stamp() == index * 1000 + 500, histogram.get_tag()
        assert histogram.get_end_time_stamp() == index * 2000 + 1500, histogram.get_tag()
    reader.close()
    assert list(found) == list(expected)
    for tag, latencies in expected.items():
        theirs = recorded(hdrh, digits, latencies)
        assert counts_of(found[tag]) == counts_of(theirs), tag
        assert found[tag].get_total_count() == len(latencies), tag
        assert found[tag].get_max_value() == theirs.get_max_value(), tag
    merged = recorded(hdrh, digits, [])
    merged.add(found["first_half"])
    merged.add(found["second_half"])
    assert counts_of(merged) == counts_of(found["short"])
    assert merged.get_total_count() == found["short"].get_total_count()


def test_we_read_theirs(hdrh, hdrh_log, tool, folder):
    digits = significant_digits(hdrh, tool)
    expected = list(intervals().values())
    path = Path(folder) / "theirs.hlog"
    with path.open("w") as file:
        writer = hdrh_log.HistogramLogWriter(file)
        writer.output_log_format_version()
        writer.output_comment("of another implementation")
        writer.output_base_time(0)
        writer.output_legend()
        for index, latencies in enumerate(expected):
            writer.output_interval_histogram(recorded(hdrh, digits, latencies), index + 0.25, index + 1)
    lines = run_tool(tool, "read", path.read_text()).splitlines()
    assert len(lines) == len(expected)
    for index, (line, latencies) in enumerate(zip(lines, expected)):
        tag, start, length, *buckets = line.split()
        assert (tag, float(start), float(length)) == ("-", index + 0.25, 0.75), line[:60]
        found = dict(map(int, bucket.split(":")) for bucket in buckets)
        assert found == counts_of(recorded(hdrh, digits, latencies)), index


def main():
    if len(sys.argv) != 2:
        print(__doc__.partition("\n\n")[2].strip(), file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        try:
            hdrh, hdrh_log = import_hdrh(folder)
        except ImportError as error:
            print(f"skipped: no Python module hdrhistogram: {error}")
            return SKIPPED
        for test in (test_they_read_ours, test_we_read_theirs):
            test(hdrh, hdrh_log, sys.argv[1], folder)
            print(f"{test.__name__}: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
