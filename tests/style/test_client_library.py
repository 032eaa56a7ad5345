"""The check of the client library's functions finds each difference."""
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECK = ROOT / "scripts/checks/client_library"
HEADER, MAP, SYMBOLS = ("clients/cpp/include/offload_client.h", "clients/cpp/exports.map",
                        "debian/libdpu-gpu-offload-client0.symbols")


@pytest.fixture(name="tree")
def fixture_tree(tmp_path):
    for name in (HEADER, MAP, SYMBOLS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def check(tree, *options):
    return subprocess.run([CHECK, *options, tree], stdout=subprocess.PIPE, text=True, timeout=60, check=False)


def test_the_tree_as_it_is(tree):
    assert check(tree).stdout == "client_library: 0 complaints\n"


@pytest.mark.parametrize("name, old, new, complaint", [
    (HEADER, "int offload_client_wait(", "int offload_client_poll(", f"{MAP}: has offload_client_wait, but {HEADER} does not"),
    (MAP, "    offload_client_wait;\n", "", f"{MAP}: has no offload_client_wait, but {HEADER} has"),
    (SYMBOLS, " offload_client_fd@", " offload_client_fb@", f"{SYMBOLS}: has offload_client_fb, but {HEADER} does not"),
])
def test_a_difference(tree, name, old, new, complaint):
    text = (tree / name).read_text()
    assert old in text
    (tree / name).write_text(text.replace(old, new))
    done = check(tree)
    assert done.returncode == 1 and complaint in done.stdout.splitlines()


def test_a_library_that_needs_others_and_exports_nothing(tree):
    for program in ("nm", "readelf", "c++"):
        if not shutil.which(program):
            pytest.skip("needs c++ and readelf (package g++)")
    library = tree / "libother.so"
    subprocess.run(["c++", "-shared", "-fPIC", "-x", "c++", "/dev/null", "-Wl,--no-as-needed", "-o", library, "-lz"],
                   check=True, timeout=60)
    lines = check(tree, "--library", library).stdout.splitlines()
    assert f"{library} needs libz.so.1" in lines
    assert f"{library}: has no offload_client_open, but {HEADER} has" in lines
