"""Fixtures of all process tests."""
import resource

import pytest

pytest.register_assert_rewrite("harness", "wire", "control", "open_metrics", "asker", "results")

from harness import BIN, Stage  # noqa: E402, after the line above


def pytest_sessionstart():
    for name in ("offload-server", "offload-worker", "offload-client"):
        if not (BIN / name).exists():
            pytest.exit(f"{BIN / name} is not there: build it, or set OFFLOAD_BIN_DIR", 2)
    # A thousand connections have two ends, one of them in this process.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@pytest.fixture
def stage():
    """Yields an empty stage for one test."""
    with_programs = Stage()
    yield with_programs
    with_programs.close()


@pytest.fixture(scope="module")
def shared_stage():
    """Yields a stage that the tests of a file share."""
    with_programs = Stage()
    yield with_programs
    with_programs.close()
