"""offload-doctor on the machine that runs this, and on a simulated one."""
import json
import subprocess

from harness import BIN, TIME_FACTOR


def run(*options):
    done = subprocess.run([BIN / "offload-doctor", *map(str, options)], check=False, text=True,
                          capture_output=True, timeout=60 * TIME_FACTOR)
    return done.returncode, done.stdout, done.stderr


MOMENTARY = ("load", "steal time", "other processes", "clock discipline", "smt siblings")


def test_this_machine():
    status, text, log = run()
    assert log == ""
    assert status in (0, 3, 4)
    status, document, _ = run("--format", "json")
    result = json.loads(document)
    assert {"good": 0, "note": 0, "warning": 3, "error": 4}[result["worst"]] == status
    for finding in result["findings"]:
        assert finding["severity"] in ("good", "note", "warning", "error")
        # Those of the moment are other ones in each run, and so are servers of other tests.
        assert finding["subject"] in text
        assert finding["found"] in text or finding["subject"] in MOMENTARY or "/proc/" in finding["found"]
        assert finding["severity"] != "warning" or finding["expected"] and finding["mend"]


def test_a_machine_for_a_gpu_without_one(tmp_path):
    status, text, _ = run("--root", tmp_path, "--role", "worker")
    assert status == 4
    assert "error    gpus" in text
    assert run("--root", tmp_path)[0] == 0


def test_a_pair_ends_with_a_plan(tmp_path):
    card = tmp_path / "sys/class/infiniband/mlx5_0"
    for name, text in {"device/vendor": "0x15b3", "ports/1/state": "1: DOWN",
                       "ports/1/link_layer": "Ethernet"}.items():
        (card / name).parent.mkdir(parents=True, exist_ok=True)
        (card / name).write_text(text + "\n")
    status, text, log = run("--root", tmp_path, "--pair", "-", "mlx5_0")
    assert (status, log) == (3, "")
    plan = text.split("Do this, in this order:\n")[1].splitlines()
    assert plan[0].startswith("  1. rdma mlx5_0 port 1: ip link set")
    assert "test it: offload-rdma write --role responder --device mlx5_0" in plan[-1]
    status, document, _ = run("--root", tmp_path, "--pair", "-", "mlx5_0", "--format", "json")
    assert (status, json.loads(document)["worst"]) == (3, "warning")
    status, text, log = run("--root", tmp_path, "--pair", "01:00.0", "mlx5_0")
    assert (status, text) == (1, "")
    assert "no GPU has the PCI address '01:00.0'; this machine has none" in log


def test_a_wrong_command_line():
    status, _, log = run("--pair", "mlx5_0")
    assert status == 2
    assert "--pair needs a GPU and a network card" in log
    status, _, log = run("--role", "dpu")
    assert status == 2
    assert "--role: 'dpu' is not one of any, server, worker" in log


def test_what_spoils_measurements_and_whose_limits(stage):
    """A server runs: the limits are those of its process, not of the shell."""
    server = stage.server("--threads", 1)
    server.wait_for_log("waiting for a worker")
    found = {}
    for finding in json.loads(run("--format", "json")[1])["findings"]:
        found.setdefault(finding["subject"], []).append(finding["found"])
    for subject in ("steal time", "other processes", "load", "smt siblings", "turbo", "cpu governor", "clock source",
                    "clock discipline"):
        assert found[subject] and found[subject][0], subject
    assert found["steal time"][0].endswith("% of the processors' time in half a second")
    assert any(f"/proc/{server.pid}/limits)" in text for text in found["open files"]), found["open files"]
    assert not any("this shell" in text for text in found["open files"])
