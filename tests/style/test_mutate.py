"""scripts/mutate, in a tree of one folder: which mutants it plants, and what it says of them."""
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
find_package(GTest REQUIRED)
include_directories(${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR})
set(CMAKE_CXX_STANDARD 20)
add_executable(tiny_test tests/tiny/tiny_test.cpp lib/tiny/tiny.cpp)
target_link_libraries(tiny_test PRIVATE GTest::gtest_main)
add_executable(tiny apps/tiny.cpp lib/tiny/tiny.cpp)
add_executable(simulation tests/simulation/main.cpp lib/tiny/tiny.cpp)
add_custom_target(process_test_programs DEPENDS tiny)
file(WRITE ${PROJECT_BINARY_DIR}/unit_tests/tiny_test "unit\\n${PROJECT_SOURCE_DIR}/tests/tiny/tiny_test.cpp\\n")
"""
PRESETS = {"version": 6, "configurePresets": [{
    "name": "no-cuda", "generator": "Ninja", "binaryDir": "${sourceDir}/build/no-cuda",
    "cacheVariables": {"CMAKE_BUILD_TYPE": "RelWithDebInfo"}}]}
HEADER = """#pragma once
#include <array>
#include <string>
constexpr int kMost = 9;
static_assert(kMost > 8);
struct Log {
  Log& operator()(const char*, const std::string&) { return *this; }
  Log& operator()(const char*, int) { return *this; }
};
inline Log log_info;
struct Version {
  int number;
  friend bool operator<(Version a, Version b) { return a.number < b.number; }
};
constexpr int twice(int value) { return 2 * value; }
static_assert(twice(3) == 6);
int limited(int value);
bool is_older(Version a, Version b);
int unused(int value);
int simulated(int seed);
int printed(int value);
"""
CODE = """#include "tiny/tiny.hpp"
// A comment: 1 + 1.
int limited(int value) {
  log_info("the value is", value + 71);
  log_info("as text", std::to_string(value + 81));
  std::array<int, 5> table{};
  for (int i = 0; i < 5; ++i) table[i] = i;
  if (value > kMost) return kMost;
  return value + table[3] - 3;
}
bool is_older(Version a, Version b) {
  return a < b;
}
int unused(int value) {
  return value * 4;
}
int simulated(int seed) {
  return seed + 6;
}
int printed(int value) {
  return value - 8;
}
bool is_in_order(int a, int b, int c) {
  return a < b && b < c && c < 9;
}
"""
NOT_COMPILED = "bool for_a_gpu() { return true; }\n"
SIMULATION = """#include "tiny/tiny.hpp"
#include <cstdlib>
int main(int, char** arguments) { return simulated(std::atoi(arguments[2])) == 13 ? 0 : 1; }
"""
PROGRAM = """#include "tiny/tiny.hpp"
#include <cstdio>
int main() { std::printf("%d", printed(10)); }
"""
PROCESS_TEST = """import os
import subprocess
def test_prints():
    assert subprocess.check_output([os.environ["OFFLOAD_BIN_DIR"] + "/tiny"]) == b"2"
def test_fails():
    assert subprocess.check_output([os.environ["OFFLOAD_BIN_DIR"] + "/tiny"]) == b"3"
"""
TEST = """#include "tiny/tiny.hpp"
#include <gtest/gtest.h>
TEST(Tiny, Limits) {
  EXPECT_EQ(limited(3), 3);
  EXPECT_EQ(limited(20), 9);
}
TEST(Tiny, Compares) {
  EXPECT_TRUE(is_older({1}, {2}));
  EXPECT_FALSE(is_older({2}, {2}));
  EXPECT_EQ(twice(2), 4);
}
"""
SURVIVOR = "- if (value > kMost) return kMost;\n+ if (value >= kMost) return kMost;\n"


@pytest.fixture(scope="module", name="tree")
def make_tree(tmp_path_factory):
    if importlib.util.find_spec("clang") is None:
        pytest.skip("python3-clang is not installed")
    tree = tmp_path_factory.mktemp("tree")
    for name, text in (("CMakeLists.txt", CMAKE), ("CMakePresets.json", json.dumps(PRESETS)),
                       ("lib/tiny/tiny.hpp", HEADER), ("lib/tiny/tiny.cpp", CODE),
                       ("lib/tiny/gpu.cpp", NOT_COMPILED), ("apps/tiny.cpp", PROGRAM),
                       ("tests/tiny/tiny_test.cpp", TEST), ("tests/simulation/main.cpp", SIMULATION),
                       ("tests/simulation/kept_seeds", "# a comment\n7 2047 a fault\n"),
                       ("tests/process/test_tiny.py", PROCESS_TEST), (".gitignore", "build\n")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (tree / "scripts").mkdir()
    for name in ("mutate", "mutate-run"):
        shutil.copy2(ROOT / "scripts" / name, tree / "scripts")
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a")
    return tree


def git(tree, *arguments):
    subprocess.run(("git", *arguments), cwd=tree, check=True, timeout=60)


def mutate(tree, *arguments):
    done = subprocess.run((sys.executable, tree / "scripts/mutate", *arguments), text=True, timeout=300, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def mutants(tree):
    return json.loads((tree / "build/mutate/bundle/manifest.json").read_text())["mutants"]


def test_survivors_are_found_and_others_counted(tree):
    status, output = mutate(tree, "lib/tiny", "--results", str(tree / "build/results"))
    assert status == 0, output
    assert "lib/tiny/tiny.cpp:8: survived (relational)\n" + SURVIVOR in output
    assert ("lib/tiny/tiny.cpp:15: survived (arithmetic, not reached)\n- return value * 4;\n+ return value / 4;\n") in output
    results = [json.loads(line) for line in (tree / "build/results").read_text().splitlines()]
    killed = {result["after"]: result["by"] for result in results if result["outcome"] in ("killed", "timeout")}
    assert killed["return value - table[3] - 3;"] == "tiny_test Tiny.Limits"
    assert killed["friend bool operator<(Version a, Version b) { return a.number <= b.number; }"] \
        == "tiny_test Tiny.Compares"
    assert killed["constexpr int twice(int value) { return 2 / value; }"] == "tiny_test Tiny.Compares"
    assert f"lib/tiny       {len(killed)} of {len(results)} killed" in output


def test_what_does_not_compile_is_dropped_and_some_code_is_not_mutated(tree):
    status, output = mutate(tree, "--build-only", "lib/tiny")
    assert status == 0, output
    assert " mutants compile, 1 do not and are dropped" in output
    found = [mutant["after"] for mutant in mutants(tree)]
    assert "return a <= b;" not in found  # Version has no such operator
    assert not any(text in after for after in found
                   for text in ("static_assert", "comment", "value + 72", "value - 71", "value - 81", "array<", "kMost = "))
    assert not any("log_info" in mutant["before"] for mutant in mutants(tree))
    assert "for (int i = 0; i < 5; ++i) ;" in found
    # As they are planted, although the texts of both fit there without parentheses.
    assert "return value * (4 + 1);" in found and "return (a < b || b < c) && c < 9;" in found


def test_the_simulation_and_process_tests_run_where_no_unit_test_fails(tree):
    script = tree / "scripts/mutate"
    text = script.read_text()
    script.write_text(text.replace("SIMULATED = (", 'SIMULATED = ("lib/tiny", ')
                      .replace("PROCESS_TESTS = {", 'PROCESS_TESTS = {"lib/tiny": "tiny",'))
    status, output = mutate(tree, "lib/tiny", "--results", str(tree / "build/results"))
    script.write_text(text)
    assert status == 0, output
    assert "left out, fails without a mutant: tests/process/test_tiny.py test_fails" in output
    decided = {result["after"]: (result["outcome"], result["by"])
               for result in map(json.loads, (tree / "build/results").read_text().splitlines())}
    assert decided["return value - table[3] - 3;"] == ("killed", "tiny_test Tiny.Limits")
    assert decided["return seed - 6;"] == ("killed", "simulation 7 2047")
    assert decided["return value + 8;"] == ("killed", "tests/process/test_tiny.py test_prints")
    assert decided["return value / 4;"] == ("not reached", "")
    assert "2 by the simulation, 2 by process tests" in output


def test_what_the_build_does_not_compile_is_left_out_and_named(tree):
    status, output = mutate(tree, "--build-only", "lib/tiny")
    assert status == 0, output
    assert "this build does not compile lib/tiny/gpu.cpp" in output
    assert not any(mutant["path"] == "lib/tiny/gpu.cpp" for mutant in mutants(tree))


def test_equivalent_mutants_are_listed_by_their_text(tree):
    (tree / "tests/mutants").mkdir(exist_ok=True)
    listed = tree / "tests/mutants/equivalent"
    listed.write_text("# a comment\n\nlib/tiny/tiny.cpp: the largest value is the limit itself\n" + SURVIVOR)
    status, output = mutate(tree, "lib/tiny")
    assert status == 0, output
    assert SURVIVOR not in output and "; 1 equivalent" in output
    listed.write_text("lib/tiny/tiny.cpp: a line that is gone\n- return value;\n+ return -value;\n")
    status, output = mutate(tree, "lib/tiny")
    listed.unlink()
    assert status == 2 and "has no such line: return value;" in output


def test_a_folder_below_its_floor_fails(tree):
    script = tree / "scripts/mutate"
    text = script.read_text()
    floors = text[text.index("FLOORS = {"):text.index("}\n", text.index("FLOORS = {")) + 2]
    script.write_text(text.replace(floors, 'FLOORS = {"lib/tiny": 100}\n'))
    status, output = mutate(tree, "lib/tiny")
    script.write_text(text)
    assert status == 1 and "at least 100 MISSED" in output


def test_only_changed_lines_are_mutated(tree):
    code = tree / "lib/tiny/tiny.cpp"
    code.write_text(CODE.replace("return value * 4;", "return value * 5;"))
    status, output = mutate(tree, "--build-only", "--since", "HEAD")
    code.write_text(CODE)
    assert status == 0, output
    assert {mutant["line"] for mutant in mutants(tree)} == {15}


@pytest.mark.parametrize("arguments, words", [
    (("lib/none",), "'lib/none' is no file or folder below kernels, lib, apps"),
    (("--since", "none"), "no changes since 'none'"),
])
def test_wrong_arguments_are_named(tree, arguments, words):
    status, output = mutate(tree, *arguments)
    assert status == 2 and words in output
