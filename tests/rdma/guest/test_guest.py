"""scripts/rdma-guest: what runs in the guest behaves as if it ran here, but for its RDMA device."""
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts/rdma-guest"
CANNOT_RUN = 77


def start(*arguments, **options):
    return subprocess.Popen([SCRIPT, *arguments], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **options)


def run(*arguments, **options):
    """Exit status, standard output and standard error of one run."""
    with start(*arguments, **options) as guest:
        output, errors = guest.communicate(timeout=300)
        return guest.returncode, output, errors


@pytest.fixture(scope="session")
def guest():
    status, _, errors = run("--prepare")
    if status == CANNOT_RUN:
        pytest.exit(errors.strip(), returncode=CANNOT_RUN)
    assert status == 0, errors
    return run


def test_without_qemu_it_says_so_in_one_line(tmp_path):
    for program in ("bash", "dirname", "uname"):
        (tmp_path / program).symlink_to(shutil.which(program))
    status, output, errors = run("--", "true", env={"PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert status == CANNOT_RUN
    assert output == ""
    assert len(errors.splitlines()) == 1
    assert "qemu-system-x86_64 is missing" in errors or "it takes x86-64" in errors


def test_a_command_has_its_arguments_folder_environment_and_output(guest, tmp_path):
    (tmp_path / "file").write_text("seen\n")
    command = 'cat file; echo "$1|$WORD"; ls /sys/class/infiniband; echo bad >&2; : >new; exit 9'
    status, output, errors = guest("--", "bash", "-c", command, "-", "two  'words'", cwd=tmp_path,
                                   env={**os.environ, "WORD": "a b"})
    assert output == "seen\ntwo  'words'|a b\nrxe0\n"
    assert errors == "bad\n"
    assert status == 9
    assert not (tmp_path / "new").exists()


def test_a_report_is_there_afterwards(guest, tmp_path):
    report = tmp_path / "folder/report"
    assert guest("--report", str(report), "--", "bash", "-c", "seq 20000 >/dev/report")[0] == 0
    assert report.read_text().splitlines() == [str(i) for i in range(1, 20001)]


def test_a_guest_that_does_not_start_is_ended_by_the_limit_for_that(guest, tmp_path):
    stuck = tmp_path / "qemu-system-x86_64"
    stuck.write_text("#!/bin/sh\nexec sleep 100\n")
    stuck.chmod(0o755)
    start_time = time.monotonic()
    status, output, errors = guest("--boot", "1", "--timeout", "60", "--", "true",
                                   env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert time.monotonic() - start_time < 40
    assert (status, output) == (125, "")
    assert "the guest did not start within 1 s" in errors


def test_a_guest_that_is_late_says_where_its_processors_are(guest):
    status, output, errors = guest("--boot", "1", "--", "true")
    assert (status, output) == (125, "")
    assert {"CPU#0", "CPU#1"} <= {line[:5] for line in errors.splitlines()}, errors


def test_a_command_that_takes_too_long_is_ended(guest):
    assert guest("--timeout", "1", "--", "sleep", "200")[0] == 124


def test_two_guests_share_an_ethernet(guest, tmp_path):
    # busybox comes with the guest. Each ends when it has heard the other.
    talk = {1: "echo one $RDMA_GUEST_ADDRESS | busybox nc -l -p 7000",
            2: "until echo two $RDMA_GUEST_ADDRESS | busybox nc -w 2 10.77.1.1 7000; "
               "do sleep 0.2; done"}
    guests = [start("--link", f"{tmp_path}/wire:{me}", "--", "bash", "-c", talk[me])
              for me in (1, 2)]
    for one, heard in zip(guests, ("two 10.77.1.2\n", "one 10.77.1.1\n")):
        output, errors = one.communicate(timeout=300)
        assert (one.returncode, output) == (0, heard), errors
