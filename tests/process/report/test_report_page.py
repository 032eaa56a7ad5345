"""The pages of offload-report in a browser: they show the values of the results."""
import html.parser
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import report_results as made
from harness import BIN, ROOT, TIME_FACTOR

sys.path.insert(0, str(ROOT / "tests/process/operation"))
from browser import PROGRAM as BROWSER  # noqa: E402, in the folder above
from browser import Browser  # noqa: E402

START = 1763879556.1

# The probe runs in a copy of the page: the page's own policy would block it.
PROBE = """<script>
document.documentElement.dataset.overflow =
  document.documentElement.scrollWidth - document.documentElement.clientWidth;
document.documentElement.dataset.width = document.documentElement.clientWidth;
const svg = document.querySelector("figure.chart svg");
svg.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));
const tip = document.querySelector(".tip:not([hidden])");
document.documentElement.dataset.tip = tip.innerText.replace(/\\s+/g, " ");
const box = svg.getBoundingClientRect();
svg.dispatchEvent(new PointerEvent("pointermove",
  {clientX: box.left + box.width / 2, clientY: box.top + 20}));
const shown = tip.getBoundingClientRect();
document.documentElement.dataset.tipInside =
  shown.left >= box.left - 1 && shown.right <= box.right + 1 && shown.width > 20 &&
  shown.top >= box.top - 1 && shown.bottom <= box.bottom;
svg.dispatchEvent(new PointerEvent("pointerleave"));
document.documentElement.dataset.tipGone = tip.hidden;
document.documentElement.dataset.dark = getComputedStyle(document.body).backgroundColor;
</script></body>"""


def browse(*options):
    """Returns the browser's output; skips the test if no browser runs."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               *options]
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=60 * TIME_FACTOR)
    except subprocess.TimeoutExpired:
        pytest.skip("chromium does not answer within a minute here")
    return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


@pytest.fixture(name="browser", scope="module")
def a_browser_that_runs():
    if not BROWSER:
        pytest.skip("chromium is not installed (scripts/setup test)")
    out, log = browse("--dump-dom", "data:text/html,<p>it runs")
    if "it runs" not in out:
        pytest.skip(f"chromium does not run here: {log[-300:]}")


class Page(html.parser.HTMLParser):
    """The parts of a DOM that the tests need: attributes of <html>, cells with numbers, lines, texts."""

    def __init__(self, text):
        super().__init__()
        self.root, self.cells, self.lines, self.text, self.tags = {}, {}, [], "", []
        self._cell = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if tag == "html":
            self.root = attrs
        if tag == "td" and "data-figure" in attrs:
            self._cell = attrs
        if tag == "polyline":
            self.lines.append(attrs)

    def handle_endtag(self, tag):
        if tag == "td":
            self._cell = None

    def handle_data(self, data):
        self.text += data
        if self._cell is not None:
            key = (self._cell["data-run"], self._cell["data-figure"])
            self.cells[key] = (float(self._cell["data-value"]), data)


def make_page(folder, *results):
    paths = [made.write(folder / f"{i}.json", result) for i, result in enumerate(results)]
    page = folder / "page.html"
    subprocess.run([BIN / "offload-report", "html", *paths, "-o", page], check=True,
                   timeout=60 * TIME_FACTOR)
    return page


def dump(page, width=1600):
    """Returns the DOM of a copy of the page that has the probe."""
    probed = page.with_name("probed.html")
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    probed.write_text(text.replace("</body>", PROBE))
    out, _ = browse(f"--window-size={width},1200", "--hide-scrollbars", "--dump-dom",
                    probed.as_uri())
    return Page(out)


# The figures, and the number of latencies that each needs: with fewer, its cell is a dash.
FIGURES = {"min": 1, "mean": 1, "p50": 1, "p90": 10, "p95": 20, "p99": 100, "p99_9": 1000, "p99_99": 10_000,
           "p99_999": 100_000, "max": 1}


def check_numbers(page, run, name):
    """Checks that every number in the tables is the result's, as exact value and as text."""
    expected = {"duration_seconds": run["duration_seconds"],
                "rate_per_second": run["io_rate_miops"] * 1e6,
                "operation_count": run["operation_count"],
                "valid_responses": run["valid_responses"],
                "errors": sum(run["errors"].values())}
    for latency in ("service_time_us", "response_time_us", "schedule_lag_us", "connect_time_us"):
        for figure, fewest in FIGURES.items() if run[latency] else ():
            if run[latency]["count"] >= fewest:
                expected[f"{latency}.{figure}"] = run[latency][figure]
    for figure, value in expected.items():
        exact, text = page.cells[name, figure]
        assert exact == pytest.approx(value, rel=1e-9), figure
        assert float(text.replace(",", "")) == pytest.approx(value, rel=0.02, abs=0.5), figure
    return expected


@pytest.mark.parametrize("width", [800, 1600])
def test_one_run_of_an_open_loop(browser, tmp_path, width):
    run = made.run(seconds=12, offered=100_000.0, rate=100_000.0, warmup=2.0, stall_at=5)
    page = dump(make_page(tmp_path, made.result([run])), width)
    assert page.root["data-width"] == str(width)
    assert page.root["data-overflow"] == "0"
    assert check_numbers(page, run, "1").keys() == {figure for _, figure in page.cells} - {
        "offered_per_second", "tx_data_rate_gib_s", "in_flight.mean"}

    # The lines: throughput, percentiles of both latencies, and three measures of each over time.
    assert [line["data-name"] for line in page.lines] == [
        "run 1", "offered", "response", "service", "max", "p99", "p50", "max", "p99", "p50"]
    assert set(page.lines[1]["data-values"].split("|")) == {"100,000 /s"}
    rates = page.lines[0]["data-values"].split("|")
    assert [float(rate.removesuffix(" /s").replace(",", "")) for rate in rates] == pytest.approx(
        [interval["operations"] for interval in run["intervals"]], abs=1)
    for line, name in zip(page.lines[4:], ("max", "p99", "p50") * 2):
        latency = "service_time_us" if line in page.lines[4:7] else "response_time_us"
        shown = [microseconds(text) for text in line["data-values"].split("|")]
        assert shown == pytest.approx([interval[latency][name] for interval in run["intervals"]],
                                      rel=0.01)
    curve = page.lines[3]
    places = curve["data-at"].split("|")
    values = [microseconds(text) for text in curve["data-values"].split("|")]
    assert values == sorted(values)
    for share, name in (("90 %", "p90"), ("99 %", "p99"), ("99.9 %", "p99_9")):
        at = places.index(f"{share} took at most")
        assert values[at] == pytest.approx(run["service_time_us"][name], rel=0.01)
    points = [tuple(map(float, point.split(","))) for point in curve["points"].split()]
    xs = [x for x, _ in points]
    assert xs == sorted(xs) and all(math.isfinite(y) for _, y in points)

    # The values at the pointer.
    assert page.root["data-tip"] == f"at 0.5 s run 1 {rates[0]} offered 100,000 /s"
    assert page.root["data-tip-inside"] == "true"
    assert page.root["data-tip-gone"] == "true"


def microseconds(text):
    number, unit = text.split(" ")
    return float(number) * {"ns": 1e-3, "µs": 1, "ms": 1e3, "s": 1e6}[unit]


@pytest.mark.parametrize("width", [800, 1600])
def test_several_results_with_several_runs(browser, tmp_path, width):
    options = {"seconds": 3, "sampled": 300}
    results = [made.result(made.repeats(4, 1, START, **options)),
               made.result(made.repeats(3, 2, START + 10, **options), host="h" * 200)]
    results[0]["repeats"] = {"io_rate_miops": {"median": 0.25, "low": 0.24, "high": 0.26,
                                               "confidence": 0.95}}
    page = dump(make_page(tmp_path, *results), width)
    assert page.root["data-overflow"] == "0"
    for letter, result in zip("AB", results):
        for number, run in enumerate(result["runs"], 1):
            check_numbers(page, run, f"{letter}{number}")
    assert len(page.lines) == 7 * 5
    assert page.text.count("median of 4 runs") == 1
    assert page.root["data-tip"].startswith("at 0.5 s run A1 ")


def test_dark_and_light(browser, tmp_path):
    page = make_page(tmp_path, made.result([made.run(seconds=2, sampled=100)]))
    probed = dump(page).root["data-dark"]
    out, _ = browse("--blink-settings=preferredColorScheme=0", "--dump-dom",
                    page.with_name("probed.html").as_uri())
    assert {probed, Page(out).root["data-dark"]} == {"rgb(255, 255, 255)", "rgb(17, 21, 26)"}


def test_text_of_strangers(browser, tmp_path):
    """Nothing in a result becomes markup, or runs; the page's policy would block it as well."""
    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>'\""
    run = made.run(seconds=2, sampled=100, errors={evil: 1})
    run["verdict"]["text"] = evil
    made.with_kinds(run, evil, "another")
    result = made.result([run], host=evil, status="failed", faults=[evil, "\x1b[2J\u202e"])
    result.update(version=evil, revision=evil, command_line=[evil], options={evil: evil})
    result["repeats"] = {evil: {"median": 1, "low": 1, "high": 1, "confidence": 0.95}}
    page = make_page(tmp_path, result)
    out, _ = browse("--dump-dom", page.as_uri())
    parsed = Page(out)
    assert parsed.tags.count(("script", {})) == 1
    assert not [tag for tag, _ in parsed.tags if tag == "img"]
    assert "owned" not in re.search("<title>(.*?)</title>", out)[1]
    assert parsed.text.count("<img src=x") >= 6
    assert "\x1b" not in out and "\u202e" not in out
    policy = [attrs["content"] for tag, attrs in parsed.tags if tag == "meta" and
              attrs.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy[0] and "unsafe-inline" not in policy[0]
    # The hashes are those of the page's own style and script: both work under the policy.
    out, log = browse("--enable-logging=stderr", "--dump-dom", page.as_uri())
    assert "Content Security Policy" not in log and "Refused" not in log, log
    forged = tmp_path / "forged.html"
    forged.write_text(page.read_text().replace(
        "<h1>", "<script>document.title='owned'</script><h1>"))
    out, _ = browse("--dump-dom", forged.as_uri())
    assert "owned" not in re.search("<title>(.*?)</title>", out)[1]


def test_nothing_is_fetched(tmp_path):
    """Also without a browser: the page names nothing outside of itself."""
    text = make_page(tmp_path, made.result([made.run(seconds=2, sampled=100)])).read_text()
    assert not re.search(r"\b(src|href|url|import|fetch)\s*[=(:]", text)
    assert re.findall(r"https?://[^\"']*", text) == ["http://www.w3.org/2000/svg"]
    assert json.dumps("<!doctype html>")[1:-1] == text.splitlines()[0]


# Returns each text of a page, with its place, its size on the screen and its contrast with the colour behind it; and
# the width of the page and of its window. A text that a box scrolls out of sight is left out.
TEXTS = """(() => {
  const rgb = colour => colour.match(/[0-9.]+/g).map(Number);
  const light = ([red, green, blue]) => [red, green, blue].map(each => each / 255)
    .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
    .reduce((sum, each, i) => sum + each * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = rgb(getComputedStyle(element).backgroundColor);
      if (colour[3] !== 0) return colour;
    }
  };
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const parent = node.parentElement, style = getComputedStyle(parent);
    if (!node.data.trim() || parent.closest("script, details:not([open]) > :not(summary)")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const isDrawn = parent instanceof SVGElement;
    const clip = parent.closest(".scroll")?.getBoundingClientRect();
    for (const box of isDrawn ? [parent.getBoundingClientRect()] : range.getClientRects()) {
      if (box.width < 1 || (clip && (box.left < clip.left || box.right > clip.right))) continue;
      const [bright, dark] = [light(rgb(isDrawn ? style.fill : style.color)), light(behind(parent))].sort((a, b) => b - a);
      texts.push({text: node.data.trim(), left: box.left, right: box.right, top: box.top, bottom: box.bottom,
                  size: parseFloat(style.fontSize) * (isDrawn ? parent.getScreenCTM().a : 1),
                  contrast: (bright + 0.05) / (dark + 0.05), drawn: isDrawn});
    }
  }
  return {texts, page: document.documentElement.scrollWidth, window: document.documentElement.clientWidth};
})()"""

# Points at the middle of each chart; returns the text that it shows there, and the sides of its box.
TIPS = """[...document.querySelectorAll("figure.chart")].map(figure => {
  const svg = figure.querySelector("svg"), box = svg.getBoundingClientRect();
  svg.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width / 2, clientY: box.top + 20}));
  const tip = figure.querySelector(".tip"), place = tip.getBoundingClientRect();
  const shown = [tip.innerText, place.left, place.right];
  svg.dispatchEvent(new PointerEvent("pointerleave"));
  return shown;
})"""


def overlaps(texts):
    """Returns the pairs of texts that lie on each other by more than a pixel each way."""
    ordered = sorted(texts, key=lambda each: each["top"])
    for i, one in enumerate(ordered):
        for other in ordered[i + 1:]:
            if other["top"] > one["bottom"] - 1:
                break
            if min(one["right"], other["right"]) - max(one["left"], other["left"]) > 1:
                yield one["text"], other["text"]


@pytest.fixture(name="window", scope="module")
def a_window(browser, tmp_path_factory):
    window = Browser(tmp_path_factory.mktemp("profile"))
    yield window
    window.close()


@pytest.fixture(name="pages", scope="module")
def pages_of_all_kinds(tmp_path_factory):
    """A page of one run, of several results with many runs, of errors, and of a run with little."""
    short = {"seconds": 3, "sampled": 300}
    several = [made.result(made.repeats(4, 1, START, **short)),
               made.result(made.repeats(3, 2, START + 10, **short), host="h" * 200)]
    several[0]["repeats"] = {"io_rate_miops": {"median": 0.25, "low": 0.24, "high": 0.26, "confidence": 0.95}}
    wrong = made.result([made.run(seconds=2, sampled=100, errors={"mismatch": 3, "worker_unavailable": 41})],
                        status="failed", faults=["thread 0, request 3: the response differs at offset 17"] * 30)
    results = {"one": [made.result([made.run(seconds=12, offered=100_000.0, rate=100_000.0, warmup=2.0, stall_at=5)])],
               "several": several, "wrong": [wrong],
               "kinds": [made.result([made.with_kinds(made.run(seconds=3, sampled=300), "find", "h" * 100, "hash")])],
               "slow": [made.result([made.run(seconds=2, offered=5.0, rate=5.0, sampled=5)])]}
    return {name: make_page(tmp_path_factory.mktemp(name), *each) for name, each in results.items()}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800, 1280, 2560])
def test_every_page_is_legible(window, pages, width, scheme):
    """No text lies on another or is smaller than 12 pixels, none is paler than WCAG's 4.5, and nothing scrolls sideways
    but tables. OFFLOAD_PICTURES names a folder for pictures."""
    for name, page in pages.items():
        window.show(page.as_uri(), width, scheme)
        seen = window.value_of(TEXTS)
        texts = seen["texts"]
        assert seen["page"] == seen["window"] == width, name
        assert [each for each in texts if each["drawn"]], name
        assert [(each["text"], each["size"]) for each in texts if each["size"] < 12] == [], name
        assert [(each["text"], each["contrast"]) for each in texts if each["contrast"] < 4.5] == [], name
        assert list(overlaps(texts)) == [], name
        assert [each["text"] for each in texts if each["left"] < 0 or each["right"] > width + 0.5] == [], name
        for text, left, right in window.value_of(TIPS):
            assert text.strip() and left >= 0 and right <= width, (name, text, left, right)
        if folder := os.environ.get("OFFLOAD_PICTURES"):
            window.picture(Path(folder) / f"{name}-{width}-{scheme}.png", width, scheme)
