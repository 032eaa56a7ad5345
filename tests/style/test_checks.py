"""Plants one fault after another in a small tree and sees that the check for it finds it."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("kernels", "lib/core", "lib/gpu", "lib/net", "lib/comch", "apps/client", "apps/server",
           "bench", "tests", "scripts", ".ci")


@pytest.fixture
def tree(tmp_path):
    """A tree in which every check passes: each folder one header, the server on top of comch."""
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
        name = os.path.basename(folder)
        plant(tmp_path, f"{folder}/{name}.hpp", f"#pragma once\n\nint {name.strip('.')}();\n")
    plant(tmp_path, "apps/server/main.cpp",
          '#include "comch/comch.hpp"\n#include "kernels/kernels.hpp"\n#include "server.hpp"\n')
    plant(tmp_path, "lib/comch/channel.cpp", '#include <net/if.h>\n\n#include "net/net.hpp"\n')
    plant(tmp_path, "scripts/hello", "#!/usr/bin/env bash\necho hello\n")
    shutil.copy(ROOT / ".clang-format", tmp_path)
    return tmp_path


def plant(tree, path, text):
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text)


def run(check, tree):
    """The exit status of a check over the tree, and all that it printed."""
    done = subprocess.run([ROOT / "scripts/checks" / check, tree], text=True, timeout=200,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode == 77:
        pytest.skip(done.stdout)
    return done.returncode, done.stdout


@pytest.mark.parametrize("check", ["layers", "format", "headers", "shell"])
def test_a_good_tree_passes(tree, check):
    status, output = run(check, tree)
    assert status == 0, output


@pytest.mark.parametrize("check", ["layers", "format", "headers", "shell"])
def test_an_empty_tree_is_no_success(tmp_path, check):
    assert run(check, tmp_path)[0] != 0


@pytest.mark.parametrize("path, include, layers", [
    ("lib/core/up.hpp", '"net/net.hpp"', "lib/core may not include lib/net"),
    ("lib/core/angle.hpp", "<net/net.hpp>", "lib/core may not include lib/net"),
    ("lib/core/dots.hpp", '"../net/net.hpp"', "lib/core may not include lib/net"),
    ("lib/net/beside.cpp", '"gpu/gpu.hpp"', "lib/net may not include lib/gpu"),
    ("lib/comch/apart.cpp", '"gpu/gpu.hpp"', "lib/comch may not include lib/gpu"),
    ("kernels/up.cu", '"core/core.hpp"', "kernels may not include lib/core"),
    ("apps/client/other.cpp", '"apps/server/server.hpp"',
     "apps/client may not include apps/server"),
    ("lib/core/test.cpp", '"tests/tests.hpp"', "lib/core may not include tests"),
])
def test_layers_names_file_line_and_both_layers(tree, path, include, layers):
    plant(tree, path, f"// a comment\n#  include {include}\n")
    status, output = run("layers", tree)
    assert status == 1
    assert f"{path}:2: {layers} " in output
    assert "1 violations" in output


def test_layers_wants_every_folder_declared(tree):
    plant(tree, "lib/stray/stray.hpp", "#pragma once\n")
    status, output = run("layers", tree)
    assert status == 1
    assert "lib/stray/stray.hpp:1: lib/stray is in no declared layer" in output


def test_format_finds_a_file_that_is_not_formatted(tree):
    plant(tree, "kernels/crooked.cu", "int   crooked( ) ;\n")
    status, output = run("format", tree)
    assert status != 0
    assert "kernels/crooked.cu:1" in output


@pytest.mark.parametrize("text", [
    "#pragma once\n\nstd::string needs_a_header();\n",  # leans on what others included before it
    "struct Twice {};\n",  # no include guard
])
def test_headers_finds_one_that_does_not_stand_alone(tree, text):
    plant(tree, "lib/core/leaning.hpp", text)
    status, output = run("headers", tree)
    assert status != 0
    assert "headers: lib/core/leaning.hpp does not compile by itself" in output


def test_headers_compiles_kernels_as_device_code_is_compiled(tree):
    plant(tree, "kernels/modern.hpp", "#pragma once\n\nconsteval int modern() { return 20; }\n")
    status, output = run("headers", tree)
    assert status != 0
    assert "headers: kernels/modern.hpp does not compile by itself" in output


def test_shell_finds_a_script_that_does_not_parse(tree):
    plant(tree, "scripts/broken", "#!/usr/bin/env bash\nif true; then\n")
    status, output = run("shell", tree)
    assert status != 0
    assert "scripts/broken" in output


CMAKE_LISTS = """cmake_minimum_required(VERSION 3.25)
project(planted LANGUAGES CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_library(planted lib/core/good.cpp lib/core/planted.cpp)
"""
HELPER = "namespace {\nint helper() { return 1; }\n}  // namespace\n"


@pytest.mark.parametrize("text, finding", [
    ("int* nowhere() { return nullptr; }\n", None),
    ("int* nowhere() { return 0; }\n", "modernize-use-nullptr"),
    (HELPER + "int again() { return helper(); }\n", None),  # good.cpp has one of that name
    (HELPER + "int* again() { return helper() ? 0 : nullptr; }\n", "modernize-use-nullptr"),
    ("int* nowhere() { return missing; }\n", "clang-diagnostic-error"),
])
def test_tidy_finds_what_the_compiler_lets_pass(tree, text, finding):
    shutil.copy(ROOT / ".clang-tidy", tree)
    shutil.copy(ROOT / "CMakePresets.json", tree)
    plant(tree, "CMakeLists.txt", CMAKE_LISTS)
    plant(tree, "lib/core/good.cpp", HELPER + "int good() { return helper(); }\n")
    plant(tree, "lib/core/planted.cpp", text)
    status, output = run("tidy", tree)
    assert (status != 0) == (finding is not None), output
    assert (finding or "tidy: 2 files in 1 units") in output
