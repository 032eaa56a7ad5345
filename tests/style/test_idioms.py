"""scripts/checks/idioms finds idioms in each kind of text, and none in good English."""
import pytest
from test_checks import plant, run, tree  # noqa: F401


@pytest.mark.parametrize("sentence, idiom", [
    ("It is for who reads it.", "for who"),
    ("Print this and leave", "leave"),
    ("It leaves the slot empty, and leaves out the rest.", None),
    ("It waits for so long.", "so long"),
    ("It waits so long as the peer lives, and so many times that it is late.", None),
    ("Refuses sizes that are none.", "are none"),
    ("Returns null if there is none.", None),
    ("The thread is to close it.", "is to"),
    ("The way to do it is to wait.", None),
    ("The limit is to the right of the value.", None),
    ("The rest is read by nobody.", "nobody"),
    ("It has a queue of its own.", "of its own"),
    ("It has a queue of its own in memory.", "of its own"),
    ("It reads the memory of its own attachment.", None),
    ("What it is.", "What"),
    ("What is it?", None),
    ("Whether it reads.", "Whether"),
    ("Whether it reads or writes, it holds the lock.", None),
    ("Of a client, the address.", "Of"),
    ("Of these, two work.", None),
    ("As flush(), of all slots.", "As flush(), of"),
    ("As it ends, it frees the slot.", None),
    ("The connection came to nothing.", "came to nothing"),
    ("It connects anew.", "anew"),
    ("Mended in place of replaced.", "in place of"),
    ("It is to be mended.", "is to"),
])
def test_idioms_knows_them_from_good_english(tree, sentence, idiom):
    plant(tree, "lib/core/planted.hpp", f'#pragma once\n\nlog("{sentence}");\n')
    _, output = run("idioms", "--list", tree)
    finding = f"lib/core/planted.hpp:3: user-visible text: '{idiom}': "
    assert finding in output if idiom else "planted.hpp" not in output, output


@pytest.mark.parametrize("path, text, kind", [
    ("lib/core/bad.hpp", "// Waits for so\n// long.\n\n", "comments"),
    ("lib/core/bad.hpp", "int a;  ///< of its own\n", "comments"),
    ("tests/bad.py", 'def bad():\n    """Nobody waits."""\n', "comments"),
    ("scripts/bad", "#!/bin/sh\n# Nobody waits.\n", "comments"),
    ("docs/bad.md", "Nobody waits.\n", "docs"),
    ("docs/bad.md", "| who | connects anew |\n", "docs"),
    ("apps/server/bad.cpp", 'log("for so "\n    "long");\n', "user-visible text"),
    ("scripts/bad", '#!/bin/sh\necho "connect anew"\n', "user-visible text"),
    ("deploy/bad.yml", "# Nobody waits.\n", "user-visible text"),
    ("tests/bad.cpp", 'log("Nobody waits");\n', None),
    ("docs/bad.md", "```\nNobody waits\n```\n`nobody`\n", None),
])
def test_idioms_counts_each_kind_below_its_bound(tree, path, text, kind):
    plant(tree, path, text * 2000)  # beyond every bound, which only falls
    status, output = run("idioms", tree)
    assert (status == 0) == (kind is None), output
    assert (f"idioms: {kind}: 2000 of " in output) == (kind is not None), output
