"""offload-doctor on the machine that runs this, and on one that is made up."""
import json
import subprocess

from harness import BIN, TIME_FACTOR


def run(*options):
    done = subprocess.run([BIN / "offload-doctor", *map(str, options)], check=False, text=True,
                          capture_output=True, timeout=60 * TIME_FACTOR)
    return done.returncode, done.stdout, done.stderr


def test_this_machine():
    status, text, log = run()
    assert log == ""
    assert status in (0, 3, 4)
    status_again, document, _ = run("--format", "json")
    result = json.loads(document)
    assert status_again == status
    assert {"good": 0, "note": 0, "warning": 3, "error": 4}[result["worst"]] == status
    for finding in result["findings"]:
        assert finding["severity"] in ("good", "note", "warning", "error")
        assert finding["found"] in text
        assert finding["severity"] != "warning" or finding["expected"] and finding["mend"]


def test_a_machine_for_a_gpu_without_one(tmp_path):
    status, text, _ = run("--root", tmp_path, "--role", "worker")
    assert status == 4
    assert "error    gpus" in text
    assert run("--root", tmp_path)[0] == 0


def test_a_wrong_command_line():
    status, _, log = run("--role", "dpu")
    assert status == 2
    assert "--role: 'dpu' is not one of any, server, worker" in log
