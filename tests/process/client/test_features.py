"""The commands of docs/evidence/load-client-features.md, as they are printed there: each shows what its row says."""
import os
import re
import struct
import subprocess
import sys

import pytest

from harness import BIN, EXTENSIONS, PATIENCE, ROOT, SANITIZER_REPORT, TIME_FACTOR, free_port

sys.path.insert(0, str(ROOT / "tests/process/tls"))
from certificates import Authority, needs_openssl, own  # noqa: E402, in the folder above

PAGE = (ROOT / "docs/evidence/load-client-features.md").read_text()
# Stand-ins: ssh -o BatchMode=yes HOST COMMAND, to a host that is this one; curl --retry-connrefused URL.
STAND_INS = {"ssh": """#!/bin/sh
exec sh -c "$4"
""", "curl": f"""#!{sys.executable}
import sys, time, urllib.request
end = time.monotonic() + {PATIENCE}
while True:
    try:
        print(urllib.request.urlopen(sys.argv[-1]).read().decode())
        break
    except OSError:
        if time.monotonic() > end:
            raise
"""}


def spans(cell):
    return re.findall(r"`([^`]+)`", cell.replace(r"\|", "|"))


def rows():
    """Returns the name, the command and the texts that it shows, of each row."""
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) >= 3 and spans(cells[-2]):
            command, = spans(cells[-2])
            yield pytest.param(command, spans(cells[-1]), id=cells[0])


@pytest.fixture(name="place", scope="module")
def a_folder_with_the_servers(shared_stage, tmp_path_factory):
    """Returns a folder with the files that the commands read, and the ports that stand for those of the page."""
    server = shared_stage.server("--listen", "0=reverse", "--listen", "0=echo")
    shared_stage.worker()
    server.wait_for_log(r"listening on \S+", count=2)
    ports = re.findall(r"listening on \S+:(\d+) with", server.log)
    ours = Authority(tmp_path_factory.mktemp("ours"), "ours")
    socket = shared_stage.folder / "tls.sock"
    secure = shared_stage.server(*own(ours.issue("server", "IP:127.0.0.1")), comch=socket)
    shared_stage.worker(comch=socket)
    secure.wait_until_listening()
    ports = dict(zip(("12345", "12346", "12347", "12348"), [*ports, str(secure.port), str(free_port())]))
    folder = tmp_path_factory.mktemp("features")
    (folder / "ca.pem").write_bytes(ours.ca.read_bytes())
    frames = [struct.pack(">III", 12 + 3, kind, 3) + text for kind, text in ((4, b"abc"), (5, b"cba"))]
    (folder / "requests.bin").write_bytes(b"".join(frames))
    for name, text in re.findall(r"^`(\w+\.toml)`.*?^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        (folder / name).write_text(text.replace("12345", ports["12345"]))
    for name, text in STAND_INS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder, ports


def with_ports(command, ports):
    """Returns the command for the ports of the test; -p, whose default is the page's first port, included."""
    command = re.sub(r"\b1234[5-8]\b", lambda port: ports[port[0]], command)
    return re.sub(r"(offload-client -s 127\.0\.0\.1)(?! -p)", rf"\1 -p {ports['12345']}", command)


@needs_openssl
@pytest.mark.skipif("report" not in EXTENSIONS, reason="a build without the extension report")
@pytest.mark.parametrize("command, shown", rows())
def test_the_command_shows_the_feature(place, command, shown):
    folder, ports = place
    environment = {**os.environ, "PATH": f"{folder}:{BIN}:{os.environ['PATH']}"}
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    done = subprocess.run(["bash", "-c", with_ports(command, ports)], cwd=folder, env=environment, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60 * TIME_FACTOR)
    out = done.stdout.decode(errors="replace")
    # 3, 4: a busy machine. 5: its open loop is short.
    assert done.returncode in (0, 3, 4, 5) and not SANITIZER_REPORT.search(out), out
    for path in folder.iterdir():
        if path.is_file() and path.stat().st_mtime_ns != before.get(path):
            out += path.read_text(errors="replace")
    assert shown and [text for text in shown if text not in out] == [], out


def test_the_page_has_every_feature():
    """28 features of other load clients, and six more."""
    tables = PAGE.split("\n## ")[1:]
    counts = [len(re.findall(r"^\| .*`.*\|$", table, re.MULTILINE)) for table in tables]
    assert counts == [28, 6]
    assert len(list(rows())) == 34
