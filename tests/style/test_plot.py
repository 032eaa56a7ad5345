"""scripts/plot over figures that were recorded once (of one busy machine: not to be quoted)."""
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
PLOTS = {"latency", "throughput", "load", "channels", "bandwidth", "end_to_end"}

needs_gnuplot = pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")


def plot(folder, **environment):
    return subprocess.run([sys.executable, ROOT / "scripts/plot", folder], text=True, timeout=100, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, **environment})


@pytest.fixture
def figures(tmp_path):
    """A copy of the recorded figures, to be drawn beside and added to."""
    return Path(shutil.copytree(Path(__file__).parent / "recorded_bench", tmp_path / "figures"))


def curves(file):
    """How many points each curve of a drawing has, by its label."""
    found = {}
    for group in ElementTree.parse(file).iter(f"{SVG}g"):
        if group.get("id", "").startswith("gnuplot_plot_"):
            label = next(group.iter(f"{SVG}text")).text
            found[label] = len(list(group.iter(f"{SVG}use"))) - 1  # one is the key's
    return found


@needs_gnuplot
def test_draws_what_was_measured(figures):
    done = plot(figures)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert {Path(line).name for line in done.stdout.splitlines()} == {f"{p}.svg" for p in PLOTS}
    assert curves(figures / "latency.svg") == {"cpu p50": 2, "cpu p99": 2}
    assert curves(figures / "throughput.svg") == {"cpu": 2}
    assert curves(figures / "channels.svg") == {"cpu": 1}
    assert curves(figures / "end_to_end.svg") == {"cpu, 1 threads": 1, "bare echo, 1 threads": 1}


@needs_gnuplot
def test_a_back_end_is_a_curve(figures):
    for file in list(figures.glob("*-cpu-*.json")):
        run = json.loads(file.read_text())
        run.get("options", run)["backend"] = "graph"
        (figures / file.name.replace("cpu", "graph")).write_text(json.dumps(run))
    assert plot(figures).returncode == 0
    assert curves(figures / "throughput.svg") == {"cpu": 2, "graph": 2}
    assert curves(figures / "end_to_end.svg") == {
        "cpu, 1 threads": 1, "graph, 1 threads": 1, "bare echo, 1 threads": 1}


@needs_gnuplot
def test_leaves_out_what_was_not_measured(figures):
    (figures / "end_to_end-cpu-t1-d16.json").unlink()
    (figures / "gpu_hop-cpu-c1-d1.json").unlink()
    done = plot(figures)
    assert done.returncode == 0, done.stderr
    drawn = {Path(line).stem for line in done.stdout.splitlines()}
    assert drawn == PLOTS - {"end_to_end", "latency"}


@needs_gnuplot
def test_a_folder_without_figures_is_an_error(tmp_path):
    done = plot(tmp_path)
    assert done.returncode == 1
    assert "no figures" in done.stderr


def test_says_what_it_needs(figures, tmp_path):
    """Without gnuplot it prints one line, with the way to get it."""
    done = plot(figures, PATH=str(tmp_path))
    assert done.returncode == 1
    assert "scripts/setup bench" in done.stderr
