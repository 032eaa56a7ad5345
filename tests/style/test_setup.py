"""scripts/setup upgrades no installed package that it need not upgrade: the real apt, on a separate system. And
scripts/fresh-root takes the machine's apt sources."""
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "scripts" / "setup"
pytestmark = pytest.mark.skipif(not shutil.which("apt-get"), reason="needs apt: no Debian or Ubuntu")
NATIVE = os.fsdecode(subprocess.run(("dpkg", "--print-architecture"), check=True,
                                    stdout=subprocess.PIPE).stdout).strip() if shutil.which("dpkg") else ""


def package(name, version, source=None, depends=None, status=""):
    lines = [f"Package: {name}", f"Version: {version}", f"Architecture: {NATIVE}", "Maintainer: nobody <a@b.invalid>",
             "Description: none", "Section: admin", "Priority: optional"]
    lines += [f"Source: {source}"] * bool(source) + [f"Depends: {depends}"] * bool(depends)
    lines += [f"Status: {status}"] if status else [f"Filename: {name}_{version}.deb", "Size: 1", "SHA256: " + "0" * 64]
    return "\n".join(lines) + "\n\n"


def installed(name, version, **more):
    return package(name, version, status="install ok installed", **more)


@pytest.fixture
def setup(tmp_path):
    """A function that runs setup in a world where `here` is installed and the archive has `archive`."""
    for folder in ("dpkg/updates", "dpkg/info", "state/lists/partial", "cache/archives/partial", "etc/preferences.d",
                   "archive", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "etc/sources.list").write_text(f"deb [trusted=yes] file:{tmp_path}/archive ./\n")
    (tmp_path / "apt.conf").write_text(f"""APT::Architecture "{NATIVE}";
APT::Architectures {{ "{NATIVE}"; }};
APT::Get::Simulate "true";
APT::Sandbox::User "root";
Dir::State "{tmp_path}/state";
Dir::State::status "{tmp_path}/dpkg/status";
Dir::Cache "{tmp_path}/cache";
Dir::Etc "{tmp_path}/etc";
""")
    sudo = tmp_path / "bin/sudo"
    sudo.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    sudo.chmod(0o755)
    environment = {**os.environ, "APT_CONFIG": f"{tmp_path}/apt.conf", "DPKG_ADMINDIR": f"{tmp_path}/dpkg",
                   "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "LC_ALL": "C"}

    def run(here, archive, *options):
        (tmp_path / "dpkg/status").write_text("".join(here))
        (tmp_path / "archive/Packages").write_text("".join(archive))
        subprocess.run(("apt-get", "-q", "update", "-o", "APT::Get::Simulate=false"), env=environment, check=True,
                       timeout=60, stdout=subprocess.DEVNULL)
        return subprocess.run((SETUP, *options), env=environment, text=True, timeout=120, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return run


SYSTEM = [installed("systemd", "252.1"), installed("perl", "5.1")]
ARCHIVE = [package("systemd", "252.1"), package("systemd", "252.2"), package("perl", "5.2")]
ARCHIVE += [package("systemd-container", version, source="systemd", depends=f"systemd (= {version})")
            for version in ("252.1", "252.2")]


def others(setup, *missing):
    """All packages of "setup package" as installed ones, but these."""
    names = setup(SYSTEM, [], "--check", "package").stdout.partition("missing: ")[2].split()
    assert set(missing) < set(names)
    return SYSTEM + [installed(name, "1") for name in names if name not in missing]


def test_takes_the_version_that_needs_no_upgrade(setup):
    done = setup(others(setup, "systemd-container"), ARCHIVE, "package")
    assert done.returncode == 0, done.stdout
    assert "Inst systemd-container (252.1 " in done.stdout
    assert "Inst systemd " not in done.stdout


def test_says_what_it_has_to_upgrade_and_leaves_the_rest(setup):
    archive = ARCHIVE + [package("lintian", "1", depends="perl (>= 5.2)")]
    done = setup(others(setup, "systemd-container", "lintian"), archive, "package")
    assert done.returncode == 0, done.stdout
    assert "lintian cannot be installed beside the installed versions of: perl; upgrading these" in done.stdout
    assert "Inst perl [5.1] (5.2 " in done.stdout
    assert "Inst systemd-container (252.1 " in done.stdout
    assert "Inst systemd " not in done.stdout


def test_fails_if_a_package_is_nowhere(setup):
    done = setup(others(setup, "lintian"), ARCHIVE, "package")
    assert done.returncode != 0
    assert "lintian" in done.stdout


DEBIAN = "ID=debian\n" in Path("/etc/os-release").read_text()


@pytest.mark.skipif(os.geteuid() != 0 or not DEBIAN, reason="needs root on Debian")
def test_a_fresh_system_has_the_machines_mirror_and_proxy(tmp_path):
    mmdebstrap = tmp_path / "mmdebstrap"
    mmdebstrap.write_text('#!/bin/sh\nfor each; do case $each in --aptopt=*) cat "${each#*=}" ;; esac; done\n'
                          'cat "$each"\n')
    mmdebstrap.chmod(0o755)
    (tmp_path / "apt.conf").write_text('Acquire::http::Proxy "http://proxy.invalid:3142";\n')
    environment = {**os.environ, "APT_CONFIG": f"{tmp_path}/apt.conf", "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def made_of(suite):
        text = subprocess.run((SETUP.parent / "fresh-root", suite, tmp_path / "system"), env=environment, text=True,
                              check=True, timeout=60, stdout=subprocess.PIPE).stdout
        return "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    own = subprocess.run("(. /etc/os-release; printf $VERSION_CODENAME)", shell=True, text=True, check=True,
                         stdout=subprocess.PIPE).stdout
    assert own in made_of("own")
    another = made_of("another")
    assert "another" in another and own not in another
    assert 'Acquire::http::Proxy "http://proxy.invalid:3142";' in another


def can_mount():
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], stderr=subprocess.DEVNULL, check=False).returncode == 0


@pytest.mark.skipif(not DEBIAN or not can_mount(), reason="needs Debian and the right to mount")
def test_a_fresh_system_has_mounts_of_its_own(tmp_path):
    mmdebstrap = tmp_path / "mmdebstrap"
    mmdebstrap.write_text("#!/bin/sh\nmkdir system\nmount -t tmpfs tmpfs system\ntouch system/file\nls system\n")
    mmdebstrap.chmod(0o755)
    done = subprocess.run((SETUP.parent / "fresh-root", "own", tmp_path / "system"), cwd=tmp_path, text=True, check=False,
                          env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, timeout=60, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (0, "file\n")
    assert list((tmp_path / "system").iterdir()) == [] and not (tmp_path / "system").is_mount()


@pytest.mark.skipif(not DEBIAN or not can_mount(), reason="needs Debian and the right to mount")
def test_an_interruption_ends_what_makes_a_fresh_system(tmp_path):
    """mmdebstrap notes SIGTERM, and goes on."""
    mmdebstrap = tmp_path / "mmdebstrap"
    mmdebstrap.write_text("#!/bin/sh\ntrap '' TERM\necho started\nfor each in $(seq 600); do sleep 0.1; done\n")
    mmdebstrap.chmod(0o755)
    with subprocess.Popen((SETUP.parent / "fresh-root", "own", tmp_path / "system"), text=True, stdout=subprocess.PIPE,
                          env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}) as making:
        assert making.stdout.readline() == "started\n"
        making.terminate()
        rest, _ = making.communicate(timeout=30)  # until no process has the pipe
    assert (making.returncode, rest) == (143, "")


# It stands for mmdebstrap, and says what it finds at its end.
FRESH_ROOT = """#!/bin/sh
mkdir -p "$2"
trap 'ls -d "$2" >ended; exit 1' TERM
touch started
for each in $(seq 600); do sleep 0.1; done
"""


@pytest.fixture
def try_system(tmp_path):
    """Starts the script with a system that takes a minute, and returns it and the folder of the system."""
    (tmp_path / "scripts").mkdir()
    shutil.copy2(SETUP.parent / "try-system", tmp_path / "scripts")
    for name, text in (("setup", "#!/bin/sh\n"), ("fresh-root", FRESH_ROOT)):
        (tmp_path / "scripts" / name).write_text(text)
        (tmp_path / "scripts" / name).chmod(0o755)
    with subprocess.Popen((tmp_path / "scripts/try-system", "trixie"), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as started:
        limit = time.monotonic() + 60
        while not (tmp_path / "started").exists():
            assert time.monotonic() < limit and started.poll() is None
            time.sleep(0.01)
        yield started, tmp_path / "build/system/trixie/root"
        started.terminate()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_an_interrupted_trial_ends_what_it_runs_before_it_removes_the_system(try_system, tmp_path):
    started, system = try_system
    started.terminate()
    assert started.wait(60) == 143
    assert (tmp_path / "ended").read_text() == f"{system}\n"
    assert not system.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_two_trials_do_not_share_a_system(try_system, tmp_path):
    _, system = try_system
    other = subprocess.run((tmp_path / "scripts/try-system", "trixie"), text=True, check=False, timeout=60,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert other.returncode == 1 and other.stdout == f"try-system: {system.parent} is in use by another run\n"
    assert system.exists()
