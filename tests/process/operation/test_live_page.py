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
