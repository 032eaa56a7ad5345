"""scripts/test-results: what the last line of scripts/test counts."""
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts/test-results"

CTEST = """<testsuite tests="7" failures="1" disabled="1" skipped="3">
<testcase name="Ring.Fills" status="run"/>
<testcase name="Ring.Empties" status="fail"><failure message=""/></testcase>
<testcase name="Ring.Locks" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>[ RUN      ] Ring.Locks
/tests/ring_test.cpp:7: Skipped
no RDMA device here

[  SKIPPED ] Ring.Locks (0 ms)
</system-out></testcase>
<testcase name="check.tidy" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>tidy: skipped, as it takes clang-tidy 14</system-out></testcase>
<testcase name="pool_test_NOT_BUILT" status="notrun"><skipped message="Unable to find executable"/></testcase>
<testcase name="Ring.Sleeps" status="disabled"><skipped message="Disabled"/></testcase>
<testcase name="process.test_traffic" status="run"/>
</testsuite>"""

PYTEST = """<testsuites><testsuite tests="5" failures="0" errors="0" skipped="3">
<testcase name="a"/><testcase name="b"/>
<testcase name="c"><skipped message="no GPU: cudaErrorNoDevice">x.py:3: no GPU</skipped></testcase>
<testcase name="d"><skipped message="no GPU: cudaErrorNoDevice">x.py:3: no GPU</skipped></testcase>
<testcase name="e"><skipped message="not root">x.py:9: not root</skipped></testcase>
</testsuite></testsuites>"""


def test_every_skip_is_counted_and_named(tmp_path):
    (tmp_path / "ctest.xml").write_text(CTEST)
    (tmp_path / "process.test_traffic.xml").write_text(PYTEST)
    done = subprocess.run([SCRIPT, tmp_path / "ctest.xml", tmp_path], text=True, timeout=60,
                          stdout=subprocess.PIPE, check=True)
    assert done.stdout.splitlines() == [
        "3 passed, 2 failed, 6 skipped",
        "failed: Ring.Empties",
        "failed: pool_test_NOT_BUILT",
        "skipped: Ring.Locks: no RDMA device here",
        "skipped: check.tidy: tidy: skipped, as it takes clang-tidy 14",
        "skipped: Ring.Sleeps: no reason was printed",
        "skipped: process.test_traffic: no GPU: cudaErrorNoDevice (2 cases)",
        "skipped: process.test_traffic: not root",
    ]
