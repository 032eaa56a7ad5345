"""Wrong command lines and wrong files of the load client: one clear line and exit status 2 or 1, before any load, and
an older result is unchanged."""
import pytest

from harness import free_port

RESULT = '{\n  "program": "offload-client",\n  "format": 1\n}\n'


@pytest.fixture(name="client_of")
def fixture_client_of(stage):
    """Returns a function that runs a client with --output at an older result, at a port where no server listens, and
    returns its only line of output. `schedule`: the content of its file."""
    path = stage.folder / "result.json"
    path.write_text(RESULT)

    def run(status, *options):
        client = stage.client(free_port(), "--output", path, *options)
        assert client.wait() == status, client.log
        assert client.out == "" and path.read_text() == RESULT
        assert list(stage.folder.glob("result*")) == [path]
        line, = client.log.splitlines()
        assert line.startswith("offload-client: ")
        return line
    return run


@pytest.mark.parametrize("options, hints", [
    (["--rate", "0"], ["--rate", "a rate from 0.001, such as 500, 20k or 1.5m"]),
    (["--rate", "20g"], ["--rate", "20g"]),
    (["--rate", "1k", "--schedule", "file"], ["--rate", "--schedule"]),
    (["--arrivals", "uniform"], ["--arrivals", "constant, poisson"]),
    (["--scan", "rate=1k,"], ["--scan", "rate=10k,20k,40k or depth=1,16,128"]),
    (["--scan", "depth=1,1.5"], ["--scan", "depth=1,16,128"]),
    (["--scan", "threads=1,2"], ["--scan", "threads=1,2"]),
    (["--search", "99:1ms", "--duration", "1s"], ["--search", "p99:500us"]),
    (["--search", "p100:1ms", "--duration", "1s"], ["--search", "p99:500us"]),
    (["--search", "p99:1ms"], ["--search", "--duration"]),
    (["--search", "p99:1ms", "--duration", "1s", "--repeat", "3"], ["--search", "--repeat"]),
    (["--mix", "64:90,64k"], ["--mix", "64:90,64k:10"]),
    (["--mix", "64:0"], ["--mix", "64:90,64k:10"]),
    (["--mix", "64:1", "--size", "64"], ["--mix", "--size"]),
    (["--uniform-size", "4k-64"], ["--uniform-size", "64-4k"]),
    (["--size", "64", "--payload", "constant:256"], ["--payload", "constant:BYTE"]),
    (["--on-error", "ignore"], ["--on-error", "stop, count"]),
    (["--deadline", "0"], ["--deadline", "1us"]),
    (["--reconnect-every", "0"], ["--reconnect-every", "from 1"]),
    (["--start-at", "tomorrow"], ["--start-at", "seconds since the epoch"]),
    (["--start-at", "1763879556000"], ["--start-at", "at most a day from now"]),
    (["--repeat", "0"], ["--repeat", "from 1 to 1000"]),
    (["--schedule", "file", "--search", "p99:1ms", "--duration", "1s"], ["--schedule", "--search"]),
    (["--schedule", "file", "--scan", "rate=1,2"], ["--schedule", "--scan rate"]),
    (["--schedule", "file", "-i", "10"], ["--schedule", "--iteration-count"]),
    (["--schedule", "file", "-m", "hello"], ["--schedule", "--message-string"]),
    (["--schedule", "file", "--arrivals", "poisson"], ["--schedule", "--arrivals"]),
], ids=" ".join)
def test_a_wrong_command_line(client_of, options, hints):
    line = client_of(2, *options)
    for hint in hints:
        assert hint in line


@pytest.mark.parametrize("content, hints", [
    ("0 64\nsoon 64\n", ["line 2", "soon 64", "0.25 or 1500us"]),
    ("0.5 64\n0.25 64\n", ["line 2", "before the offset of the previous line"]),
    ("0 64\n\n# and then\n1ms\n", ["line 4", "each line needs an offset and a size"]),
    ("0 17m\n", ["line 1", "17m", "a size up to 16m"]),
    ("-1 64\n", ["line 1", "-1 64"]),
    ("# nothing\n", ["it has no requests"]),
    ("", ["it has no requests"]),
    ("nan 64\n", ["line 1"]),
    ("0 64 64\n", ["line 1"]),
    ("0 \x1b[2J\x00\n", ["line 1"]),
], ids=range(10))
def test_a_wrong_schedule(client_of, stage, content, hints):
    path = stage.folder / "schedule"
    path.write_text(content)
    line = client_of(1, "--schedule", path)
    for hint in [str(path), *hints]:
        assert hint in line
    assert line.isprintable()


@pytest.mark.parametrize("content, hints", [
    ("64\nlarge\n", ["line 2", "'large' is not a size from 0 to 16m"]), ("", ["it has no sizes"]),
    ("64 64\n", ["line 1"])])
def test_a_wrong_file_of_sizes(client_of, stage, content, hints):
    path = stage.folder / "sizes"
    path.write_text(content)
    line = client_of(1, "--size-file", path)
    for hint in [str(path), *hints]:
        assert hint in line


@pytest.mark.parametrize("options", [
    ["--schedule", "{}"], ["--size-file", "{}"], ["--payload", "file:{}"]], ids=" ".join)
def test_a_file_that_is_not_there(client_of, stage, options):
    path = stage.folder / "nothing"
    line = client_of(1, *(word.format(path) for word in options))
    assert f"'{path}'" in line and "No such file or directory" in line
    line = client_of(1, *(word.format(stage.folder) for word in options))
    assert f"'{stage.folder}'" in line and "Is a directory" in line
