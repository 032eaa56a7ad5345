"""The page of --metrics in a browser: its numbers are those of /status, under load and over a worker's restart."""
import json
import re
import signal
import urllib.request

import pytest
from browser import PROGRAM, Browser
from harness import PATIENCE, wait_until
from wire import Wire, payloads

TILES = "Object.fromEntries([...document.querySelectorAll('.tile')].map(tile => [tile.dataset.name, +tile.dataset.value]))"


@pytest.fixture(name="browser")
def a_browser_that_runs(tmp_path):
    if not PROGRAM:
        pytest.skip("chromium is not installed (scripts/setup test)")
    try:
        browser = Browser(tmp_path)
    except TimeoutError as error:
        pytest.skip(f"chromium does not run here: {error}")
    yield browser
    browser.close()


CELLS = ("[...document.querySelectorAll('table[data-name^=\"%s\"] tr')].slice(1)"
         ".map(row => [...row.cells].map(cell => cell.textContent))")
TEXTS = "Object.fromEntries([...document.querySelectorAll('.tile')].map(tile => [tile.dataset.name, tile.querySelector('b').textContent]))"


def address_of(program):
    return program.wait_for_log(r"metrics on (http://127\.0\.0\.1:\d+)/metrics")[1]


def status_of(program):
    with urllib.request.urlopen(address_of(program) + "/status", timeout=PATIENCE) as answer:
        return json.load(answer)


def tiles_of(browser):
    """Their values by name."""
    return browser.value_of(TILES) or {}


def wait_for_text(browser, pattern):
    """The text of all of the page once it has that."""
    def found():
        text = browser.value_of("document.body.innerText") or ""
        return text if re.search(pattern, text) else None
    return wait_until(found, f"'{pattern}' on the page")


def test_its_numbers_are_those_of_the_status(stage, browser):
    server = stage.server("--metrics", 0)
    worker = stage.worker()
    server.wait_until_listening()
    with Wire(server.port) as client:
        client.ask(payloads(500, 64))
        browser.open(address_of(server))
        wait_for_text(browser, "\nready: a worker answers")
        wait_until(lambda: tiles_of(browser).get("responses") == 500, "the page has all responses")
        tiles = tiles_of(browser)
        assert tiles["requests"] == 500 and tiles["connections"] == 1
        assert re.search(rf"process {worker.pid}\scpu", wait_for_text(browser, "Workers and GPUs"))

        worker.kill()
        text = wait_for_text(browser, "not ready: no worker answers")
        assert "is gone" in text and "\nnone\n" in text.replace("\t", "\n")
        next_worker = stage.worker()
        wait_for_text(browser, rf"\nready: a worker answers[^~]*process {next_worker.pid}\s")
        client.ask(payloads(100, 64))
        wait_until(lambda: tiles_of(browser).get("responses") == 600, "the page has the next ones")
        assert status_of(server)["state"]["totals"]["responses"] == 600


def test_it_moves_under_load(stage, browser):
    """The server's page and the worker's, and what they say when their programs are gone."""
    server = stage.server("--metrics", 0)
    worker = stage.worker("--metrics", 0)
    server.wait_until_listening()
    client = stage.client(server, "--connections", 2, "--rate", 500, "--duration", 60, "--quiet")
    browser.open(address_of(server))
    rate = wait_until(lambda: tiles_of(browser).get("requests/s"), "there is a rate")
    assert 50 < rate < 5000
    wait_until(lambda: browser.value_of("document.querySelectorAll('.tile path').length") >= 3, "it is drawn")
    server_before = tiles_of(browser)["responses"]
    wait_until(lambda: tiles_of(browser)["responses"] > server_before, "it goes on")

    browser.open(address_of(worker))
    text = wait_for_text(browser, r"cpu\sshared memory with a local server\s1\s[\d.]+ %")
    assert "attached to a server" in text and status_of(worker)["state"]["workers"][0]["channels"] == 1
    client.send_signal(signal.SIGINT)
    client.wait()
    assert worker.terminate() == 0
    wait_for_text(browser, "No answer from the program")


def shown(browser, table, *statuses):
    """Returns the tiles' texts and the rows of a table of a page that has had these replies, and no other."""
    shows = "".join(f"show({json.dumps(status)});" for status in statuses)
    return browser.value_of(f"seen.length = 0; {shows} [{TEXTS}, {CELLS % table}]")


def one_second_later(status, *more):
    """A copy of a status; `more`: a path in its state to counts by bucket, of which one grows."""
    later = json.loads(json.dumps(status))
    later["uptime_seconds"] += 1
    counts = later["state"]
    for name in more:
        counts = counts[name]
    if more:
        counts[3] += 10
    return later


def test_what_is_not_of_the_last_second_is_not_shown_as_such(stage, browser):
    """A page has no rate before its second reply, and a program that did nothing has no latencies."""
    server = stage.server("--metrics", 0)
    worker = stage.worker("--metrics", 0)
    server.wait_until_listening()
    with Wire(server.port) as client:
        client.ask(payloads(1000, 64))
        status = wait_until(lambda: (status_of(server) if status_of(server)["state"]["totals"]["responses"] == 1000
                                     else None), "the status has all responses")
    browser.open(address_of(server))
    wait_for_text(browser, "Latency in the last second")
    assert any(map(any, status["state"]["stages"].values()))
    for statuses, rate in ([status], "–"), ([status, one_second_later(status)], "0"):
        tiles, rows = shown(browser, "Latency", *statuses)
        assert tiles["requests/s"] == rate and tiles["from clients"].split(" ")[0] == rate
        assert tiles["requests"] == "1 k"
        assert {cell for row in rows for cell in row[1:]} == {"–"}
        _, rows = shown(browser, "I/O threads", *statuses)
        assert {cell for row in rows for cell in row[4:7]} == {"–"} and rows[0][2] == rate
    _, rows = shown(browser, "Latency", status, one_second_later(status, "stages", "queue"))
    assert ["–" in row for row in rows] == [row[0] != "queue" for row in rows]

    status = one_second_later(status_of(worker), "workers", 0, "service")
    browser.open(address_of(worker))
    wait_for_text(browser, "data path")
    tiles, rows = shown(browser, "Workers", status)
    assert tiles["busy, the busiest"] == "–" and rows[0][4:9] == ["–"] * 5
    _, rows = shown(browser, "Workers", status, one_second_later(status))
    assert rows[0][4:9] == ["–"] * 5
    _, rows = shown(browser, "Workers", status, one_second_later(status, "workers", 0, "service"))
    assert "–" not in rows[0][7:9]


def test_the_page_of_a_load_client(stage, browser):
    server, _ = stage.pair()
    client = stage.client(server, "--rate", 1000, "--duration", 600, "--metrics", 0)
    browser.open(address_of(client))
    rate = wait_until(lambda: tiles_of(browser).get("requests/s"), "there is a rate")
    assert 100 < rate < 10_000 and tiles_of(browser)["errors/s"] == 0
    text = wait_for_text(browser, r"response time\s[\d.]+ .s\s[\d.]+ .s")
    assert "ready: a run is under way" in text and "Workers" not in text and "threads" not in text
    client.send_signal(signal.SIGINT)
    client.wait()
    wait_for_text(browser, "No answer from the program")


CURVES = "Object.fromEntries([...document.querySelectorAll('.chart')].map(chart => [chart.dataset.kind, %s]))"
LEGENDS = CURVES % ("Object.fromEntries([...chart.querySelectorAll('li')]"
                    ".map(item => [item.querySelector('span').textContent, item.lastChild.textContent]))")
LINES = CURVES % "[...chart.querySelectorAll('path.line')].map(path => path.getAttribute('d'))"
MARKS = "document.querySelectorAll('[data-kind=rates] path.mark').length"
POINT = ("(() => { const plot = document.querySelector('[data-kind=rates] .plot'), place = plot.getBoundingClientRect();"
         "plot.dispatchEvent(new PointerEvent('pointermove', {clientX: place.left + %f * place.width, clientY: place.top + 5})); })()")
# In second t there are t requests, on one of two services; worker 1 is lost in second 400, and the program is started
# again in second 650.
HISTORY = """(() => {
  seen.length = 0;
  const now = %s, other = structuredClone(now.state.threads[0]), worker = structuredClone(now.state.workers[0]);
  other.service = "digest";
  now.state.threads = [now.state.threads[0], other];
  now.state.workers.push({...worker, worker: worker.worker + 1});
  for (let t = 0; t <= 660; ++t) {
    now.uptime_seconds += 1;
    now.state.totals.requests += t;
    now.state.threads[0].requests += t;
    other.in_flight = 7;
    other.busy_ns += 250e6; other.poll_ns += 500e6; other.sleep_ns += 250e6;
    now.state.stages.worker[3] += 10;
    if (t === 400) { now.state.events.push({time: 1e9, text: "worker 1, x is gone"}); now.state.workers.shift(); }
    if (t === 650) { now.process += 1; now.uptime_seconds = 1; }
    feed(structuredClone(now));
  }
})()"""


def test_the_last_ten_minutes_are_drawn(stage, browser):
    server = stage.server("--metrics", 0)
    stage.worker()
    server.wait_until_listening()
    browser.open(address_of(server))
    wait_for_text(browser, "\nready: a worker answers")
    browser.value_of("var feed = show; show = () => {}")  # the page gets no replies but those below
    browser.value_of(HISTORY % json.dumps(status_of(server)))

    def drawn(condition, what):
        return wait_until(lambda: (legends := browser.value_of(LEGENDS)) and condition(legends) and legends, what)

    now = drawn(lambda legends: legends["rates"]["requests"] == "660", "the last second is drawn")
    assert now["services"] == {"reverse": "660", "digest": "0"}
    assert now["flight"]["digest"] == "7" and now["turns"]["thread 1"] == "25 %, 50 %"
    assert now["p50"]["worker"] != "–" and now["p99"]["queue"] == "–"
    assert list(now["workers"].values()) == ["–", "1"]
    assert browser.value_of("seen.length") in (600, 601)
    lines = browser.value_of(LINES)
    # The rates have no value in the second of the restart.
    assert [line.count("M") for line in lines["rates"]] == [2, 2]
    assert browser.value_of(MARKS) == 2

    browser.value_of(POINT % (1 - 260 / 600))
    drawn(lambda legends: legends["rates"]["requests"] == "400", "the second of the loss is read")
    assert browser.value_of("at('told').textContent") == "260 s ago; worker 1, x is gone"
    browser.value_of("document.querySelector('[data-kind=rates] .plot').dispatchEvent(new PointerEvent('pointerleave'))")
    drawn(lambda legends: legends["rates"]["requests"] == "660", "the last second is read again")
    # Each width is used, and none is exceeded.
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    for width, columns in (390, 1), (1280, 2), (2560, 4):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        used = browser.value_of("[document.documentElement.scrollWidth, new Set([...document.querySelectorAll('.chart')]"
                                ".map(chart => chart.offsetLeft)).size]")
        assert used == [width, columns]
