"""Plants links and paths in a small tree, and sees that scripts/checks/links finds those that lead to nothing."""
import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "scripts/checks/links"
PAGE = """# A page

## What it has: `one` and [two](other.md)

## Twice

## Twice

```
# no heading, and [no link](gone.md)
```
"""


@pytest.fixture
def tree(tmp_path):
    plant(tmp_path, "docs/guide/page.md", PAGE)
    plant(tmp_path, "docs/guide/other.md", "# Other\n")
    plant(tmp_path, "README.md", "[it](docs/guide/page.md#twice-1), [heading][page], `[code](gone.md)`\n\n"
          "[page]: docs/guide/page.md#what-it-has-one-and-two\n[site]: https://example.org/gone.md\n")
    plant(tmp_path, "lib/core/core.hpp", "// As docs/guide/page.md says.\n")
    return tmp_path


def plant(tree, path, text):
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text)


def run(tree):
    done = subprocess.run([CHECK, tree], text=True, timeout=200, capture_output=True, check=False)
    return done.returncode, done.stdout


def test_a_good_tree_passes(tree):
    status, output = run(tree)
    assert status == 0 and "links: 3 pages, 3 links, 0 that" in output, output


def test_an_empty_tree_is_no_success(tmp_path):
    assert run(tmp_path)[0] != 0


@pytest.mark.parametrize("path, text, finding", [
    ("docs/guide/new.md", "# New\n\n[it](gone.md)\n", "docs/guide/new.md:3: there is no gone.md"),
    ("docs/guide/new.md", "[it](page.md#once)\n", "docs/guide/new.md:1: there is no page.md#once"),
    ("docs/guide/new.md", "[it](page.md#twice-2)\n", "docs/guide/new.md:1: there is no page.md#twice-2"),
    ("docs/guide/new.md", "# New\n[it](#old)\n", "docs/guide/new.md:2: there is no #old"),
    ("docs/guide/new.md", "[it]\n\n[it]: gone.md\n", "docs/guide/new.md:3: there is no gone.md"),
    ("docs/guide/new.md", "[it](docs/guide/page.md)\n", "docs/guide/new.md:1: there is no docs/guide/page.md"),
    ("lib/core/new.hpp", "\n/// docs/page.md has it.\n", "lib/core/new.hpp:2: there is no docs/page.md"),
    ("scripts/new", "# docs/page.md\n", "scripts/new:1: there is no docs/page.md"),
    ("CHANGELOG.md", "- a thing ([page](docs/page.md))\n", "CHANGELOG.md:1: there is no docs/page.md"),
])
def test_what_leads_to_nothing_is_found(tree, path, text, finding):
    plant(tree, path, text)
    status, output = run(tree)
    assert status == 1 and finding in output.splitlines(), output
