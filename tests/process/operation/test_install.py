"""What is installed can be used: a program of others builds against the headers."""
import os
import shutil
import subprocess

import pytest
from harness import BIN, TIME_FACTOR

BUILD = BIN.parent

pytestmark = [
    pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not installed"),
    pytest.mark.skipif(not (BUILD / "cmake_install.cmake").exists(), reason="no build tree (a bundle)")]

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(mine CXX)
find_package(dpu-gpu-offload 0.1 REQUIRED)
add_executable(mine main.cpp)
target_link_libraries(mine dpu-gpu-offload::headers)
target_compile_options(mine PRIVATE -Wall -Wextra -Werror)
"""

PROGRAM = """#include <cstddef>
#include <cstdio>
#include "kernels/rdma/put.hpp"
#include "protocol/frame.hpp"

int main() {
  using namespace offload;
  std::byte frame[protocol::kFrameHeaderSize];
  protocol::store_header(frame, protocol::MessageId::client_request, 5);
  for (const std::byte each : frame) std::printf("%02x", std::to_integer<unsigned>(each));
}
"""


def run(*command, **options):
    done = subprocess.run([*map(str, command)], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120 * TIME_FACTOR, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(name="prefix", scope="module")
def an_installed_package(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--component", "dev", "--prefix", prefix)
    return prefix


def test_by_cmake(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "main.cpp").write_text(PROGRAM)
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    # Of 12 bytes: the length of what follows, and what it is.
    assert len(run(tmp_path / "build" / "mine")) == 24


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is not installed")
def test_by_pkg_config(prefix, tmp_path):
    (tmp_path / "main.cpp").write_text(PROGRAM)
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "share/pkgconfig")}
    flags = run("pkg-config", "--define-prefix", "--cflags", "dpu-gpu-offload", env=environment)
    assert str(prefix) in flags
    run("c++", "-std=c++20", *flags.split(), tmp_path / "main.cpp", "-o", tmp_path / "mine")
    assert len(run(tmp_path / "mine")) == 24
