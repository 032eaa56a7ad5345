"""Completion at the Tab key by bash, zsh and fish, made from the programs' help."""
import os
import shutil
import subprocess

import pytest

from harness import BIN, EXTENSIONS, ROOT

LIBRARY = "/usr/share/bash-completion/bash_completion"

# Each prints the words that complete the last one of its arguments.
SCRIPTS = {
    "bash": f"""
      source {LIBRARY}
      source {ROOT}/deploy/completion/offload
      COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${{#COMP_LINE}}
      _offload
      printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    # Its completion system needs a terminal: these two functions stand for its own.
    "zsh": f"""
      words=("$@") CURRENT=$# PREFIX=${{@[-1]}}
      compadd() {{ shift; for word in "$@"; do [[ $word == $PREFIX* ]] && print -r -- $word; done }}
      _files() {{ print -rl -- $PREFIX*(N) }}
      offer() {{ source {ROOT}/deploy/completion/offload.zsh }}
      offer || true
    """,
    "fish": f"""
      source {ROOT}/deploy/completion/offload.fish
      complete -C (string join ' ' -- $argv[2..-1])
    """,
}


def offered(shell, tmp_path, *words):
    """Returns the words that complete the last one."""
    done = subprocess.run([shell, "-c", SCRIPTS[shell], shell, *words], text=True, timeout=20, check=True, cwd=tmp_path,
                          env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}, stdout=subprocess.PIPE)
    return done.stdout.split()


@pytest.mark.parametrize("shell", [
    pytest.param("bash", marks=pytest.mark.skipif(not os.path.exists(LIBRARY), reason="needs bash-completion")),
    pytest.param("zsh", marks=pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")),
    pytest.param("fish", marks=pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")),
])
@pytest.mark.parametrize("words, answer", [
    (("offload-server", "--tls-c"), ["--tls-certificate", "--tls-client-ca", "--tls-client-crl"]),
    (("offload-server", "--service", ""), ["reverse", "echo", "crc32c"]),
    (("offload-worker", "--backend", "c"), ["cuda", "cpu"]),
    (("offload-bench", "--ju"), ["--junit"]),
    (("offload-server", "-p", ""), []),
    (("offload-server", "--tls-key", "ke"), ["key.pem"]),
    *([(("offload-report", "com"), ["compare"]),
       (("offload-report", "html", "--out"), ["--output"]),
       (("offload-report", "html", "re"), ["result.json"])] if "report" in EXTENSIONS else []),
])
def test_completes(tmp_path, shell, words, answer):
    for name in ("key.pem", "result.json"):
        (tmp_path / name).touch()
    assert sorted(offered(shell, tmp_path, *words)) == sorted(answer)
