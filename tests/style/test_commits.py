"""Commits to a small repository, and sees that scripts/checks/commits finds messages that tell too little."""
import re
import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "scripts/checks/commits"


def git(tree, *arguments, **options):
    return subprocess.run(["git", "-C", tree, "-c", "user.name=A", "-c", "user.email=a@example.org",
                           "-c", "commit.gpgsign=false", *arguments],
                          text=True, capture_output=True, check=True, timeout=60, **options).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "an old one, as they once were")
    return tmp_path


def run(tree):
    """Runs the check as if it began with the first commit of the tree."""
    first = git(tree, "rev-list", "--max-parents=0", "HEAD")
    here = tree / "check"
    here.write_text(re.sub('^FIRST = "[^"]*"', f'FIRST = "{first}"', CHECK.read_text(), flags=re.M))
    here.chmod(0o755)
    done = subprocess.run([here, tree], text=True, capture_output=True, check=False, timeout=60)
    return done.returncode, done.stdout


@pytest.mark.parametrize("message", [
    "server: Reject frames longer than the limit\n\nThey were cut.",
    "lib/comch, apps/worker: Read the length once\n\nIt can change.",
    'Revert "server: Reject frames"\n\nThis reverts commit 1234567.',
    "x: " + "A" * 69 + "\n\nExactly as long as allowed.",
])
def test_a_good_message_passes(repository, message):
    git(repository, "commit", "--quiet", "--allow-empty", "-m", message)
    status, output = run(repository)
    assert status == 0 and "commits: 1 since" in output, output


@pytest.mark.parametrize("message, finding", [
    ("x: " + "A" * 70 + "\n\nWhy.", "73 characters"),
    ("Reject long frames\n\nWhy.", "does not begin with an area"),
    ("Server: Reject long frames\n\nWhy.", "does not begin with an area"),
    ("server: reject long frames\n\nWhy.", "an imperative"),
    ("server: Rejected long frames\n\nWhy.", "an imperative"),
    ("server: Rejecting long frames\n\nWhy.", "an imperative"),
    ("server: A limit of frames\n\nWhy.", "an imperative"),
    ("server: Reject long frames", "no body"),
])
def test_a_bad_message_is_found(repository, message, finding):
    git(repository, "commit", "--quiet", "--allow-empty", "-m", message)
    status, output = run(repository)
    assert status == 1 and finding in output, output


def test_a_merge_is_exempt(repository):
    main = git(repository, "rev-parse", "--abbrev-ref", "HEAD")
    git(repository, "checkout", "--quiet", "-b", "side")
    git(repository, "commit", "--quiet", "--allow-empty", "-m", "docs: Say it\n\nIt was not said.")
    git(repository, "checkout", "--quiet", main)
    git(repository, "merge", "--quiet", "--no-ff", "-m", "Merge branch side", "side")
    status, output = run(repository)
    assert status == 0 and "commits: 1 since" in output, output


def test_a_short_history_is_skipped(tmp_path):
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "docs: Begin\n\nSomewhere else.")
    done = subprocess.run([CHECK, tmp_path], text=True, capture_output=True, check=False, timeout=60)
    assert done.returncode == 77 and "skipped" in done.stdout
