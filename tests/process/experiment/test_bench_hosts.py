"""offload-bench with clients on several hosts, whose results offload-report merges."""
import json
import os
import re

import pytest
from bench import bench
from harness import BIN

# Stand-ins for ssh and a host: the command runs here, with a clock that is AHEAD seconds ahead. Its client translates
# the times, as this machine has one clock only. All other programs are the real ones.
SSH = """#!/bin/bash
[[ $1 == -o && $3 == host-* ]] || exit 255
export PATH="{folder}/$3:$PATH"
exec sh -c "$4"
"""
DATE = """#!/bin/bash
sleep {delay}
exec /bin/date -d "{ahead} seconds" "$@"
"""
CLIENT = """#!/usr/bin/env python3
import json, subprocess, sys
words = [f"--start-at={{float(word.split('=')[1]) - {ahead}:.6f}}" if word.startswith("--start-at=") else word
         for word in sys.argv[1:]]
done = subprocess.run(["{client}", *words], stdout=subprocess.PIPE)
result = json.loads(done.stdout)
result["machine"]["host"] = "far"
for run in result["runs"]:
    run["started_at_unix_s"] += {ahead}
print(json.dumps(result))
"""


def make_host(folder, name, ahead, delay=0):
    (folder / name).mkdir()
    for path, text in ((folder / "ssh", SSH.format(folder=folder)), (folder / name / "date", DATE.format(
            ahead=ahead, delay=delay)), (folder / name / "offload-client", CLIENT.format(
                ahead=ahead, client=BIN / "offload-client"))):
        path.write_text(text)
        path.chmod(0o755)


def soak_from(folder, stage, hosts):
    server, _ = stage.pair()
    text = (f'question = "soak"\ntime = "2s"\nhosts = {json.dumps(hosts)}\n'
            f'[base]\naddress = "127.0.0.1:{server.port}"\n[[load]]\nsize = 64\nmax-concurrent-messages = 2\n')
    return bench(folder, text, "-o", folder / "answer.json", path=f"{folder}:{BIN}:{os.environ['PATH']}")


def test_a_load_from_several_hosts_is_one_result(tmp_path, stage):
    make_host(tmp_path, "host-ahead", 100)
    make_host(tmp_path, "host-behind", -50)
    done = soak_from(tmp_path, stage, ["local", "host-ahead", "host-behind"])
    assert done.returncode == 0, done.out + done.log
    assert re.search(r"no errors in \d+ answers in 2\.\d s, from 3 hosts", done.out), done.out
    load = json.loads((tmp_path / "answer.json").read_text())["loads"][0]
    offsets = [host["clock_offset_seconds"] for host in load["hosts"]]
    assert offsets == pytest.approx([0, 100, -50], abs=0.05)
    (result,) = load["results"]
    run = result["result"]["runs"][0]
    parts = [json.loads(path.read_text())["runs"][0] for path in (tmp_path / "logs").glob("base-client-*.json")]
    assert len(parts) == 3 and run["operation_count"] == sum(part["operation_count"] for part in parts) > 0
    assert run["connections"] == 3


def test_a_clock_that_is_not_known_well_is_no_base_of_a_result(tmp_path, stage):
    make_host(tmp_path, "host-slow", 0, delay=0.05)
    done = soak_from(tmp_path, stage, ["local", "host-slow"])
    assert done.returncode == 3, done.out + done.log
    assert re.search(r"cannot be told: the clock of host-slow is known to \d+\.\d ms only, 10 is the most", done.out)


def test_a_host_that_cannot_be_reached_is_named(tmp_path, stage):
    make_host(tmp_path, "host-a", 0)
    done = soak_from(tmp_path, stage, ["elsewhere"])
    assert done.returncode == 1 and "elsewhere does not tell its time" in done.out, done.out
