"""Runs offload-bench with the file of an experiment."""
import os
import subprocess

from harness import BIN, SANITIZER_REPORT, TIME_FACTOR

ENVIRONMENT = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}


def start_bench(folder, text, *options, path=ENVIRONMENT["PATH"]):
    environment = {**ENVIRONMENT, "PATH": path}
    experiment = folder / "experiment.toml"
    experiment.write_text(text)
    return subprocess.Popen([BIN / "offload-bench", experiment, "--logs", folder / "logs", *map(str, options)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment)


def end_of(process):
    try:
        process.out, process.log = process.communicate(timeout=60 * TIME_FACTOR)
    finally:
        process.kill()
    assert not SANITIZER_REPORT.search(process.log), process.log
    assert process.returncode >= 0, f"signal {-process.returncode}"
    return process


def bench(folder, text, *options, **environment):
    return end_of(start_bench(folder, text, *options, **environment))
