"""Every program whose standard output cannot be written, as on a full disk, reports it and fails."""
import re
import resource
import subprocess

import pytest
from harness import BIN, EXTENSIONS, SANITIZE, TIME_FACTOR

LIMIT = 60 * TIME_FACTOR
# bench-engine uses Google Benchmark, which exits by itself after its help.
PROGRAMS = sorted(path.name for kind in ("offload-*", "bench-*") for path in BIN.glob(kind)
                  if path.name != "bench-engine")
# Samples that print results without another program.
SAMPLES = {"tasks": ["sample-graph", "sample-event-driven-engine", "sample-memory-export",
                     "sample-sync-event-processes", "sample-unsolicited"],
           "rdma_tasks": ["sample-rdma-put", "sample-rdma-tasks-send", "sample-rdma-tasks-many-clients"]}
# The exit status of the doctor depends on the state of the machine.
GOOD = (0, 3, 4)


def ended(command, output):
    with open(output, "w") as out:
        return subprocess.run([BIN / command[0], *map(str, command[1:])], stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False)


def expect_failure(*command, status=(0,)):
    """Expects `status` if standard output can be written, and 1 if the disk is full."""
    good = ended(command, "/dev/null")
    assert good.returncode in status, good.stderr
    full = ended(command, "/dev/full")
    assert full.returncode == 1, f"exit status {full.returncode}: {full.stderr}"
    # There is no reason if a line was lost before the end.
    assert re.search(rf"^{command[0]}: cannot write '?standard output'?(: No space left on device)?$", full.stderr,
                     re.MULTILINE), full.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_help(name):
    expect_failure(name, "--help")


@pytest.mark.parametrize("command", [
    ["offload-server", "--version"], ["offload-server", "--print-config"], ["offload-server", "--check-config"],
    ["offload-worker", "--list-devices"], ["offload-worker", "--print-config"], ["offload-worker", "--check-config"],
    *([["offload-doctor"], ["offload-doctor", "--format", "json"]] if "doctor" in EXTENSIONS else [])], ids=" ".join)
def test_what_a_program_prints(command):
    expect_failure(*command, status=GOOD)


@pytest.mark.parametrize("name", [name for extension in SAMPLES if extension in EXTENSIONS
                                  for name in SAMPLES[extension]])
def test_samples(name):
    expect_failure(name, status=(0, 77))  # 77: it prints that there is no RDMA device


def test_a_load_and_its_reports(stage):
    server = stage.server("--admin", f"unix:{stage.folder}/admin")
    stage.worker()
    server.wait_until_listening()
    server.wait_until_served()
    client = ["offload-client", "-s", "127.0.0.1", "-p", server.port, "-i", 100]
    result = stage.folder / "result.json"
    assert ended([*client, "--output", result], "/dev/null").returncode == 0
    expect_failure(*client)
    expect_failure(*client, "--repeat", 3)
    expect_failure(*client, "--output", "-")
    for command in (["health"], ["status"], ["metrics"]):
        expect_failure("offload-ctl", "--admin", f"unix:{stage.folder}/admin", *command)
    if "report" in EXTENSIONS:
        expect_failure("offload-report", "html", result, "-o", "-")
        expect_failure("offload-report", "compare", result, result, status=(3,))


def test_a_standard_output_that_is_closed(stage):
    """A program that prints nothing there does not need standard output."""
    server = stage.program("offload-server", *stage.comch_options(), "-p", 0,
                           wrapper=["/bin/sh", "-c", 'exec "$@" >&-', "sh"])
    server.wait_for_log("waiting for a worker on")
    assert server.terminate() == 0


@pytest.mark.skipif(SANITIZE != [""], reason="a sanitizer's own stack is larger")
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.startswith("offload-")])
def test_a_stack_that_is_too_small(name):
    def limit():
        resource.setrlimit(resource.RLIMIT_STACK, (64 << 10, 64 << 10))
    done = subprocess.run([BIN / name, "--help"], preexec_fn=limit, capture_output=True, text=True, timeout=LIMIT,
                          check=False)
    assert done.returncode == 1 and done.stdout == "", done.returncode
    assert done.stderr == f"{name}: the stack limit of 64 KiB (ulimit -s) is too low: 256 KiB are needed\n"
