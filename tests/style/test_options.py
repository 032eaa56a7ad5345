"""The scripts refuse what they do not understand: one line that says what is allowed, exit 2."""
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


def run(script, *options):
    return subprocess.run([SCRIPTS / script, *options], text=True, timeout=60, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("command, hint", [
    (("demo", "--second", "5"), "--seconds"),
    (("demo", "--seconds"), "needs a value"),
    (("demo", "--seconds", "0"), "from 1 to"),
    (("demo", "--seconds", "08x"), "from 1 to"),
    (("demo", "--threads", "-1"), "from 1 to"),
    (("demo", "--backend", "gpu"), "auto, cuda or cpu"),
    (("setup",), "build, bench, unit, test"),
    (("setup", "everything"), "build, bench, unit, test"),
    (("setup", "build", "test"), "build, bench, unit, test"),
    (("try-system",), "trixie, bookworm"),
    (("try-system", "sid"), "trixie, bookworm"),
    (("try-system", "trixie", "bookworm"), "trixie, bookworm"),
    (("try-system", "--packages", "--arch", "riscv64", "trixie"), "amd64 and arm64"),
    (("try-system", "--cuda", "trixie"), "trixie, bookworm"),
    (("fresh-root",), "a suite and a target"),
    (("fresh-root", "own"), "a suite and a target"),
    (("bench", "fast"), "quick, full"),
    (("bench", "quick", "full"), "one of quick, full"),
    (("bench", "--out"), "needs a value"),
    (("plot",), "a folder"),
    (("plot", "here", "there"), "a folder"),
    (("plot", "--fast"), "a folder"),
    (("bundle", "--fast"), "a folder"),
    (("bundle", "here", "there"), "one folder"),
    (("bundle", "--arch"), "needs a value"),
    (("bundle", "--arch", "riscv64"), "amd64 and arm64"),
    (("package", "--arch"), "needs a value"),
    (("package", "--arch", "riscv64"), "amd64 and arm64"),
    (("package", "--upgrade"), "needs a value"),
    (("coverage", "fast"), "--help"),
    (("test", "nightly", "trixie", "sometimes"), "release mission asan tsan"),
    (("rdma-guest",), "which command"),
    (("rdma-guest", "--fast"), "--timeout, --boot, --link"),
    (("rdma-guest", "--timeout"), "needs a value"),
    (("rdma-guest", "--timeout", "0", "--", "true"), "from 1 to"),
    (("rdma-guest", "--link", "folder:3", "--", "true"), "FOLDER:1 or FOLDER:2"),
])
def test_refuses(command, hint):
    done = run(*command)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert hint in done.stderr


@pytest.mark.parametrize("script", ["demo", "setup", "test", "test-targets", "test-results", "changed", "bench", "plot", "bundle",
                                    "coverage", "rdma-guest", "fresh-root", "try-system", "release"])
def test_explains_itself(script):
    done = run(script, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: scripts/{script}")


def test_bundle_leaves_a_folder_alone_that_is_not_its_own(tmp_path):
    (tmp_path / "precious").write_text("data")
    assert run("bundle", str(tmp_path)).returncode == 1
    assert (tmp_path / "precious").read_text() == "data"
