"""scripts/release: the same commit gives the same bytes in two folders, "cut" writes the version everywhere, and
RPM packages have the files of the Debian ones."""
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The files that the script reads.
PARTS = ("CMakeLists.txt", "CHANGELOG.md", "clients/python", "debian", "deploy/kubernetes", "deploy/rpm", "scripts/release")
DAY = "2026-01-02"
SPEC = ROOT / "deploy/rpm/dpu-gpu-offload.spec"
# The folder in debian/*.install of each macro of the spec; longer macros come first.
FOLDERS = (("%{_sysconfdir}", "etc"), ("%{_unitdir}", "lib/systemd/system"), ("%{_bindir}", "usr/bin"),
           ("%{_mandir}", "usr/share/man"), ("%{_docdir}/%{name}", "usr/share/doc/dpu-gpu-offload"),
           ("%{_datadir}/zsh/site-functions", "usr/share/zsh/vendor-completions"), ("%{_datadir}", "usr/share"),
           ("%{_libdir}", "usr/lib/*"), ("%{_includedir}", "usr/include"))


def git(root, *words):
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
           for what, value in (("NAME", "a"), ("EMAIL", "a@example.org"), ("DATE", "2026-01-02T03:04:05Z"))}
    return subprocess.run(["git", *words], cwd=root, env={**os.environ, **who}, check=True, timeout=60, text=True,
                          stdout=subprocess.PIPE).stdout


def release(root, *words, python=sys.executable, umask=0o022, **environment):
    return subprocess.run([python, root / "scripts/release", *words], cwd=root, text=True, timeout=200, check=False,
                          umask=umask, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.fixture
def clone(tmp_path):
    """Returns a function that makes a repository with one commit in the folder of that name."""
    def make(name):
        root = tmp_path / name / "suite"
        for part in PARTS:
            (root / part).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
            else:
                shutil.copy2(ROOT / part, root / part)
        (root / ".gitignore").write_text("/build/\n")
        git(root, "init", "-q")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "all")
        return root
    return make


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_the_same_commit_gives_the_same_bytes(clone):
    found = []
    for name, zone, umask in (("one", "UTC", 0o022), ("a longer name", "Asia/Tokyo", 0o077)):
        root = clone(name)
        done = release(root, "build", umask=umask, TZ=zone)
        assert done.returncode == 0, done.stdout
        found.append(digests(root / "build/release-files"))
        assert all(path.stat().st_mode & 0o777 == 0o644 for path in (root / "build/release-files").iterdir())
    assert found[0] == found[1]
    assert sorted(re.sub(r"\d+\.\d+\.\d+", "V", name) for name in found[0]) == [
        "SHA256SUMS", "dpu-gpu-offload-V.spdx.json", "dpu-gpu-offload-V.tar.gz", "dpu_gpu_offload_client-V-py3-none-any.whl"]
    assert git(root, "tag") == ""


def test_a_python_without_wheel_is_not_used(clone, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True, timeout=60)
    bare = tmp_path / "bare/bin/python3"
    done = release(clone("one"), "build", python=bare)
    assert done.returncode == 0, done.stdout
    (tmp_path / "wheel.py").write_text("raise ImportError")
    done = release(clone("two"), "build", python=bare, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert re.search(r"^release: neither \S+ nor /usr/bin/python3 has pip, setuptools and wheel: .*setup", done.stdout, re.MULTILINE)


def test_the_files_are_what_they_say(clone):
    root = clone("one")
    assert release(root, "build", "files").returncode == 0
    folder = root / "files"
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True, timeout=60)
    assert len((folder / "SHA256SUMS").read_text().splitlines()) == 3
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        names = {re.sub("^[^/]*/", "", name) for name in archive.getnames()}
    assert set(git(root, "ls-files").split()) <= names
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        assert "offload_client/py.typed" in wheel.namelist()
    [file] = folder.glob("*.spdx.json")
    document = json.loads(file.read_text())
    packages = {each["SPDXID"]: each for each in document["packages"]}
    assert len(packages) == len(document["packages"])
    assert {"dpu-gpu-offload", "libssl-dev", "libfmt-dev"} <= {each["name"] for each in packages.values()}
    assert all(relation[end] in {*packages, "SPDXRef-DOCUMENT"} for relation in document["relationships"]
               for end in ("spdxElementId", "relatedSpdxElement"))


# It stands for the script that builds packages; those of two suites have the same names, as the real ones.
BUILDER = """#!/bin/sh
for suite; do :; done
rm -rf "build/system/$suite/packages"
mkdir -p "build/system/$suite/packages"
cd "build/system/$suite/packages"
echo "$suite $3" >"offload_$3.deb"
[ "$4" != --cuda ] || touch dpu-gpu-offload-worker-cuda_1.deb
"""


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize("native, folders, reasons", [
    ("amd64", {"bookworm-amd64", "bookworm-arm64", "trixie-amd64", "trixie-arm64"}, set()),
    ("arm64", {"bookworm-arm64", "trixie-arm64"}, {"packages for bookworm amd64", "packages for trixie amd64"})])
def test_packages_that_this_machine_cannot_build_are_named(clone, tmp_path, native, folders, reasons):
    root = clone("one")
    program(root / "scripts/try-system", BUILDER)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "builder")
    programs = tmp_path / "programs"
    programs.mkdir()
    program(programs / "dpkg", f"#!/bin/sh\necho {native}\n")
    cuda = set()
    if os.access("/usr/local/cuda/bin/nvcc", os.X_OK):
        cuda = {f"{suite}-{native}-cuda" for suite in ("bookworm", "trixie")}
    else:
        reasons = {*reasons, "dpu-gpu-offload-worker-cuda"}
    git(root, "config", "user.name", "a")
    git(root, "config", "user.email", "a@example.org")
    assert release(root, "cut", "--version", "7.8.9", "--date", DAY).returncode == 0
    git(root, "commit", "-q", "-a", "-m", "cut")
    done = release(root, "build", "--packages", "--tag", PATH=f"{programs}:/usr/bin:/bin")
    assert done.returncode == (3 if reasons else 0), done.stdout
    assert git(root, "tag") == ("" if reasons else "v7.8.9\n")
    folder = root / "build/release-files"
    assert {path.name for path in folder.iterdir() if path.is_dir()} == folders | cuda
    assert all(os.listdir(folder / each) == ["dpu-gpu-offload-worker-cuda_1.deb"] for each in cuda)
    for each in folders:
        suite, architecture = each.split("-")
        assert os.listdir(folder / each) == [f"offload_{architecture}.deb"]
        assert (folder / each / f"offload_{architecture}.deb").read_text() == f"{suite} {architecture}\n"
    assert set(re.findall(r"^release: not built: (.*?):", done.stdout, re.MULTILINE)) == reasons
    [file] = folder.glob("*.spdx.json")
    identifiers = [each["SPDXID"] for each in json.loads(file.read_text())["packages"]]
    assert len(set(identifiers)) == len(identifiers)


def test_packages_are_those_of_the_commit(clone):
    root = clone("one")
    program(root / "scripts/try-system", f"""#!/bin/sh
for suite; do :; done
mkdir -p "build/system/$suite/packages"
cp debian/control "build/system/$suite/packages/offload_$3.deb"
echo changed >>"{root}/debian/control"
""")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "builder")
    assert release(root, "build", "--packages").returncode in (0, 3)
    committed = git(root, "show", "HEAD:debian/control")
    packages = list((root / "build/release-files").glob("*/offload_*.deb"))
    assert packages and all(path.read_text() == committed for path in packages)


def test_an_interrupted_build_ends_its_builder_and_leaves_no_folder(clone, tmp_path):
    root = clone("one")
    program(root / "scripts/try-system", f"""#!/bin/sh
trap 'touch "{tmp_path}/ended"; exit 143' TERM
touch "{tmp_path}/started"
for each in $(seq 600); do sleep 0.1; done
""")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "builder")
    with subprocess.Popen([sys.executable, root / "scripts/release", "build", "--packages"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as started:
        limit = time.monotonic() + 60
        while not (tmp_path / "started").exists():
            assert time.monotonic() < limit and started.poll() is None
            time.sleep(0.01)
        second = release(root, "build", "--packages")
        assert second.returncode == 1 and "another 'scripts/release build --packages' uses" in second.stdout
        started.send_signal(signal.SIGTERM)
        assert started.wait(60) == 130
        assert started.stdout.read() == "release: interrupted\n"
    assert (tmp_path / "ended").exists()
    assert [path.name for path in (root / "build").iterdir() if "release-files" in path.name] == []


def test_cut_writes_the_version_everywhere_and_a_tag_needs_it(clone):
    root = clone("one")
    refused = release(root, "build", "--tag")
    assert refused.returncode == 1 and "has no heading for" in refused.stdout
    done = release(root, "cut", "--version", "7.8.9", "--date", DAY)
    assert done.returncode == 0, done.stdout
    log = (root / "CHANGELOG.md").read_text()
    assert f"## [Unreleased]\n\n## [7.8.9] - {DAY}\n\n### " in log and "To become" not in log
    assert "dpu-gpu-offload (7.8.9) unstable;" in (root / "debian/changelog").read_text().splitlines()[0]
    assert "UNRELEASED" not in (root / "debian/changelog").read_text()
    subprocess.run(["dpkg-parsechangelog", "-l", root / "debian/changelog"], check=True, timeout=60)
    unclean = release(root, "build")
    assert unclean.returncode == 1 and "the working tree has changes" in unclean.stdout
    git(root, "commit", "-q", "-a", "-m", "cut")
    done = release(root, "build", "--tag")
    assert done.returncode == 0, done.stdout
    assert git(root, "tag") == "v7.8.9\n"
    assert "dpu-gpu-offload-7.8.9.tar.gz" in digests(root / "build/release-files")
    assert release(root, "cut", "--version", "7.8.9").returncode == 1
    again = release(root, "build", "--tag")
    assert again.returncode == 1 and "the tag v7.8.9 exists" in again.stdout
    assert release(root, "cut", "--date", "2026-02-30").returncode == 2


def test_a_file_with_another_version_is_refused(clone):
    root = clone("one")
    path = root / "clients/python/pyproject.toml"
    path.write_text(re.sub(r'^version = .*$', 'version = "0.0.9"', path.read_text(), flags=re.MULTILINE))
    git(root, "commit", "-q", "-a", "-m", "another")
    done = release(root, "build")
    assert done.returncode == 1 and "pyproject.toml has 0.0.9: run 'scripts/release cut'" in done.stdout


def debian_path(line):
    """Returns the path of a line of %files as debian/*.install has it, and whether it is a file of options."""
    is_config = line.startswith("%config(noreplace) ")
    path = line.removeprefix("%config(noreplace) ")
    for macro, folder in FOLDERS:
        if path.startswith(macro):
            path = folder + path.removeprefix(macro)
            break
    assert "%" not in path, line
    return path.removesuffix("*") if "/man/" in path else path, is_config


def debian_name(arguments):
    """Returns the name of the Debian package for the arguments of %files."""
    name = arguments.removeprefix("-n ").replace("%{name}", "dpu-gpu-offload").replace("%{worker}", "worker")
    if not arguments.startswith("-n "):
        name = f"dpu-gpu-offload-{name}"
    # A library has the number of its interface in its name only there.
    return re.sub("-devel$", "-dev", re.sub("-client$", "-client0", name))


def test_rpm_and_debian_packages_have_the_same_files():
    spec = {}
    for arguments, body in re.findall(r"^%files (.*)\n((?:.+\n)*)", SPEC.read_text(), re.MULTILINE):
        paths = [debian_path(line) for line in body.splitlines() if line != "%license LICENSE"]
        for path, is_config in paths:
            assert is_config == path.startswith("etc/"), path
        spec[debian_name(arguments)] = sorted(path for path, _ in paths)
    debian = {path.stem: sorted(path.read_text().split()) for path in (ROOT / "debian").glob("*.install")}
    assert spec == debian


def test_rpm_packages_need_the_packages_that_debian_packages_need():
    control = (ROOT / "debian/control").read_text()
    for package in re.findall(r"^Package: (dpu-gpu-offload-\S+|lib\S+-dev)$", control, re.MULTILINE):
        part = control.partition(f"Package: {package}\n")[2].partition("\n\n")[0]
        for needed in re.findall(r"(dpu-gpu-offload-tools|libdpu-gpu-offload-client0) \(= ", part):
            needed = needed.replace("dpu-gpu-offload", "%{name}").removesuffix("0")
            name = package.removeprefix("dpu-gpu-offload-").replace("dpu-gpu-offload", "%{name}")
            name = re.sub("-dev$", "-devel", re.sub("^worker.*", "%{worker}", name))
            section = re.search(rf"^%package (?:-n )?{re.escape(name)}\n(.*?)^%description", SPEC.read_text(), re.MULTILINE | re.DOTALL)
            assert f"Requires: {needed} = %{{version}}-%{{release}}" in section[1], package
