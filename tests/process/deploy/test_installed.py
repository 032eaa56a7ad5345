"""The result of "cmake --install": programs that run from there, and files that other projects build on."""
import os
import subprocess
from pathlib import Path

import pytest

import harness
from harness import needs_cpu_worker
from wire import Wire, frame

BUILD = harness.BIN.parent
CONSUMER = Path(__file__).parent / "consumer"


def run(*command, **environment):
    """Returns the command's output; raises an error with all of it if the command fails."""
    done = subprocess.run(command, env={**os.environ, **environment}, text=True, timeout=120, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Installs the suite into a separate folder; returns its prefix."""
    root = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", BUILD, "--prefix", "/usr", DESTDIR=str(root))
    return root / "usr"


def test_each_program_has_its_page_and_completion(prefix):
    programs = sorted(path.name for path in (prefix / "bin").iterdir())
    assert {"offload-server", "offload-worker", "offload-client"} <= set(programs)
    for program in programs:
        assert (prefix / "share/bash-completion/completions" / program).is_file()
        assert (prefix / "share/zsh/vendor-completions" / f"_{program}").is_file()
        assert (prefix / "share/fish/vendor_completions.d" / f"{program}.fish").is_file()
        page = prefix / "share/man/man1" / f"{program}.1"
        if (BUILD / "man").is_dir():  # else help2man is not installed
            text = page.read_text()
            assert rf"{program} \- " in text
            for section in ('"EXIT STATUS"', "EXAMPLES", "FILES", '"SEE ALSO"'):
                body = text.partition(f"\n.SH {section}\n")[2].partition("\n.SH ")[0]
                assert len(body) > 10, f"{program}: {section}"
        assert program in run(prefix / "bin" / program, "--version")


def test_wireshark_finds_the_dissector(prefix):
    [file] = prefix.rglob("offload.lua")
    assert file.parts[-3:-1] == ("wireshark", "plugins") and "lib" in file.parts
    assert file.read_text() == (harness.ROOT / "deploy/wireshark/offload.lua").read_text()


@pytest.fixture(scope="module")
def consumer(prefix, tmp_path_factory):
    """Returns the folder with the programs of a project that finds the suite through CMake."""
    build = tmp_path_factory.mktemp("consumer")
    run("cmake", "-G", "Ninja", "-S", CONSUMER, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    return build


def test_a_program_that_links_it_is_answered(prefix, consumer, monkeypatch, stage):
    monkeypatch.setattr(harness, "BIN", prefix / "bin")
    stage.worker()
    server = stage.server()
    server.wait_until_listening()
    assert run(consumer / "ask", str(server.port)) == "olleh\n"


def test_a_program_that_links_the_client_library_is_answered(prefix, consumer, tmp_path, monkeypatch, stage):
    monkeypatch.setattr(harness, "BIN", prefix / "bin")
    stage.worker()
    server = stage.server()
    server.wait_until_listening()
    assert run(consumer / "call", str(server.port)) == "olleh\n"
    [file] = prefix.rglob("dpu-gpu-offload-client.pc")
    flags = run("pkg-config", "--cflags", "--libs", "dpu-gpu-offload-client", PKG_CONFIG_PATH=str(file.parent)).split()
    run(os.environ.get("CXX", "g++"), "-std=c++17", CONSUMER / "call.cpp", *flags, "-o", tmp_path / "call")
    assert run(tmp_path / "call", str(server.port), LD_LIBRARY_PATH=str(file.parents[1])) == "olleh\n"


def test_a_program_for_doca_finds_the_library_by_one_variable(prefix, tmp_path):
    files = list(prefix.rglob("doca-dma.pc"))
    assert len(files) == (BUILD / "doca").is_dir()  # the extension may be left out
    for file in files:
        flags = run("pkg-config", "--cflags", "--libs", "doca-common", "doca-argp", "doca-dma",
                    PKG_CONFIG_PATH=str(file.parent)).split()
        run(os.environ.get("CC", "cc"), harness.ROOT / "tests/doca/program.c", *flags, "-o", tmp_path / "program")
        assert "copied 'a text'" in run(tmp_path / "program")


def test_device_code_compiles_without_the_sources(consumer):
    run(consumer / "post")


@needs_cpu_worker
@pytest.mark.parametrize("source", sorted((harness.ROOT / "examples/services").glob("*/*.cu")),
                         ids=lambda source: source.stem)
def test_a_service_module_needs_the_installed_headers_alone(prefix, tmp_path, stage, source):
    """The module is compiled by docs/guide/tutorial.md's line for a CPU."""
    module = tmp_path / "module.so"
    run(os.environ.get("CXX", "g++"), "-std=c++17", "-O0", "-shared", "-fPIC", "-fvisibility=hidden",
        f"-I{prefix}/include/dpu-gpu-offload", "-x", "c++", source, "-o", module)
    if source.stem != "complement":
        return  # the others need options and files, which their own tests have
    stage.worker("--service-module", module)
    server = stage.server("--service", "complement")
    server.wait_until_listening()
    with Wire(server.port) as wire:
        wire.send(frame(b"\x0f\xff"))
        wire.expect([b"\xf0\x00"])


def test_pkg_config_names_the_same(prefix, tmp_path):
    [file] = prefix.rglob("dpu-gpu-offload.pc")
    flags = run("pkg-config", "--cflags", "--libs", "dpu-gpu-offload",
                PKG_CONFIG_PATH=str(file.parent)).split()
    compiler = os.environ.get("CXX", "c++")
    run(compiler, "-std=c++20", CONSUMER / "ask.cpp", *flags, "-o", tmp_path / "ask")
