"""--slow-request: which requests are reported, their sizes and times, and how many lines at most."""
import re
import signal
import time

from harness import TIME_FACTOR, needs_cpu_worker, wait_until
from test_metrics import figures
from wire import Wire, frame, payloads

pytestmark = needs_cpu_worker

LIMIT = 0.5 * min(TIME_FACTOR, 4)
LINE = (r"warning offload-server: client (\d+), 127\.0\.0\.1:\d+: slow request \d+, of (\d+) bytes for reverse, took "
        r"([\d.]+) ms until its response of (\d+) bytes was sent: ([\d.]+) ms until it was in the channel, ([\d.]+) ms in channel and "
        r"worker, ([\d.]+) ms until the response was sent \((\d+) more were not logged\)")
COUNT = "offload_server_slow_requests_total"


def ask_late(wire, size, meanwhile):
    """Sends a request, and lets it wait for longer than the limit; `meanwhile` ends the wait."""
    wire.send(frame(b"x" * size))
    time.sleep(1.5 * LIMIT)
    meanwhile()
    wire.expect([b"x" * size])


def test_a_late_answer_is_reported_with_where_its_time_went(stage):
    server = stage.server("--metrics", 0, "--slow-request", f"{LIMIT}s", "--worker-timeout", "1h")
    worker = stage.worker()
    server.wait_until_listening()
    with Wire(server.port) as wire:
        wire.ask(payloads(50, 100))
        worker.stop()
        ask_late(wire, 100, lambda: worker.send_signal(signal.SIGCONT))
        line = server.wait_for_log(LINE)
        client, request, total, response, before, with_worker, after = map(float, line.groups()[:7])
        assert (client, request, response) == (1, 100, 100)
        assert total >= 1000 * LIMIT and with_worker >= 1000 * LIMIT > before
        assert abs(total - before - with_worker - after) < 0.01

        worker.kill()
        server.wait_until_worker_gone()
        ask_late(wire, 50, stage.worker)
        line = server.wait_for_log(LINE, count=2)
        assert line[2] == "50" and float(line[5]) >= 1000 * LIMIT > float(line[6])
    assert figures(server)[COUNT] == 2
    assert len(re.findall(": slow request", server.log)) == 2


def test_ten_lines_a_second_tell_of_the_others(stage):
    """Each request is slow."""
    server = stage.server("--metrics", 0, "--slow-request", "1us")
    stage.worker()
    server.wait_until_listening()
    with Wire(server.port) as wire:
        began = time.monotonic()
        for payload in payloads(100, 64):
            wire.ask([payload])
        took = time.monotonic() - began
        lines = len(re.findall(LINE, server.log))
        assert 10 <= lines <= 10 * (int(took) + 2)
        asked = 100

        def has_told():
            nonlocal asked
            wire.ask([b"another"])
            asked += 1
            return any(int(line[8]) for line in re.finditer(LINE, server.log))
        wait_until(has_told, "a line of a later second tells how many were not logged")
        assert figures(server)[COUNT] == asked
        lines = list(re.finditer(LINE, server.log))
        assert len(lines) + sum(int(line[8]) for line in lines) <= asked


def test_it_is_off_until_a_hangup_switches_it_on(stage):
    file = stage.folder / "settings.toml"
    file.write_text("")
    server = stage.server("--config", file, "--metrics", 0)
    stage.worker()
    server.wait_until_listening()
    with Wire(server.port) as wire:
        wire.ask(payloads(20, 64))
        assert figures(server)[COUNT] == 0
        file.write_text('slow-request = "1us"\n')
        server.send_signal(signal.SIGHUP)
        server.wait_for_log("were reread")
        wait_until(lambda: wire.ask([b"slow"]) or figures(server)[COUNT], "a request is slow")
        server.wait_for_log(LINE)
