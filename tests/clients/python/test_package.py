"""The Python client as a package: types, installation, version."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CLIENT = ROOT / "clients/python"


def run(*words, **options):
    done = subprocess.run([*map(str, words)], text=True, timeout=300, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


def version_of(module):
    """Returns the module's major version, -1 if it is not installed."""
    done = subprocess.run([sys.executable, "-c", f"import {module}; print({module}.__version__)"],
                          text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return int(done.stdout.partition(".")[0] or 0) if done.returncode == 0 else -1


def test_types(tmp_path):
    mypy = shutil.which("mypy")
    if mypy is None:
        pytest.skip("mypy is not installed")
    run(mypy, "--strict", "--cache-dir", tmp_path, "src", "examples", cwd=CLIENT)


def test_installed_by_pip(tmp_path):
    missing = [f"{name} {least}" for name, least in (("pip", 19), ("setuptools", 61), ("wheel", 0))
               if version_of(name) < least]
    if missing:
        pytest.skip(f"Python has no {' and no '.join(missing)}, or an older one")
    # A build writes files into its source folder.
    source = shutil.copytree(CLIENT, tmp_path / "source")
    target = tmp_path / "target"
    run(sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation",
        "--disable-pip-version-check", "--target", target, source)
    installed = {path.relative_to(target / "offload_client").as_posix()
                 for path in (target / "offload_client").rglob("*") if "__pycache__" not in path.parts}
    assert installed == {path.name for path in (CLIENT / "src/offload_client").iterdir()
                         if path.is_file()}
    assert "py.typed" in installed
    where = run(sys.executable, "-c", "import offload_client; print(offload_client.__file__)",
                cwd=tmp_path, env={"PYTHONPATH": str(target)})
    assert where.strip() == str(target / "offload_client/__init__.py")
    metadata, = target.glob("*.dist-info/METADATA")
    fields = re.findall(r"^([\w-]+): (.*)", metadata.read_text().partition("\n\n")[0], re.MULTILINE)
    for field in (("Requires-Python", ">=3.9"), ("Description-Content-Type", "text/markdown"), ("License-File", "LICENSE"),
                  ("Author", "dpu-gpu-offload maintainers"), ("Classifier", "Programming Language :: Python :: 3.9"),
                  ("Classifier", "License :: OSI Approved :: Apache Software License"), ("Classifier", "Typing :: Typed")):
        assert field in fields
    licence, = metadata.parent.rglob("LICENSE")
    assert licence.read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_version_is_the_suites():
    """No other package has to be installed."""
    project = (CLIENT / "pyproject.toml").read_text()
    suite = re.search(r"project\(\S+ VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert f'\nversion = "{suite}"\n' in project
    assert "dependencies" not in project
