"""The systemd units: systemd takes them, and they give their programs little."""
import shutil
import subprocess

import pytest
from harness import BIN, PATIENCE

UNITS = BIN.parent / "systemd"

pytestmark = [
    pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed"),
    pytest.mark.skipif(not UNITS.exists(), reason="no units beside the programs (a bundle)")]


def analyze(*arguments):
    return subprocess.run(["systemd-analyze", *map(str, arguments)], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)


@pytest.mark.parametrize("program, most_exposed", [("server", 1.5), ("worker", 2.5)])
def test_a_unit_is_right_and_closed(program, most_exposed, tmp_path):
    text = (UNITS / f"offload-{program}@.service").read_text()
    unit = tmp_path / f"offload-{program}@one.service"
    # Its program is where it would be installed.
    unit.write_text(text.replace("/usr/local/bin/", f"{BIN}/"))
    # A manual that is not installed is no fault of the unit.
    complaints = [line for line in analyze("verify", "--man=no", unit).stdout.splitlines()
                  if f"offload-{program}@one" in line]
    assert complaints == []
    exposed = analyze("security", "--offline=true", "--no-pager", f"--threshold={most_exposed * 10:.0f}",
                      unit)
    assert exposed.returncode == 0, exposed.stdout
