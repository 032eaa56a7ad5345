"""Server, worker, client and ctl are built and tested without any extension (cmake/Extensions.cmake)."""
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = {"offload-rdma", "offload-packets", "offload-report", "offload-doctor", "sample-graph", "sample-rdma-put"}


def printed_by(*command):
    return subprocess.run(list(map(str, command)), check=True, timeout=300, stdout=subprocess.PIPE, text=True).stdout


def test_the_mission_is_configured_alone(tmp_path):
    off = [f"-D{name}=OFF" for name in re.findall(r"^(?:option|cmake_dependent_option)\((\w+)",
                                                  (ROOT / "cmake/Extensions.cmake").read_text(), re.MULTILINE)]
    assert len(off) == 6
    printed_by("cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path, "-DOFFLOAD_CUDA=OFF", *off)
    targets = set(re.findall(r"^([\w-]+): phony$", printed_by("ninja", "-C", tmp_path, "-t", "targets", "all"), re.MULTILINE))
    assert {"offload-server", "offload-worker", "offload-client", "offload-ctl", "server_test"} <= targets
    assert not targets & PROGRAMS
    labels = printed_by("ctest", "--test-dir", tmp_path, "--print-labels").split()
    assert {"unit", "process"} <= set(labels)
    assert not {"doca", "tasks", "rdma_tasks", "packets", "report", "doctor"} & set(labels)


def test_each_unit_test_of_an_extension_has_its_label(tmp_path):
    """CMake writes a script for each program, which labels the tests that the program lists when it is built."""
    printed_by("cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path, "-DOFFLOAD_CUDA=OFF", "-DOFFLOAD_TESTS=ON")
    script, = tmp_path.rglob("tasks_test_labels.cmake")
    assert 'set_tests_properties(${test} PROPERTIES LABELS "unit;tasks")' in script.read_text()
