"""--service-source: a service that is compiled when the worker starts, and the errors of one."""
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import wire
from harness import BACKEND, BIN, ROOT, SERVICES, TIME_FACTOR, wait_until

pytestmark = [
    pytest.mark.skipif(BACKEND != "cpu", reason="these compile for a CPU"),
    pytest.mark.skipif(shutil.which("c++") is None, reason="there is no c++ here"),
    pytest.mark.skipif(not (BIN.parent / "include/dpu-gpu-offload").exists(),
                       reason="the headers of modules are not beside the programs"),
]

# The time limit of a compiler, which needs 3 s on an idle machine.
COMPILED = 200 + 60 * TIME_FACTOR
TEMPLATE = ROOT / "examples/services/template/complement.cu"
PLUS = """
#include "kernels/module/service_module.hpp"
struct Plus : offload::kernels::Echo {
  static constexpr const char* kName = "plus";
  unsigned by;
  static Plus make(const offload::kernels::ServiceSetup& setup) {
    Plus made{};
    made.by = static_cast<unsigned>(std::stoul(setup.option("by")));
    return made;
  }
  template <class Group, class Response>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, const offload::kernels::Request& request,
                                      const Response& response) const {
    response.fill(group, [&](std::uint32_t offset) {
      auto block = request.block(offset);
      for (auto& word : block.words) word ^= by * 0x01010101U;
      return block;
    });
  }
};
OFFLOAD_SERVICE_MODULE(Plus);
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Sets the folder of the programs' temporary files; it must be empty when they are done with a source."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def source(path, text):
    path.write_text(text)
    return ["--service-source", path]


def complaints(worker):
    return [line for line in worker.log.splitlines() if line.startswith("offload-worker:")]


def expect_refusal(worker, says):
    """Expects one line with this text, and exit status 1."""
    assert worker.wait(COMPILED) == 1
    assert len(complaints(worker)) == 1 and says in complaints(worker)[0], worker.log


def test_sources_and_a_module_are_served_at_once(stage, tmp_path, temporary):
    server = stage.server("--listen", "0=plus", "--listen", "0=complement", "--listen", "0=shifted")
    worker = stage.worker(*source(tmp_path / "plus.cpp", PLUS), "--service-source", TEMPLATE,
                          "--service-module", SERVICES / "test_shifted.so",
                          "--service-option", "plus.by=3", "--service-option", "shifted.by=1")
    worker.wait_for_log("service plus of .*plus.cpp is ready: .*by=3", COMPILED)
    assert list(temporary.iterdir()) == []
    server.wait_for_log(r"listening on \S+", count=3)
    ports = {service: int(port) for port, service in
             re.findall(r"listening on \S+:(\d+) with \d+ threads, service ([\w-]+)", server.log)}
    for service, answer in (("plus", lambda octet: octet ^ 3), ("complement", lambda octet: 255 - octet),
                            ("shifted", lambda octet: (octet + 1) % 256)):
        with wire.Wire(ports[service]) as client:
            client.ask(wire.payloads(200, [0, 1, 48, 256]),
                       lambda request: bytes(map(answer, request)))


def test_errors_of_the_compiler_have_their_line(stage, tmp_path, temporary):
    worker = stage.worker(*source(tmp_path / "wrong.cpp", PLUS.replace("made.by =", "made.buy =")))
    expect_refusal(worker, "wrong.cpp': ")
    assert re.search(r"wrong\.cpp:8:\d+: error: .*buy", worker.log), worker.log
    assert "failed to compile it: exit status 1" in worker.log


@pytest.mark.parametrize("text, says", [
    ("int nothing;", "no function offload_service"),
    ('extern "C" int unknown(); int known = unknown();', "undefined symbol: unknown"),
    (PLUS, "it needs --service-option by="),
])
def test_a_source_that_makes_no_service_is_one_line(stage, tmp_path, temporary, text, says):
    expect_refusal(stage.worker(*source(tmp_path / "source.cpp", text)), says)


def test_what_is_missing_is_one_line(stage, tmp_path, temporary, monkeypatch):
    expect_refusal(stage.worker("--service-source", tmp_path / "nowhere.cpp"), "there is no such file")
    # Empty and relative folders of PATH are ignored: the folder where the worker starts, and those relative to it.
    monkeypatch.setenv("PATH", f"{temporary}::.:bin")
    expect_refusal(stage.worker("--service-source", TEMPLATE), "install the package g++")
    worker = stage.worker("--service-source", tmp_path / "a.txt")
    assert worker.wait(20 * TIME_FACTOR) == 2
    assert "a file whose name ends in .cu or .cpp" in worker.log


def test_without_the_headers_their_package_is_named(tmp_path):
    """The worker looks for them relative to its own program file, so a copy elsewhere has none."""
    (tmp_path / "bin").mkdir()
    if (BIN.parent / "lib").exists():  # of a bundle
        (tmp_path / "lib").symlink_to(BIN.parent / "lib")
    worker = shutil.copy(BIN / "offload-worker", tmp_path / "bin")
    ended = subprocess.run([worker, "--backend", "cpu", "--service-source", TEMPLATE],
                           capture_output=True, text=True, timeout=20 * TIME_FACTOR)
    assert ended.returncode == 1
    assert "the package libdpu-gpu-offload-dev" in ended.stderr.splitlines()[-1]


def compiler(folder, script):
    """Writes the test's own c++; returns a PATH in which it is the first."""
    folder.mkdir(exist_ok=True)
    (folder / "c++").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "c++").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def processes_below(folder):
    """Returns the processes whose working directory is in this folder."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and os.readlink(process / "cwd").startswith(str(folder)):
                found.append(process.name)
        except OSError:
            continue  # the process has ended meanwhile
    return found


def test_a_signal_ends_the_compiler_and_the_worker(stage, tmp_path, temporary, monkeypatch):
    monkeypatch.setenv("PATH", compiler(tmp_path / "path", "echo begun; sleep 600 & sleep 600"))
    worker = stage.worker("--service-source", TEMPLATE)
    wait_until(lambda: len(processes_below(temporary)) >= 3, "the compiler runs")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    wait_until(lambda: processes_below(temporary) == [], "what the compiler started is gone")


@pytest.mark.parametrize("script, says", [
    ("ln -s {module} module.so", "Too many levels of symbolic links"),
    ("mkdir module.so", "is not a regular file of this user"),
    ("exit 0", "No such file"),
    ("kill -9 $$", "failed to compile it: signal 9"),
    ("yes | head -c 10000000; exit 3", "failed to compile it: exit status 3"),
])
def test_what_a_compiler_leaves_is_looked_at(stage, tmp_path, temporary, monkeypatch, script, says):
    script = script.format(module=SERVICES / "complement.so")
    monkeypatch.setenv("PATH", compiler(tmp_path / "path", script))
    worker = stage.worker("--service-source", TEMPLATE)
    expect_refusal(worker, says)
    assert len(worker.log) < 200_000
