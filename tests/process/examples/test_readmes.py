"""The commands in the README of each example service, as they are printed there: worker, server, and load test."""
import os
import re
import subprocess

import pytest

from harness import BIN, ROOT, TIME_FACTOR, free_port

PORT = "12345"  # as the READMEs have it
RUNS_ON = re.compile(r"offload-(worker|server)\b")


def script_of(readme):
    """Returns the blocks of the language sh as one script, in which worker and server run beside the rest."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    lines = [line + " &" if RUNS_ON.match(line) else line for line in "".join(blocks).splitlines()]
    assert sum(line.endswith(" &") for line in lines) == 2 and lines[-1].startswith("offload-client ")
    return "\n".join(["set -eu", "trap 'kill $(jobs -p); wait' EXIT", *lines])


@pytest.mark.parametrize("name, verification", [
    ("grep", "recorded"), ("lookup", "recorded"), ("mlp", "length:40"),
    ("sha256", "command:openssl dgst -sha256 -binary")])
def test_the_load_test_works(tmp_path, name, verification):
    readme = (ROOT / "examples/services" / name / "README.md").read_text()
    script = script_of(readme).replace(PORT, str(free_port()))
    (tmp_path / "build").mkdir()
    (tmp_path / "build/release").symlink_to(BIN.parent)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120 * TIME_FACTOR)
    assert done.returncode == 0, done.stdout
    assert re.search(rf"^Verification: +{re.escape(verification)}$", done.stdout, re.MULTILINE), done.stdout
    assert int(re.search(r"^Valid responses: +(\d+)$", done.stdout, re.MULTILINE)[1]) > 100
