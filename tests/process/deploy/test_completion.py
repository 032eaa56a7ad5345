"""Bash completion at the Tab key, made from the programs' help."""
import os
import subprocess

import pytest

from harness import BIN, EXTENSIONS, ROOT

LIBRARY = "/usr/share/bash-completion/bash_completion"
pytestmark = pytest.mark.skipif(not os.path.exists(LIBRARY), reason="needs bash-completion")


def offered(tmp_path, *words):
    """Returns the words that complete the last one."""
    script = f"""
      source {LIBRARY}
      source {ROOT}/deploy/completion/offload
      COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${{#COMP_LINE}}
      _offload
      printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script, "bash", *words], text=True, timeout=20, check=True, cwd=tmp_path,
                          env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}, stdout=subprocess.PIPE)
    return done.stdout.split()


@pytest.mark.parametrize("words, answer", [
    (("offload-server", "--tls-c"), ["--tls-certificate", "--tls-client-ca"]),
    (("offload-server", "--service", ""), ["reverse", "echo", "crc32c"]),
    (("offload-worker", "--backend", "c"), ["cuda", "cpu"]),
    (("offload-bench", "--ju"), ["--junit"]),
    (("offload-server", "-p", ""), []),
    (("offload-server", "--tls-key", "ke"), ["key.pem"]),
    *([(("offload-report", "com"), ["compare"]),
       (("offload-report", "html", "--out"), ["--output"]),
       (("offload-report", "html", "re"), ["result.json"])] if "report" in EXTENSIONS else []),
])
def test_completes(tmp_path, words, answer):
    for name in ("key.pem", "result.json"):
        (tmp_path / name).touch()
    assert sorted(offered(tmp_path, *words)) == sorted(answer)
