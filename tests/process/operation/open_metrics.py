"""Parses OpenMetrics 1.0 text. Fails with AssertionError at whatever the specification forbids in a page like ours:
counters, gauges and histograms, with exemplars and without timestamps."""
import re
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

ACCEPT = ("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
          "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")  # of Prometheus 2.42
CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
LABELS = rf"\{{{LABEL}(?:,{LABEL})*\}}"
NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|Inf)"
SAMPLE = re.compile(rf"({NAME})({LABELS})? ({NUMBER})(?: # ({LABELS}) ({NUMBER})(?: ([0-9]+(?:\.[0-9]+)?))?)?")
METADATA = re.compile(rf"# (TYPE|UNIT|HELP) ({NAME}) (.+)")
SUFFIXES = {"counter": {"_total"}, "gauge": {""}, "histogram": {"_bucket", "_count", "_sum"}}


class Exemplar(NamedTuple):
    labels: dict
    value: float
    time: Optional[float]


class Sample(NamedTuple):
    suffix: str
    labels: dict
    value: float
    exemplar: Optional[Exemplar]


@dataclass
class Family:
    metadata: dict = field(default_factory=dict)
    samples: list = field(default_factory=list)


def labels_of(text):
    pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', text or "")
    assert len(dict(pairs)) == len(pairs), f"a label is there twice: {text}"
    return dict(pairs)


def parse(text):
    """Returns the families by name."""
    families, name = {}, None
    *lines, last = text.removesuffix("\n").split("\n")
    assert text.endswith("\n") and last == "# EOF", last
    for line in lines:
        found = METADATA.fullmatch(line)
        if found:
            kind, of, value = found.groups()
            if of != name:
                assert of not in families and kind == "TYPE", line
                families[of], name = Family(), of
            family = families[name]
            assert kind not in family.metadata and not family.samples, line
            family.metadata[kind] = value
            continue
        found = SAMPLE.fullmatch(line)
        assert found and name and found[1].startswith(name), f"invalid: {line}"
        exemplar = found[4] and Exemplar(labels_of(found[4]), float(found[5]), found[6] and float(found[6]))
        families[name].samples.append(
            Sample(found[1].removeprefix(name), labels_of(found[2]), float(found[3]), exemplar))
    taken = [of + suffix for of, family in families.items() for suffix in SUFFIXES[family.metadata["TYPE"]] | {""}]
    assert len(set(taken)) == len(taken), "a sample has the name of another family's"
    for of, family in families.items():
        check(of, family)
    return families


def check(name, family):
    kind, unit = family.metadata["TYPE"], family.metadata.get("UNIT")
    assert family.metadata["HELP"] and re.fullmatch(r'(?:[^"\\]|\\[\\"n])*', family.metadata["HELP"]), name
    assert unit is None or name.endswith("_" + unit), name
    keys = [(sample.suffix, tuple(sorted(sample.labels.items()))) for sample in family.samples]
    assert len(set(keys)) == len(keys) > 0, f"a sample of {name} is there twice, or none"
    for sample in family.samples:
        assert sample.suffix in SUFFIXES[kind], (name, sample)
        assert kind == "gauge" or sample.value >= 0, (name, sample)
        assert ("le" in sample.labels) == (sample.suffix == "_bucket"), (name, sample)
        if sample.exemplar:
            assert sample.suffix in ("_bucket", "_total"), (name, sample)
            assert sum(len(label) + len(value) for label, value in sample.exemplar.labels.items()) <= 128
    if kind == "histogram":
        check_histogram(name, family.samples)


def check_histogram(name, samples):
    """Each group has its buckets, upwards, then its count and its sum."""
    while samples:
        lower, below, labels = float("-inf"), 0, None
        while samples[0].suffix == "_bucket":
            bucket, *samples = samples
            bound = float(bucket.labels["le"])
            group = {label: value for label, value in bucket.labels.items() if label != "le"}
            assert labels in (None, group) and bound > lower and bucket.value >= below, (name, bucket)
            assert not bucket.exemplar or lower < bucket.exemplar.value <= bound, (name, bucket)
            lower, below, labels = bound, bucket.value, group
        count, total, *samples = samples
        assert lower == float("inf") and (count.suffix, total.suffix) == ("_count", "_sum"), name
        assert count.labels == total.labels == labels and count.value == below, name
