"""The programs of examples/clients, built as their first lines say, with a server and its worker."""
import os
import re
import shutil
import subprocess
import sys

import pytest

from harness import BIN, PATIENCE, ROOT, free_port

FOLDER = ROOT / "examples/clients"
HEADERS, LIBRARY = ROOT / "clients/cpp/include", BIN.parent / "lib"
LINK = [f"-I{HEADERS}", f"-L{LIBRARY}", "-ldpu-gpu-offload-client"]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
# The compiler, with the arguments that build a program; {} is the folder to build in. Then the command that runs it.
BUILDS = {
    "client.c": (["cc", "-std=c11", *STRICT, FOLDER / "client.c", *LINK, "-o", "{}/client"], ["{}/client"]),
    "client.cpp": (["c++", "-std=c++17", *STRICT, FOLDER / "client.cpp", *LINK, "-o", "{}/client"], ["{}/client"]),
    "client.go": (["go", "build", "-o", "{}/client", FOLDER / "client.go"], ["{}/client"]),
    "client.rs": (["rustc", "--edition", "2021", "-D", "warnings", FOLDER / "client.rs", "-o", "{}/client"], ["{}/client"]),
    "Client.java": (["javac", "-Xlint:all", "-Werror", "-d", "{}", FOLDER / "Client.java"], ["java", "-cp", "{}", "Client"]),
    "client.py": ([sys.executable, "-m", "py_compile", FOLDER / "client.py"], [sys.executable, FOLDER / "client.py"]),
}


def test_no_example_is_left_out():
    assert sorted(path.name for path in FOLDER.iterdir() if path.is_file()) == sorted(BUILDS)


@pytest.fixture(name="program", params=BUILDS)
def fixture_program(request, tmp_path):
    """Builds an example; returns what runs it."""
    compiler, run = BUILDS[request.param]
    if not shutil.which(str(compiler[0])):
        pytest.skip(f"the compiler {compiler[0]} is not installed: see docs/reference/clients.md")
    command = [str(word).replace("{}", str(tmp_path)) for word in compiler]
    environment = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1",
                   "PYTHONPYCACHEPREFIX": str(tmp_path)}
    built = subprocess.run(command, env=environment, text=True, timeout=10 * PATIENCE, check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert built.returncode == 0, built.stdout
    return [str(word).replace("{}", str(tmp_path)) for word in run]


def run_example(program, port, *words):
    return subprocess.run([*program, "127.0.0.1", str(port), *words], text=True, timeout=3 * PATIENCE, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "LD_LIBRARY_PATH": str(LIBRARY),
                               "PYTHONPATH": str(ROOT / "clients/python/src")})


def test_an_example(stage, program):
    server, worker = stage.pair("--worker-timeout", "300ms")
    done = run_example(program, server.port)
    assert (done.returncode, done.stdout, done.stderr) == (0, "10000 responses, all right\n", "")
    worker.kill()
    server.wait_until_worker_gone()
    done = run_example(program, server.port, "10")
    assert done.returncode == 1 and "no worker is attached" in done.stderr, done.stderr
    assert run_example(program, free_port()).returncode == 1
    stage.comch = stage.folder / "echo.sock"
    echo, _ = stage.pair("--service", "echo")
    done = run_example(program, echo.port)
    assert done.returncode == 1 and re.search("wrong response", done.stderr)
