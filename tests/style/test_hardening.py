"""Builds a small program without one protection after another, and expects that the check reports each missing one."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "scripts/checks/hardening"
SOURCE = """
#include <cstdio>
#include <cstring>
int main(int count, char** arguments) {
  char text[16];
  std::strcpy(text, arguments[count - 1]);
  std::puts(text);
}
"""
FLAGS = ["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-fPIE", "-fstack-protector-strong", "-pie",
         "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"]
WITHOUT = {
    "position-independent": ["-fno-pie", "-no-pie"],
    "relocations stay writable": ["-Wl,-z,norelro"],
    "bound lazily": ["-Wl,-z,lazy"],
    "stack is executable": ["-Wl,-z,execstack"],
    "no stack protector": ["-fno-stack-protector"],
    "no checked function": ["-U_FORTIFY_SOURCE"],
    "in the current folder": ["-Wl,-rpath,$ORIGIN/../lib:"],
}


@pytest.fixture
def checked(tmp_path):
    """Returns a function that runs the check on a program built with these flags after the right ones."""
    if not shutil.which("readelf"):
        pytest.skip("there is no readelf")
    (tmp_path / "main.cpp").write_text(SOURCE)

    def check(*flags):
        program = tmp_path / "program"
        subprocess.run([os.environ.get("CXX", "c++"), *FLAGS, *flags, "-o", program, "main.cpp"],
                       cwd=tmp_path, check=True, timeout=60, stderr=subprocess.DEVNULL)
        return subprocess.run([CHECK, program], text=True, timeout=60, stdout=subprocess.PIPE,
                              check=False)
    return check


def test_a_hardened_program_passes(checked):
    assert checked().returncode == 0


@pytest.mark.parametrize("fault", WITHOUT)
def test_each_protection_is_missed(checked, fault):
    done = checked(*WITHOUT[fault])
    assert done.returncode == 1
    assert fault in done.stdout, done.stdout


def test_what_is_no_program_is_a_fault(tmp_path):
    (tmp_path / "text").write_text("text")
    assert subprocess.run([CHECK, tmp_path / "text", tmp_path / "none"], timeout=60,
                          stdout=subprocess.DEVNULL, check=False).returncode == 1
