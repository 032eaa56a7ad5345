"""Plants one fault after another in a small tree with DOCA's functions, and sees that the check finds it."""
import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "scripts/checks/doca"
FILES = {
    "lib/doca/functions.txt": "# a comment\n[doca_one.h]\ndoca_one_start | `One` | slow\ndoca_one_version | inline |\n",
    "lib/doca/include/doca_one.h": """/// doca_one_old() is no function of it.
#define DOCA_ONE(x) \\
  doca_one_macro(x)
typedef void (*doca_one_cb_t)(int value);
int doca_one_start(doca_one_cb_t callback);
static inline int doca_one_version(void) { return 1; }
""",
    "tests/doca/one_test.cpp": "doca_one_start(nullptr); doca_one_version();\n",
    "docs/reference/doca.md": "# DOCA\n\n<!-- functions: written by scripts/checks/doca --fill -->\n<!-- end of functions -->\n",
    "README.md": "| | |\n|---|---|\n| functions of DOCA's interface in C | |\n| idle | sleeps |\n",
}


def check(tree, *options):
    return subprocess.run([CHECK, *options, tree], check=False, timeout=60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert check(tmp_path, "--fill").returncode == 0
    return tmp_path


def test_a_good_tree_passes(tree):
    assert check(tree).stdout.splitlines() == ["doca: 2 functions, 0 complaints"]
    assert "| `doca_one_start` | `One` | slow |" in (tree / "docs/reference/doca.md").read_text()
    assert (tree / "README.md").read_text().splitlines()[2:] == [
        "| functions of DOCA's interface in C | 2: one 2 ([doca.md](docs/reference/doca.md)) |", "| idle | sleeps |"]


@pytest.mark.parametrize("name, old, new, complaint", [
    ("lib/doca/include/doca_one.h", "int doca_one_start(", "int doca_one_stop(int x);\nint doca_one_start(",
     "doca_one_stop: declared in doca_one.h, but it is not in lib/doca/functions.txt"),
    ("lib/doca/include/doca_one.h", "int doca_one_start(doca_one_cb_t callback);\n", "",
     "doca_one_start: in lib/doca/functions.txt, but not declared in doca_one.h"),
    ("tests/doca/one_test.cpp", "doca_one_version", "f", "doca_one_version: no test of tests/doca calls it"),
    ("tests/doca/one_test.cpp", "doca_one_version", "// doca_one_version", "doca_one_version: no test of tests/doca calls it"),
    ("tests/doca/one_test.cpp", "doca_one_version()", "f(doca_one_version)", "doca_one_version: no test of tests/doca calls it"),
    ("docs/reference/doca.md", "| slow |", "| fast |", "docs/reference/doca.md: its list of functions is not that of"),
    ("docs/reference/doca.md", "<!-- end of functions -->", "", "are missing"),
    ("README.md", "2: one 2", "3: one 3", "README.md: its counts are not those of lib/doca/functions.txt"),
    ("README.md", "functions of", "calls of", "there is no row of functions"),
    ("lib/doca/functions.txt", "| `One` | slow", "", "not 'function | object'"),
    ("lib/doca/functions.txt", "doca_one_version | inline |", "doca_one_version | inline |\ndoca_one_version | inline |",
     "a function stands there twice"),
])
def test_it_finds_what_differs(tree, name, old, new, complaint):
    path = tree / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    found = check(tree)
    assert found.returncode == 1
    assert complaint in found.stdout


def test_it_finds_what_the_library_exports_otherwise(tree):
    source = tree / "one.c"
    source.write_text("int doca_one_begin(void) { return 1; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", tree / "one.so"], check=True, timeout=60)
    found = check(tree, "--library", tree / "one.so").stdout
    assert "doca_one_begin: exported, but it is not in" in found
    assert "doca_one_start: in lib/doca/functions.txt, but not exported" in found
    assert "doca_one_version" not in found  # a header defines it
