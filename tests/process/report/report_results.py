"""Simulated results, as offload-client writes them with --output (format 1), for the tests of offload-report.
By hand: report_results.py FOLDER writes some."""
import base64
import json
import math
import random
import struct
import sys
import zlib
from pathlib import Path

STEP_BITS = 7  # two significant digits
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999,
          "p99_999": 0.99999}


class Histogram:
    """HdrHistogram of nanoseconds, with its V2 encoding: independent of lib/metrics."""

    def __init__(self):
        self.counts = {}
        self.low, self.high = math.inf, 0

    @staticmethod
    def bucket_of(value):
        shift = max(0, value.bit_length() - STEP_BITS - 1)
        return (shift << STEP_BITS) + (value >> shift)

    @staticmethod
    def middle_of(bucket):
        shift = max(0, (bucket >> STEP_BITS) - 1)
        return ((bucket - (shift << STEP_BITS)) << shift) + (1 << shift) // 2

    def record(self, value, count=1):
        bucket = self.bucket_of(value)
        self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.low, self.high = min(self.low, value), max(self.high, value)

    def merge(self, other):
        for bucket, count in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)

    @property
    def count(self):
        return sum(self.counts.values())

    def percentile(self, share):
        rank, seen = math.ceil(share * self.count), 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= rank:
                last = rank >= self.count
                return self.high if last else min(max(self.middle_of(bucket), self.low), self.high)
        return 0

    def mean(self):
        return sum(self.middle_of(b) * n for b, n in self.counts.items()) / max(1, self.count)

    def encode(self):
        numbers, at = [], 0
        for bucket in sorted(self.counts):
            if bucket > at:
                numbers.append(at - bucket)
            numbers.append(self.counts[bucket])
            at = bucket + 1
        payload = b"".join(map(zigzag, numbers))
        header = struct.pack(">IIIIQQd", 0x1c849313, len(payload), 0, 2, 1, 2**63 - 1, 1.0)
        deflated = zlib.compress(header + payload)
        return base64.b64encode(struct.pack(">II", 0x1c849314, len(deflated)) + deflated).decode()

    def latency(self):
        low = 0 if self.count == 0 else self.low
        return {"count": self.count, "min": low / 1e3, "mean": self.mean() / 1e3,
                **{name: self.percentile(share) / 1e3 for name, share in SHARES.items()},
                "max": self.high / 1e3, "histogram": self.encode()}

    def interval(self):
        return {"p50": self.percentile(0.5) / 1e3, "p99": self.percentile(0.99) / 1e3,
                "max": self.high / 1e3, "histogram": self.encode()}


def zigzag(number):
    number, out = (number << 1) ^ (number >> 63), bytearray()
    for _ in range(8):
        if number < 0x80:
            break
        out.append(number & 0x7f | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def latencies(rng, count, median_us, stall_us=0.0):
    """Log-normal with a tail of one in a hundred; with a stall a share of them waits for its end."""
    histogram = Histogram()
    for _ in range(count):
        us = median_us * math.exp(rng.gauss(0, 0.25))
        if rng.random() < 0.01:
            us *= 1 + rng.expovariate(0.4)
        if stall_us and rng.random() < 0.02:
            us += rng.uniform(0, stall_us)
        histogram.record(int(us * 1e3))
    return histogram


def run_histogram(seed, seconds, rate, median_us=40.0, sampled=1000):
    """The service times of run(seed, ...) of a closed loop, all in one."""
    whole = Histogram()
    for histogram, _ in draw_seconds(random.Random(seed), seconds, rate, median_us, sampled):
        whole.merge(histogram)
    return whole


def draw_seconds(rng, seconds, rate, median_us, sampled, stall_at=None):
    """Service and response times of each second, each of `sampled` latencies standing for several:
    real ones are too many for a test."""
    weight = max(1, round(rate / sampled))
    for second in range(math.ceil(seconds)):
        drawn = round(sampled * min(1.0, seconds - second) * rng.gauss(1, 0.01))
        stall = 9000.0 if second == stall_at else 0.0
        pair = (latencies(rng, drawn, median_us, stall),
                latencies(rng, drawn, median_us * 1.4, 2 * stall))
        for each in pair:
            each.counts = {bucket: count * weight for bucket, count in each.counts.items()}
        yield pair


def run(seed=1, started_at=1763879556.1, seconds=10, median_us=40.0, rate=250_000.0, offered=None,
        arrivals=None, warmup=0.0, errors=None, sampled=1000, connections=4, stall_at=None, speed=1.0):
    """One run. A stall is in its `stall_at`-th second."""
    rng = random.Random(seed)
    service, response, intervals = Histogram(), Histogram(), []
    drawn = draw_seconds(rng, seconds, rate, median_us / speed, sampled, stall_at)
    for second, (histogram, late) in enumerate(drawn):
        service.merge(histogram)
        response.merge(late)
        intervals.append({"start_s": warmup + second, "length_s": min(1.0, seconds - second),
                          "operations": histogram.count, "valid": histogram.count, "errors": 0,
                          "service_time_us": histogram.interval(),
                          "response_time_us": None if offered is None else late.interval()})
    connect, lag = latencies(rng, connections, 180.0), latencies(rng, 500, 2.0)
    count = service.count
    per_second = count / seconds
    errors = errors or {}
    if errors:
        wrong = intervals[len(intervals) // 2]
        wrong["errors"] = sum(errors.values())
        wrong["valid"] -= wrong["errors"]
    late = {"code": "kept_up", "text": f"the server kept up with {offered} requests a second"}
    closed = {"code": "closed_loop", "text": "closed loop: the server set the rate"}
    return {"started_at_unix_s": started_at, "offered_per_second": offered,
            "arrivals": arrivals or (None if offered is None else "constant"),
            "connections": connections, "max_concurrent_messages": 128, "warmup_seconds": warmup,
            "duration_seconds": float(seconds), "operation_count": count,
            "valid_responses": count - sum(errors.values()), "unanswered_requests": 0,
            "tx_bytes": 76 * count, "rx_bytes": 76 * count,
            "tx_data_rate_gib_s": 64 * per_second / 2**30,
            "rx_data_rate_gib_s": 64 * per_second / 2**30,
            "io_rate_miops": per_second / 1e6, "errors": errors,
            "service_time_us": service.latency(),
            "response_time_us": None if offered is None else response.latency(),
            "schedule_lag_us": None if offered is None else lag.latency(),
            "connect_time_us": connect.latency(),
            "in_flight": {"mean": per_second * service.mean() / 1e9,
                          "by_littles_law": per_second * service.mean() / 1e9},
            "kinds": [], "verdict": closed if offered is None else late, "intervals": intervals}


def with_kinds(whole, *names):
    """Adds kinds to a run with enough connections: each request is of the first kind, the others have none."""
    for number, name in enumerate(names):
        times = {key: whole[key] if number == 0 or whole[key] is None else Histogram().latency()
                 for key in ("service_time_us", "response_time_us")}
        first = {"operation_count": whole["operation_count"], "valid_responses": whole["valid_responses"]}
        whole["kinds"].append({
            "name": name, "server_ip_port": 12345 + number, "share": 1 / len(names),
            "connections": 1 if number else whole["connections"] - len(names) + 1,
            "offered_per_second": whole["offered_per_second"], "errors": whole["errors"] if number == 0 else {},
            "valid_per_second": whole["io_rate_miops"] * 1e6 if number == 0 else 0.0,
            **(first if number == 0 else dict.fromkeys(first, 0)), **times})
    return whole


def result(runs, host="load-1", status="ok", faults=(), **more):
    return {"program": "offload-client", "format": 1, "version": "0.1.0", "revision": "8ce866c",
            "command_line": ["offload-client", "-s", "10.0.0.7", "-t", "4", "--size", "64",
                             "--duration", "10s", "--output", "result.json"],
            "machine": {"host": host, "system": "Linux 6.1.0-28-amd64 x86_64",
                        "processor": "AMD EPYC 9654 96-Core Processor", "processors": 192},
            "options": {"server_ip_address": "10.0.0.7", "server_ip_port": 12345,
                        "thread_count": 4, "connections": 1, "iteration_count": None,
                        "duration_seconds": 10.0, "message_length": 64, "random_payload": True,
                        "max_concurrent_messages": 128, "service": "reverse"},
            "status": status, "faults": list(faults), "runs": runs, "repeats": None,
            "search": None, **more}


def repeats(count, seed=1, started_at=1763879556.1, every=20.0, noise=0.03, speed=1.0, **more):
    """Runs one after the other, each as fast as its noise lets it."""
    rng = random.Random(seed)
    runs = []
    for number in range(count):
        factor = speed * math.exp(rng.gauss(0, noise))
        runs.append(run(seed=1000 * seed + number, started_at=started_at + every * number,
                        rate=250_000.0 * factor, speed=factor, **more))
    return runs


def write(path, content):
    Path(path).write_text(json.dumps(content, indent=2) + "\n")
    return str(path)


def main():
    folder = Path(sys.argv[1])
    write(folder / "closed.json", result([run(seconds=30, stall_at=17)]))
    write(folder / "open.json", result(
        [run(seconds=30, offered=100_000.0, rate=100_000.0, warmup=2.0, stall_at=12)]))
    write(folder / "repeats.json", result(repeats(5, seconds=20)))
    write(folder / "base.json", result(repeats(10, seconds=5)))
    write(folder / "same.json", result(repeats(10, seed=2, started_at=1763879566.1, seconds=5)))
    write(folder / "slower.json", result(
        repeats(10, seed=3, started_at=1763879566.1, seconds=5, speed=1 / 1.25), host="load-2"))
    write(folder / "failed.json", result(
        [run(seconds=12, errors={"mismatch": 3, "worker_unavailable": 41})], status="failed",
        faults=["thread 0, request 3: the response differs at byte 17: 0x61 instead of 0x62",
                "<script>alert('from a server')</script>"]))


if __name__ == "__main__":
    main()
