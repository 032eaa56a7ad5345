"""The page of --metrics in a browser: its numbers are those of /status, also over a worker's restart."""
import html.parser
import json
import shutil
import subprocess
import time
import urllib.request

import pytest
from harness import PATIENCE, TIME_FACTOR, wait_until
from wire import Wire, payloads

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


def browse(address, milliseconds):
    """The DOM of a page that has run for so long, as the page's clock goes."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               f"--virtual-time-budget={milliseconds}", "--dump-dom", address]
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=60 * TIME_FACTOR)
    except subprocess.TimeoutExpired:
        pytest.skip("chromium does not answer within a minute here")
    return done.stdout.decode(errors="replace")


class Page(html.parser.HTMLParser):
    """Tiles by name, and all text."""

    def __init__(self, text):
        super().__init__()
        self.tiles, self.text = {}, ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "data-value" in attrs:
            self.tiles[attrs["data-name"]] = float(attrs["data-value"])

    def handle_data(self, data):
        self.text += data


@pytest.fixture(name="browser", scope="module")
def a_browser_that_runs():
    if not BROWSER:
        pytest.skip("chromium is not installed (scripts/setup test)")
    if "it runs" not in browse("data:text/html,<p>it runs", 10):
        pytest.skip("chromium does not run here")


def address_of(program):
    return program.wait_for_log(r"metrics on (http://127\.0\.0\.1:\d+)/metrics")[1]


def status_of(program):
    with urllib.request.urlopen(address_of(program) + "/status", timeout=PATIENCE) as answer:
        return json.load(answer)


def test_its_numbers_are_those_of_the_status(stage, browser):  # pylint: disable=unused-argument
    server = stage.server("--metrics", 0)
    worker = stage.worker()
    server.wait_until_listening()
    with Wire(server.port) as client:
        client.ask(payloads(500, 64))
        page = Page(browse(address_of(server), 2500))
        assert page.tiles["requests"] == page.tiles["responses"] == 500
        assert page.tiles["connections"] == 1
        assert page.tiles["requests/s"] == 0
        assert "ready: a worker answers" in page.text and "not ready" not in page.text
        assert str(worker.pid) in page.text

        worker.kill()
        wait_until(lambda: not status_of(server)["ready"]["holds"], "the worker's end is known")
        page = Page(browse(address_of(server), 1500))
        assert "not ready: no worker answers" in page.text and "is gone" in page.text
        stage.worker()
        wait_until(lambda: status_of(server)["ready"]["holds"], "another one serves")
        client.ask(payloads(100, 64))
        time.sleep(0.11)  # the status is made ten times a second at most
        page = Page(browse(address_of(server), 1500))
        assert page.tiles["responses"] == status_of(server)["state"]["totals"]["responses"] == 600
