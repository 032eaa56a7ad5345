"""scripts/test-targets: what is built for the tests that ctest's arguments select; cmake/LowestArchitecture.cmake: for which GPUs."""
import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/test-targets"


@pytest.fixture
def build(tmp_path):
    """A build folder with one program built, one not, and tests that run others."""
    (tmp_path / "ring_test.cpp").write_text(
        "TEST(Ring, Fills) {}\nTEST_F(Ring, IsNew) {}\n")
    (tmp_path / "pool_test.cpp").write_text(
        "TEST_P(Pool, Empties) {}\nINSTANTIATE_TEST_SUITE_P(Small, Pool,\n    sizes());\n")
    (tmp_path / "unit_tests").mkdir()
    for name, labels in (("ring_test", "unit"), ("pool_test", "unit;tasks")):
        (tmp_path / "unit_tests" / name).write_text(f"{labels}\n{tmp_path}/{name}.cpp\n")
    bin_folder = tmp_path / "bin"
    (tmp_path / "CTestTestfile.cmake").write_text(f"""
add_test(Ring.Fills "{bin_folder}/ring_test" "--gtest_filter=Ring.Fills")
set_tests_properties(Ring.Fills PROPERTIES LABELS unit)
add_test(pool_test_NOT_BUILT pool_test_NOT_BUILT)
add_test(process.test_traffic "/usr/bin/python3" "-m" "pytest" "test_traffic.py")
set_tests_properties(process.test_traffic PROPERTIES
  LABELS process ENVIRONMENT "OFFLOAD_BIN_DIR={bin_folder};OTHER=1")
add_test(process.test_installed "/usr/bin/python3")
set_tests_properties(process.test_installed PROPERTIES
  LABELS process ENVIRONMENT "OFFLOAD_BIN_DIR={bin_folder};OFFLOAD_TARGETS=process_test_programs,tool")
add_test(process.test_threads "/usr/bin/python3")
set_tests_properties(process.test_threads PROPERTIES
  LABELS "process;threads" ENVIRONMENT "OFFLOAD_BIN_DIR={bin_folder};OFFLOAD_TARGETS=server,client")
add_test(rdma.operations "/usr/bin/env" "A=1" "{bin_folder}/rdma_guest_test")
set_tests_properties(rdma.operations PROPERTIES LABELS "rdma;slow")
add_test(check.layers "/usr/bin/python3")
set_tests_properties(check.layers PROPERTIES LABELS check)
""")
    return tmp_path


@pytest.mark.parametrize("arguments, targets", [
    (("-R", "Fills"), ["ring_test"]),
    (("-R", "IsNew"), ["ring_test"]),  # in the source, and not yet in the program
    (("-R", "Pool"), ["pool_test"]),
    (("--tests-regex", "Small/Pool.Empties"), ["pool_test"]),
    (("-R", "Small/Pool.Empties/3"), ["pool_test", "ring_test"]),  # only the program knows it
    (("-R", "pool_test"), ["pool_test"]),
    (("-R", "layers"), []),
    (("-L", "unit"), ["pool_test", "ring_test"]),
    (("-R", "test_traffic"), ["process_test_programs"]),
    (("-R", "test_threads"), ["client", "server"]),  # these alone, as it lists them
    (("-L", "process"), ["client", "process_test_programs", "server", "tool"]),
    (("-L", "^tasks$"), ["pool_test"]),
    (("-L", "rdma"), ["rdma_guest_test"]),
    (("-L", "rdma", "-LE", "slow"), []),
    (("-L", "check"), []),
])
def test_only_what_the_tests_run(build, arguments, targets):
    done = subprocess.run([SCRIPT, build, *arguments], text=True, timeout=60, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == targets


def test_process_tests_name_no_program_that_is_not_built_for_them():
    folder = Path(__file__).parents[1] / "process"
    built = (folder / "CMakeLists.txt").read_text().partition("add_custom_target(process_test_programs)")[2]
    named = set()
    for source in folder.rglob("*.py"):
        named.update(re.findall(r'"((?:offload|sample)-[a-z-]*[a-z])"|BIN / "(?:lib)?([\w-]+)', source.read_text()))
    missing = {name for pair in named for name in pair if name and not re.search(rf"[\s/]{name}[\s)]", built)}
    # tests/softcard names its program as a target; test_options leaves one out; the last is a folder of an instance.
    assert named and missing == {"softcard", "offload-rdma", "offload-worker-gpu"}


@pytest.mark.parametrize("architectures, group, lowest", [
    ("75-real;80-real;90", "", "75"), ("100;90a-real", "", "90"), ("90-virtual", "", "90"),
    # The preset "release" takes this on a machine with a GPU; there may be several of different kinds.
    ("native", "NATIVE=90-real;80-real", "80"), ("all", "ALL=75;80;120", "75"), ("all-major", "ALL_MAJOR=80;90", "80")])
def test_the_lowest_architecture(tmp_path, architectures, group, lowest):
    (tmp_path / "ask.cmake").write_text(f"""
include({SCRIPT.parents[1]}/cmake/LowestArchitecture.cmake)
offload_lowest_architecture(found)
message("lowest: ${{found}}")
""")
    values = [f"-DCMAKE_CUDA_ARCHITECTURES={architectures}"]
    if group:
        values.append(f"-DCMAKE_CUDA_ARCHITECTURES_{group}")
    done = subprocess.run(["cmake", *values, "-P", tmp_path / "ask.cmake"], text=True, check=True, timeout=60,
                          stderr=subprocess.PIPE)
    assert done.stderr == f"lowest: {lowest}\n"
