"""The commands of docs/guide/tutorial.md, as they are printed there."""
import os
import shutil
import subprocess

import pytest

from harness import BACKEND, BIN, EXTENSIONS, ROOT, TIME_FACTOR

# A namespace in which the tutorial's ports are free.
ALONE = ["unshare", "--map-root-user", "--net"]


@pytest.mark.skipif(BACKEND != "cpu", reason="the commands that are run are those for a CPU")
@pytest.mark.skipif("report" not in EXTENSIONS, reason="a build without the extension report")
@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no c++ here")
def test_every_command_works_in_a_clone(tmp_path):
    if subprocess.run([*ALONE, "true"], capture_output=True, timeout=60, check=False).returncode != 0:
        pytest.skip("no network namespaces can be made here")
    (tmp_path / "build").mkdir()
    (tmp_path / "build/release").symlink_to(BIN.parent)
    environment = {**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}  # no nvcc, which takes minutes
    environment.pop("OFFLOAD", None)
    done = subprocess.run([*ALONE, "sh", "-c", 'ip link set lo up && exec "$0" "$1"', ROOT / "deploy/try-tutorial",
                           ROOT / "docs/guide/tutorial.md"], cwd=tmp_path, env=environment, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200 + 60 * TIME_FACTOR)
    assert done.returncode == 0, done.stdout
