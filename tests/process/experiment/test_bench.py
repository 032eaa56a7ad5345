"""offload-bench as its users run it: a file with a question, and one sentence as the answer."""
import json
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as xml

import pytest
from bench import bench, end_of, start_bench
from harness import BIN, EXTENSIONS, PATIENCE, ROOT, TIME_FACTOR, free_port
from paced_server import PacedServer

SENTENCE = re.compile(r"equal within \d+ %|[\d.]+ % (slower|faster) \([\d.]+ to [\d.]+\)"
                      r"|cannot be told within the time given")


def pair_of(folder, name, port, *options):
    """The table of a target: a server and a worker that the experiment starts."""
    socket = folder / f"{name}.sock"
    words = " ".join(options)
    return (f'[{name}]\naddress = "127.0.0.1:{port}"\nstart = [\n'
            f'  "offload-server -p {port} --comch unix:{socket} {words}",\n'
            f'  "offload-worker --backend cpu --comch unix:{socket}",\n]\n')


def is_listening(port):
    return f":{port:04X} " in "".join(line for line in open("/proc/net/tcp") if " 0A " in line)


def test_a_comparison_ends_with_one_sentence_in_all_outputs(tmp_path):
    ports = [free_port(), free_port()]
    text = 'time = "3s"\ntolerance = "20%"\n' + pair_of(tmp_path, "base", ports[0]) + \
        pair_of(tmp_path, "new", ports[1]) + "[[load]]\nsize = 64\nmax-concurrent-messages = 1\n"
    answer, junit = tmp_path / "answer.json", tmp_path / "junit.xml"
    done = bench(tmp_path, text, "-o", answer, "--junit", junit)
    sentence = done.out.splitlines()[-1]
    assert SENTENCE.fullmatch(sentence), done.out + done.log
    result = json.loads(answer.read_text())
    assert result["sentence"] == sentence and result["exit_status"] == done.returncode
    expected = {"equal": 0, "faster": 0, "slower": 1, "cannot_tell": 3}
    assert done.returncode == expected[result["verdict"]]
    (load,) = result["loads"]
    pairs = load["compare"]["pairs"]
    assert len(pairs) > 5 and {pair["new_first"] for pair in pairs} == {True, False}
    for part in load["results"]:
        (run,) = part["result"]["runs"]
        assert run["operation_count"] == run["valid_responses"] > 0
    (case,) = xml.parse(junit).getroot().findall("testcase")
    assert case.findtext("system-out") == sentence
    assert (case.find("failure") is not None) == (result["verdict"] == "slower")
    if "report" in EXTENSIONS:
        page = tmp_path / "page.html"
        subprocess.run([BIN / "offload-report", "html", answer, "-o", page], check=True, timeout=60 * TIME_FACTOR)
        kind = {"equal": "good", "faster": "good", "slower": "bad", "cannot_tell": "warn"}[result["verdict"]]
        assert f'<div class="banner {kind}" role="status"><p>{sentence}</p>' in page.read_text()
    # All that was started has ended, and its output is kept.
    assert not any(map(is_listening, ports))
    assert "listening" in (tmp_path / "logs/base-1.log").read_text()


def test_a_slower_target_is_found(tmp_path):
    """NEW answers 100 requests a second, BASE 200, one after the other."""
    with PacedServer(rate=200, burst=1) as base, PacedServer(rate=100, burst=1) as new:
        text = (f'time = "30s"\n[base]\naddress = "127.0.0.1:{base.port}"\n'
                f'[new]\naddress = "127.0.0.1:{new.port}"\n'
                '[[load]]\nsize = 64\nservice = "echo"\nmax-concurrent-messages = 1\n')
        done = bench(tmp_path, text)
    assert done.returncode == 1, done.out + done.log
    slower = re.fullmatch(r"([\d.]+) % slower \(([\d.]+) to ([\d.]+)\)", done.out.splitlines()[-1])
    assert slower, done.out
    middle, low, high = map(float, slower.groups())
    assert 50 < low <= middle <= high < 200, done.out


def test_a_target_that_stalls_longer_than_a_slice_is_slower(tmp_path):
    """NEW answers 4 requests a second: most of its slices have no answer, and these count."""
    with PacedServer(rate=200, burst=1) as base, PacedServer(rate=4, burst=1) as new:
        text = (f'time = "30s"\nslice = "20ms"\n[base]\naddress = "127.0.0.1:{base.port}"\n'
                f'[new]\naddress = "127.0.0.1:{new.port}"\n'
                '[[load]]\nsize = 64\nservice = "echo"\nmax-concurrent-messages = 1\n')
        done = bench(tmp_path, text)
    assert done.returncode == 1 and "% slower (" in done.out.splitlines()[-1], done.out


def test_wrong_answers_are_never_good(tmp_path):
    """A target whose answers are not those of the load's service is refused before anything is compared."""
    text = pair_of(tmp_path, "base", free_port()) + pair_of(tmp_path, "new", free_port()) + \
        '[[load]]\nsize = 64\nservice = "echo"\n'
    text = 'start-limit = "1s"\n' + text
    done = bench(tmp_path, text, "--junit", tmp_path / "junit.xml")
    assert done.returncode == 1
    assert "BASE does not answer a first request" in done.out, done.out
    assert xml.parse(tmp_path / "junit.xml").getroot().get("failures") == "1"


def test_a_target_that_dies_meanwhile_fails(tmp_path):
    port = free_port()
    text = 'time = "60s"\n' + pair_of(tmp_path, "base", free_port()) + \
        pair_of(tmp_path, "new", port).replace("offload-server", "timeout -s KILL 4 offload-server") + \
        "[[load]]\nsize = 64\nconnect-timeout = 1\n"
    done = bench(tmp_path, text.replace("60s", "30s") + 'response-timeout = "2s"\n')
    if "equal within" in done.out or "% faster" in done.out:
        pytest.fail("it knew before the server died: " + done.out)
    assert done.returncode == 1, done.out


def test_a_command_that_ends_is_named(tmp_path):
    text = f'[base]\naddress = "127.0.0.1:{free_port()}"\nstart = ["echo no such luck; exit 3"]\n' + \
        f'[new]\naddress = "127.0.0.1:{free_port()}"\n[[load]]\nsize = 64\nconnect-timeout = 1\n'
    done = bench(tmp_path, text)
    assert done.returncode == 1
    assert "has ended: see" in done.out and "base-1.log" in done.out, done.out
    assert "no such luck" in (tmp_path / "logs/base-1.log").read_text()


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_commands_too(tmp_path, with_signal):
    ports = [free_port(), free_port()]
    text = 'tolerance = "0.01%"\n' + pair_of(tmp_path, "base", ports[0]) + pair_of(tmp_path, "new", ports[1]) + \
        "[[load]]\nsize = 64\n"
    process = start_bench(tmp_path, text, "-o", tmp_path / "answer.json")
    limit = time.monotonic() + PATIENCE
    while not all(map(is_listening, ports)) and time.monotonic() < limit:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(with_signal)
    done = end_of(process)
    assert done.returncode == 130, done.out + done.log
    assert json.loads((tmp_path / "answer.json").read_text())["verdict"] == "interrupted"
    assert not any(map(is_listening, ports))


def test_other_questions(tmp_path, stage):
    server, _ = stage.pair()
    base = f'[base]\naddress = "127.0.0.1:{server.port}"\n[[load]]\nsize = 64\n'
    done = bench(tmp_path, 'question = "search"\n' + base + 'search = "p50:100ms"\nduration = "100ms"\nrate = 500000\n')
    if done.returncode == 0:
        assert "is the highest rate with p50 of at most 100000 us" in done.out
    assert done.returncode in (0, 3), done.out + done.log  # 3: this client was the limit
    done = bench(tmp_path, 'question = "curve"\n' + base + 'scan = "depth=1,4,16"\nduration = "100ms"\n')
    assert done.returncode == 0 and "3 runs without errors" in done.out, done.out
    done = bench(tmp_path, 'question = "soak"\ntime = "1s"\n' + base, "-o", tmp_path / "soak.json")
    assert done.returncode == 0 and re.search(r"no errors in \d+ answers", done.out), done.out
    result = json.loads((tmp_path / "soak.json").read_text())["loads"][0]["results"][0]["result"]
    assert result["options"]["duration_seconds"] == 1


EXAMPLES = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/reference/experiments.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(4))
def test_the_examples_of_the_page_run_as_they_are_printed(tmp_path, number):
    done = bench(tmp_path, EXAMPLES[number], "-o", "answer.json")
    answer = json.loads((tmp_path / "answer.json").read_text())
    if answer["question"] == "compare":  # the machine decides which of the answers it is
        assert answer["verdict"] in ("equal", "faster", "slower", "cannot_tell")
        assert SENTENCE.search(done.out.splitlines()[-1]), done.out
    else:
        assert done.returncode in (0, 3), done.out + done.log  # 3: this client was late
        assert (done.returncode == 0) == (answer["verdict"] == "answered")


def test_the_page_has_no_other_examples():
    assert len(EXAMPLES) == 4


def test_a_wrong_file_is_one_line(tmp_path):
    done = bench(tmp_path, 'question = "why"\n')
    assert done.returncode == 2 and done.out == "" and len(done.log.splitlines()) == 1
    assert "experiment.toml:1:1: question: 'why' is not one of" in done.log
