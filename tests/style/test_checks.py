"""Plants one fault after another in a small tree and sees that the check for it finds it."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("kernels", "lib/core", "lib/gpu", "lib/net", "lib/comch", "apps/client", "apps/server",
           "bench", "tests", "scripts", ".ci")

HEADER_SETS = f"""cmake_minimum_required(VERSION 3.25)
project(planted LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
add_library(offload_flags INTERFACE)
target_include_directories(offload_flags INTERFACE ${{PROJECT_SOURCE_DIR}}/lib ${{PROJECT_SOURCE_DIR}})
include({ROOT}/cmake/HeaderSets.cmake)
offload_header_set(lib)
offload_header_set(apps)
add_subdirectory({ROOT}/cmake/headers/kernels kernels)
"""

MUTANT = """# harm: none
# caught-by: core_test Core.Adds
--- a/lib/core/core.hpp
+++ b/lib/core/core.hpp
@@ -1,3 +1,3 @@
 #pragma once
 
-int core();
+int eroc();
"""


COVERED = "| A1 | to work | `lib/core` | works | test | CPU | `Good.Works`, `good_test`, `test_good.py::test_it` |\n"

WIRED = """# Wiring

## offload-good

| option | effect | test |
|---|---|---|
| `--good` | it is good | `test_good.py::test_it` |
| `--gpu` | none without one | no test: it needs a GPU |
"""
PROMISED = "| threat | promise | test |\n|---|---|---|\n| a | It holds | `Works`, `Good.*`, `test_it`, `good_test` |\n"


@pytest.fixture
def tree(tmp_path):
    """A tree in which every check passes: each folder one header, the server on top of comch."""
    for folder in FOLDERS:
        name = os.path.basename(folder)
        plant(tmp_path, f"{folder}/{name}.hpp", f"#pragma once\n\nint {name.strip('.')}();\n")
    plant(tmp_path, "apps/server/main.cpp",
          '#include "comch/comch.hpp"\n#include "kernels/kernels.hpp"\n#include "server.hpp"\n')
    plant(tmp_path, "lib/comch/channel.cpp", '#include <net/if.h>\n\n#include "net/net.hpp"\n')
    plant(tmp_path, "tests/CMakeLists.txt", "offload_unit_test(core_test SOURCES core_test.cpp)\n"
          "offload_unit_test(good_program SOURCES good_test.cpp LINKS good)\n")
    plant(tmp_path, "tests/process/CMakeLists.txt", "set(files good)\n")
    plant(tmp_path, "tests/core_test.cpp", "TEST(Core, Adds) {\n  EXPECT_EQ(core(), 1);\n}\n")
    plant(tmp_path, "tests/mutants/core-adds.patch", MUTANT)
    plant(tmp_path, "tests/mutants/equivalent", "lib/core/core.hpp: core is not called\n- int core();\n+ ;\n")
    plant(tmp_path, "scripts/hello", "#!/usr/bin/env bash\necho hello\n")
    plant(tmp_path, "CMakeLists.txt", HEADER_SETS)
    plant(tmp_path, "docs/reference/coverage.md", COVERED)
    plant(tmp_path, "docs/evidence/wiring.md", WIRED)
    plant(tmp_path, "docs/reference/security.md", PROMISED)
    plant(tmp_path, "tests/good_test.cpp", "TEST(Good, Works) {\n  EXPECT_EQ(good(), 1);\n}\n")
    plant(tmp_path, "tests/process/test_good.py", "def test_it():\n    pytest.skip('no spin')\n    assert it()\n")
    plant(tmp_path, "scripts/setup", "#!/usr/bin/env bash\necho spin\n")
    shutil.copytree(ROOT / "deploy/systemd", tmp_path / "deploy/systemd")
    for file in (".clang-format", "CMakePresets.json"):
        shutil.copy(ROOT / file, tmp_path)
    return tmp_path


def plant(tree, path, text):
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text)


def run(check, *arguments):
    """The exit status of a check over the tree, and all that it printed."""
    done = subprocess.run([ROOT / "scripts/checks" / check, *arguments], text=True, timeout=200,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode == 77:
        pytest.skip(done.stdout)
    return done.returncode, done.stdout


CHECKS = "coverage expectations layers format headers idioms mutants names shell sizes skips words spelling units".split()


@pytest.mark.parametrize("check", CHECKS)
def test_a_good_tree_passes(tree, check):
    status, output = run(check, tree)
    assert status == 0, output


@pytest.mark.parametrize("check", CHECKS)
def test_an_empty_tree_is_no_success(tmp_path, check):
    assert run(check, tmp_path)[0] != 0


@pytest.mark.parametrize("path, include, layers", [
    ("lib/core/up.hpp", '"net/net.hpp"', "lib/core may not include lib/net"),
    ("lib/core/angle.hpp", "<net/net.hpp>", "lib/core may not include lib/net"),
    ("lib/core/dots.hpp", '"../net/net.hpp"', "lib/core may not include lib/net"),
    ("lib/net/beside.cpp", '"gpu/gpu.hpp"', "lib/net may not include lib/gpu"),
    ("lib/comch/apart.cpp", '"gpu/gpu.hpp"', "lib/comch may not include lib/gpu"),
    ("kernels/up.cu", '"core/core.hpp"', "kernels may not include lib/core"),
    ("apps/client/other.cpp", '"apps/server/server.hpp"',
     "apps/client may not include apps/server"),
    ("lib/core/test.cpp", '"tests/tests.hpp"', "lib/core may not include tests"),
])
def test_layers_names_file_line_and_both_layers(tree, path, include, layers):
    plant(tree, path, f"// a comment\n#  include {include}\n")
    status, output = run("layers", tree)
    assert status == 1
    assert f"{path}:2: {layers} " in output
    assert "1 violations" in output


def test_layers_wants_every_folder_declared(tree):
    plant(tree, "lib/stray/stray.hpp", "#pragma once\n")
    status, output = run("layers", tree)
    assert status == 1
    assert "lib/stray/stray.hpp:1: lib/stray is in no declared layer" in output


@pytest.mark.parametrize("path, include, complaint", [
    ("transport/tcp/data.cpp", "comch/keys/key.hpp", None),
    ("transport/tcp/data.cpp", "comch/transport/tcp/data.hpp", None),
    ("transport/tcp/data.cpp", "comch/transport/data_connection.hpp", None),
    ("transport/tcp/data.cpp", "comch/transport/rdma/data.hpp",
     "lib/comch/transport/tcp may not include lib/comch/transport/rdma"),
    ("transport/data_connection.hpp", "comch/transport/tcp/data.hpp",
     "lib/comch/transport may not include lib/comch/transport/tcp"),
    ("transport/tcp/data.cpp", "comch/session/session.hpp",
     "lib/comch/transport/tcp may not include lib/comch/session"),
    ("proxy/proxy.cpp", "comch/session/session.hpp",
     "lib/comch/proxy may not include lib/comch/session"),
    ("transport/schemes.cpp", "comch/transport/tcp/data.hpp", None),
    ("address.cpp", "comch/transport/data_connection.hpp", None),
    ("address.hpp", "comch/transport/data_connection.hpp",
     "lib/comch/address may not include lib/comch/transport"),
    ("address.hpp", "comch/comch.hpp", "lib/comch/address may not include lib/comch"),
    ("unlisted/file.cpp", "comch/session/session.hpp", None),  # stands where its folder stands
    ("session/session.cpp", "comch/unlisted/file.hpp",
     "lib/comch/session may not include lib/comch"),
])
def test_layers_looks_into_folders_that_have_rows(tree, path, include, complaint):
    for header in ("keys/key", "session/session", "transport/data_connection",
                   "transport/tcp/data", "transport/rdma/data", "unlisted/file"):
        plant(tree, f"lib/comch/{header}.hpp", "#pragma once\n")
    plant(tree, f"lib/comch/{path}", f'#include "{include}"\n')
    status, output = run("layers", tree)
    assert (status == 0) == (complaint is None), output
    assert (f"lib/comch/{path}:1: {complaint}" if complaint else " 0 violations") in output


@pytest.mark.parametrize("path, text, found", [
    ("apps/server/ring.hpp", "namespace a {\n\nstruct Ring {};\n\n}\n", True),
    ("apps/server/ring.cpp", "namespace {\n\nenum class Ring : int {\n  one,\n};\n\n}\n", True),
    ("apps/server/ring.cpp", "template <class T>\nclass alignas(a::kLine) Ring final : Base<T>,\n  Other {};\n", True),
    ("apps/server/ring.hpp", "class Ring;\n\nenum class Ring : int;\n", False),
    ("apps/server/ring.cpp", "struct Owner {\n  struct Ring {};\n};\n", False),
    ("apps/server/ring.cpp", "struct Ring::State {};\n\ntemplate <>\nstruct Ring<int> {};\n", False),
    ("tests/ring.hpp", "struct Ring {};\n", False),
])
def test_names_finds_a_type_whose_name_another_file_has(tree, path, text, found):
    plant(tree, "kernels/ring.hpp", "/// A ring.\nclass Ring {\n};\n")
    plant(tree, path, text)
    status, output = run("names", tree)
    assert (status == 1) == found, output
    assert ("kernels/ring.hpp:2: Ring is also defined in apps/server/ring" in output) == found, output


def test_names_wants_no_exception_that_nothing_needs(tree):
    plant(tree, "apps/client/options.hpp", "struct Options {};\n")
    status, output = run("names", tree)
    assert status == 1 and "Options is defined in one file and needs no exception" in output
    plant(tree, "apps/server/options.hpp", "struct Options {};\n")
    assert run("names", tree)[0] == 0


@pytest.mark.parametrize("path, include, complaint", [
    ("apps/worker/main.cpp", "lib/tasks/sync.hpp", "the mission may not include lib/tasks/sync.hpp: that is of the extension tasks"),
    ("kernels/serve.hpp", "kernels/packets/queue.hpp", "the mission may not include kernels/packets/queue.hpp: that is of the extension packets"),
    ("apps/worker/main.cpp", "apps/worker/packets/program.hpp", "the mission may not include apps/worker/packets/program.hpp"),
    ("apps/worker/packets/program.cpp", "kernels/packets/queue.hpp", None),
    ("apps/samples/card.cpp", "lib/tasks/sync.hpp", None),  # rdma_tasks is made of tasks
    ("apps/samples/graph.cpp", "lib/rdma_tasks/connection.hpp", "tasks may not include lib/rdma_tasks/connection.hpp"),
    ("apps/packets/main.cpp", "lib/tasks/sync.hpp", "packets may not include lib/tasks/sync.hpp"),
    ("tests/core/test.cpp", "lib/tasks/sync.hpp", None),
])
def test_layers_keeps_extensions_out_of_the_mission(tree, path, include, complaint):
    for header in ("lib/tasks/sync", "lib/rdma_tasks/connection", "kernels/packets/queue", "apps/worker/packets/program"):
        plant(tree, f"{header}.hpp", "#pragma once\n")
    plant(tree, path, f'#include "{include}"\n')
    status, output = run("layers", tree)
    assert (status == 0) == (complaint is None), output
    assert (f"{path}:1: {complaint}" if complaint else " 0 violations") in output


def test_layers_takes_an_include_that_may_be_missing(tree):
    plant(tree, "kernels/packets/queue.hpp", "#pragma once\n")
    include = '#include "kernels/packets/queue.hpp"\n'
    plant(tree, "kernels/serve.hpp", f'#if __has_include("kernels/packets/queue.hpp")\n{include}#endif\n')
    assert run("layers", tree)[0] == 0
    plant(tree, "kernels/serve.hpp", f'#if __has_include("kernels/packets/other.hpp")\n{include}#endif\n')
    assert run("layers", tree)[0] == 1


def test_format_finds_a_file_that_is_not_formatted(tree):
    plant(tree, "kernels/crooked.cu", "int   crooked( ) ;\n")
    status, output = run("format", tree)
    assert status != 0
    assert "kernels/crooked.cu:1" in output


@pytest.mark.parametrize("path, text, complaint", [
    ("lib/core/leaning.hpp", "#pragma once\n\nstd::string needs_a_header();\n",
     "do not compile by themselves"),
    ("lib/core/leaning.hpp", "struct Twice {};\n", "does not begin with #pragma once"),
    ("kernels/modern.hpp", "#pragma once\n\nconsteval int modern() { return 20; }\n",
     "do not compile by themselves"),  # as device code is compiled: C++17
])
def test_headers_finds_one_that_does_not_stand_alone(tree, path, text, complaint):
    plant(tree, path, text)
    status, output = run("headers", tree)
    assert status != 0
    assert path in output
    assert complaint in output


@pytest.mark.parametrize("path, text, complaint", [
    ("tests/late_test.cpp", "  if (!is_full_moon())\n    GTEST_SKIP();\n", "2: skips for a reason that RUNS"),
    ("tests/test_late.py", "pytest.skip('needs gnuplot')\n", "1: scripts/setup does not name 'gnuplot'"),
])
def test_skips_finds_a_test_that_runs_nowhere(tree, path, text, complaint):
    plant(tree, path, text)
    status, output = run("skips", tree)
    assert status == 1
    assert f"{path}:{complaint}" in output


@pytest.mark.parametrize("path, text, place, helper", [
    ("tests/quiet_test.cpp", "// EXPECT_TRUE(1)\nTEST(Pump, Pumps) {\n  pump.start();\n}\n", "2: Pump.Pumps",
     "void check(Pump& pump) {\n  EXPECT_TRUE(pump);\n}\n"),
    ("tests/test_quiet.py", "import pump\n\n\ndef test_it():\n    pump.start()\n", "4: test_it",
     "\n\ndef check(pump):\n    assert pump\n"),
])
def test_expectations_finds_a_test_without_any(tree, path, text, place, helper):
    plant(tree, path, text)
    status, output = run("expectations", tree)
    assert status == 1
    assert f"{path}:{place} expects nothing" in output
    plant(tree, path, text.replace("pump.start()", "check(pump)") + helper)
    assert run("expectations", tree)[0] == 0


def test_shell_finds_a_script_that_does_not_parse(tree):
    plant(tree, "scripts/broken", "#!/usr/bin/env bash\nif true; then\n")
    status, output = run("shell", tree)
    assert status != 0
    assert "scripts/broken" in output


@pytest.mark.parametrize("line, instead, complaint", [
    ("NoNewPrivileges=yes", "NewPrivileges=no", "Unknown key 'NewPrivileges'"),
    ("SystemCallFilter=@system-service", "", "exposed more than 15 tenths"),
    ("Type=notify", "Type=notfy", "Failed to parse service type"),
])
def test_units_finds_what_systemd_would(tree, line, instead, complaint):
    unit = tree / "deploy/systemd/offload-server@.service.in"
    text = unit.read_text()
    assert line in text
    unit.write_text(text.replace(line, instead))
    status, output = run("units", tree)
    assert status == 1
    assert complaint in output


@pytest.mark.parametrize("files, complaint", [
    ({"long.hpp": "\n" * 501}, "lib/core/long.hpp:1: 501 lines"),
    ({"long.cpp": "\n" * 500}, None),
    ({"class.hpp": "struct Small {};\nclass Big {\n" + "  int a;\n" * 249 + "};\n"},
     "lib/core/class.hpp:2: Big has 251 lines"),
    ({"class.hpp": "struct Outer {\n  struct Inner {\n" + "    int a;\n" * 248 + "  };\n"
      "  int b;\n};\n"}, "lib/core/class.hpp:1: Outer has 253 lines"),
    ({"class.hpp": "class Small;\nstruct One { int a; };\n" + "int a;\n" * 250}, None),
    ({f"{unit}.{suffix}": "\n" for unit in range(15) for suffix in ("hpp", "cpp")}, None),
    ({f"{unit}.hpp": "\n" for unit in range(16)}, "lib/core: 17 units"),
    ({f"{part}/{unit}.hpp": "\n" * 300 for part in range(18) for unit in range(10)},
     "lib and apps: 54024, of "),
    ({f"{unit}.hpp": "\n" * 111 for unit in range(15)}, "median: 111, of 110 at most EXCEEDED"),
    ({f"{unit}.hpp": "\n" * 301 for unit in range(3)}, "90 of 100: 301, of 300 at most EXCEEDED"),
])
def test_sizes_finds_what_is_too_large(tree, files, complaint):
    for name, text in files.items():
        plant(tree, f"lib/core/{name}", text)
    status, output = run("sizes", tree)
    assert (status == 0) == (complaint is None), output
    assert (complaint or "sizes: ") in output


@pytest.mark.parametrize("path, text, finding", [
    ("lib/comch/old.hpp", "// One line.\n// As a rule, whoever\n// comes.\n", "old.hpp:2: 'whoever'"),
    ("lib/comch/old.hpp", "/// Throws as\n/// above.\n", "old.hpp:1: 'as /// above'"),
    ("docs/old.md", "It is such a\none.\n", "docs/old.md:1: 'such a one'"),
    ("scripts/old", "# whoever calls this\n", "scripts/old:1: 'whoever'"),
    ("docs/reference/glossary.md", "| here |\n|---|\n| slot | one |\n\n| here |\n|---|\n| slot | two |\n",
     "glossary.md:7: 'slot' is there twice"),
    ("docs/reference/glossary.md", "| here |\n|---|\n| slot | one |\n| slot of a card | two |\n", None),
    ("lib/comch/good.hpp", "// who ever, at once, such one\nint whoever_is, has_above;\n", None),
    ("lib/comch/good.hpp.orig", "", "lib/comch/good.hpp.orig: finish the merge"),
    ("CHANGELOG.md", "whoever\n", None),
    *(("CHANGELOG.md", f"One.\n{mark * 7} a\n", f"CHANGELOG.md:2: '{mark * 7}': finish the merge") for mark in "<>"),
])
def test_words_finds_phrases_and_terms_with_two_meanings(tree, path, text, finding):
    plant(tree, path, text)
    status, output = run("words", tree)
    assert (status == 0) == (finding is None), output
    assert (finding or " 0 to replace") in output


@pytest.mark.parametrize("there, instead, finding", [
    ("`lib/core`", "`lib/gone.cpp`", "A1 names lib/gone.cpp, which is not there"),
    ("Good.Works", "Good.Fails", "A1 names Good.Fails, which is not there"),
    ("good_test", "gone_test", "A1 names gone_test, which is not there"),
    ("::test_it", "::test_that", "A1 names test_good.py::test_that, which is not there"),
    ("| works |", "| nearly |", "A1 has not 7 columns with one verdict"),
    ("| to work ", "", "A1 has not 7 columns with one verdict"),
    ("| CPU |", "| card |", "A1 claims 'test | card', its tests show 'test | CPU'"),
    ("| test |", "| all |", "A1 claims 'all | CPU', its tests show 'test | CPU'"),
    ("test | CPU | `Good.Works`, `good_test`, `test_good.py::test_it`", "none | none | somebody saw it",
     "A1 works, and no test is named"),
    (COVERED, COVERED + COVERED, "A1 is there twice"),
])
def test_coverage_finds_what_is_not_there(tree, there, instead, finding):
    plant(tree, "docs/reference/coverage.md", COVERED.replace(there, instead))
    status, output = run("coverage", tree)
    assert status == 1 and finding in output, output


GPU_TEST = 'offload_unit_test(good_program SOURCES good_test.cpp GPU Good.*)\n'
GUEST_TEST = ("offload_guest_program(good_program SOURCES good_test.cpp)\n"
              "offload_guest_test(rdma.good scripts/rdma-guest -- $<TARGET_FILE:good_program>)\n")
CARD_TEST = ("offload_guest_program(good_program SOURCES good_test.cpp)\n"
             "offload_softcard_gtest(softcard.good good_program {} CARD --strict)\n")
MODEL = '#include "softcard/card/card.hpp"\nTEST(Good, Works) {}\n'


@pytest.mark.parametrize("path, text, columns", [
    ("tests/CMakeLists.txt", GPU_TEST, "test, by hand | CPU, GPU"),
    ("tests/CMakeLists.txt", GUEST_TEST, "test | CPU, Soft-RoCE"),
    ("tests/CMakeLists.txt", "set(OFFLOAD_SLOW_TESTS a rdma.good)\n" + GUEST_TEST, "test, all | CPU, Soft-RoCE"),
    ("tests/CMakeLists.txt", "set(OFFLOAD_NIGHTLY_TESTS rdma.good)\n" + GUEST_TEST,
     "test, nightly | CPU, Soft-RoCE"),
    ("tests/CMakeLists.txt", "offload_unit_test(good_program SOURCES fake_it.cpp good_test.cpp)\n", "test | CPU, fake"),
    ("tests/good_test.cpp", MODEL, "test | CPU, model"),
    ("tests/good_test.cpp", '#include "tests/good.hpp"\nTEST(Good, Works) {}\n', "test | CPU, model"),
    ("tests/process/test_good.py", "import veth\ndef test_it():\n    pass\n", "test | CPU, veth"),
    ("tests/process/CMakeLists.txt",
     "offload_pytest(pytest report ${CMAKE_CURRENT_SOURCE_DIR}/test_good.py::test_it)\n"
     "offload_guest_test(rdma.good --rootdir ${CMAKE_CURRENT_SOURCE_DIR} ${pytest})\n", "test | CPU, Soft-RoCE"),
    ("tests/CMakeLists.txt", GPU_TEST.replace("Good.*", "*/gpu"), "test, by hand | CPU, GPU"),
    ("tests/CMakeLists.txt", CARD_TEST.format("Good.*-Good.Fails"), "test | CPU, soft card"),
    ("tests/CMakeLists.txt", "set(cases Other.*:Good.W*)\n" + CARD_TEST.format("Fine.*:${cases}"), "test | CPU, soft card"),
    ("tests/process/CMakeLists.txt", "set(folder ${PROJECT_SOURCE_DIR}/tests/process)\nset(file ${folder}/test_good.py)\n"
     "offload_softcard_programs(softcard.it 2 ${file}::test_it)\n", "test | CPU, soft card"),
    ("tests/process/CMakeLists.txt", "offload_softcard_test(softcard.good COMMAND pytest "
     "${PROJECT_SOURCE_DIR}/tests/process/test_good.py)\nset(files good)\n" + GUEST_TEST.replace("rdma.good", "softcard.it"),
     "test | CPU, soft card"),
])
def test_coverage_fills_in_where_a_test_runs_and_on_what(tree, path, text, columns):
    plant(tree, "tests/good.hpp", "#pragma once\nclass Good;\n")
    plant(tree, "tests/good.cpp", MODEL.splitlines()[0] + "\n")
    if "/gpu" in text:
        plant(tree, "tests/good_test.cpp", 'TEST_P(Good, Works) {}\nINSTANTIATE_TEST_SUITE_P(, Good, Values("gpu"));\n')
    plant(tree, path, text)
    status, output = run("coverage", tree)
    assert status == 1 and f"its tests show '{columns}'" in output, output
    subprocess.run([ROOT / "scripts/checks/coverage", "--fill", tree], timeout=200, check=True)
    assert f"| works | {columns} |" in (tree / "docs/reference/coverage.md").read_text()
    assert run("coverage", tree)[0] == 0


def test_coverage_knows_the_instances_that_a_filter_excludes(tree):
    plant(tree, "tests/good_test.cpp", "TEST_P(Good, Works) {}\nINSTANTIATE_TEST_SUITE_P(Card, Good, Values(1));\n")
    excluded = GUEST_TEST.replace("good_program>)", "good_program> --gtest_filter=-Card/*)")
    plant(tree, "tests/CMakeLists.txt", excluded)
    assert "A1 names good_test, which no command runs" in run("coverage", tree)[1]
    plant(tree, "tests/CMakeLists.txt",
          excluded + "add_test(NAME softcard.good COMMAND good_program --gtest_filter=*Good*)\n")
    assert "its tests show 'test | CPU, soft card'" in run("coverage", tree)[1]


@pytest.mark.parametrize("path, text, finding", [
    ("tests/CMakeLists.txt", CARD_TEST.format("Better.*"), "A1 names good_test, which no command runs"),
    ("tests/CMakeLists.txt", CARD_TEST.format("-Good.*"), "A1 names good_test, which no command runs"),
    ("tests/CMakeLists.txt", "set(cases Good.*)\n" + CARD_TEST.format("-${cases}"),
     "A1 names good_test, which no command runs"),
    ("tests/CMakeLists.txt", "\n", "A1 names good_test, which no command runs"),
    ("tests/process/CMakeLists.txt", "\n", "A1 names test_good.py::test_it, which no command runs"),
    ("tests/other/good_test.cpp", "TEST(Other, Works) {}\n", "A1 names good_test, which is in several files"),
])
def test_coverage_finds_tests_that_show_nothing(tree, path, text, finding):
    plant(tree, path, text)
    status, output = run("coverage", tree)
    assert status == 1 and finding in output, output


@pytest.mark.parametrize("there, instead, finding", [
    ("::test_it", "::test_that", "wiring.md:7: `--good` names test_good.py::test_that, which is not there"),
    ("`test_good.py::test_it`", "`the good one`", "wiring.md:7: `--good` names the good one, which is no test"),
    ("`test_good.py::test_it`", "some", "wiring.md:7: `--good` names no test, and does not say 'no test: REASON'"),
    ("no test: it needs a GPU", "", "wiring.md:8: `--gpu` names no test"),
    ("| it is good ", "", "wiring.md:7: `--good` has not 3 columns"),
    (WIRED, "", "there is no table in docs/evidence/wiring.md"),
])
def test_coverage_finds_options_without_a_test(tree, there, instead, finding):
    plant(tree, "docs/evidence/wiring.md", WIRED.replace(there, instead))
    status, output = run("coverage", tree)
    assert status == 1 and finding in output, output


def test_coverage_finds_options_whose_test_never_runs(tree):
    plant(tree, "tests/process/test_idle.py", "def test_that():\n    assert it()\n")
    plant(tree, "docs/evidence/wiring.md", WIRED.replace("test_good.py::test_it", "test_idle.py::test_that"))
    assert "`--good` names test_idle.py::test_that, which no command runs" in run("coverage", tree)[1]


@pytest.mark.parametrize("there, instead, finding", [
    ("`Works`", "`Fails`", "names Fails, which is not there"),
    ("`Good.*`", "`Bad.*`", "names Bad.*, which is not there"),
    ("`test_it`", "`test_that`", "names test_that, which is not there"),
    ("`Works`, `Good.*`, `test_it`, `good_test`", "–", "names no test"),
])
def test_coverage_finds_promises_without_a_test(tree, there, instead, finding):
    plant(tree, "docs/reference/security.md", PROMISED.replace(there, instead))
    status, output = run("coverage", tree)
    assert status == 1 and f"docs/reference/security.md:3: a {finding}" in output, output
    plant(tree, "docs/reference/security.md", PROMISED.replace("It holds", "Possible").replace(there, instead))
    assert (run("coverage", tree)[0] == 0) == (instead == "–")


def test_spelling_finds_a_misspelt_word(tree):
    plant(tree, "lib/core/wrong.hpp", "// It will recieve it.\n")
    status, output = run("spelling", tree)
    assert status != 0
    assert "lib/core/wrong.hpp:1: recieve" in output


@pytest.mark.parametrize("path, line, instead, complaint", [
    ("lib/core/core.hpp", "int core();", "long core();", "core-adds no longer applies"),
    ("tests/core_test.cpp", "Adds", "Subtracts", "there is no test Core.Adds"),
    ("tests/CMakeLists.txt", "core_test", "lib_test", "there is no test program core_test"),
    ("tests/mutants/core-adds.patch", "# harm: none\n", "", "does not begin with '# harm:'"),
    ("tests/mutants/equivalent", "\n+ ;", "", "an entry is 'PATH: REASON'"),
])
def test_mutants_finds_a_fault_that_is_planted_no_more(tree, path, line, instead, complaint):
    text = (tree / path).read_text()
    assert line in text
    (tree / path).write_text(text.replace(line, instead))
    status, output = run("mutants", tree)
    assert status == 1
    assert complaint in output


CMAKE_LISTS = """cmake_minimum_required(VERSION 3.25)
project(planted LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_library(planted lib/core/good.cpp lib/core/planted.cpp)
target_include_directories(planted SYSTEM PRIVATE headers)
"""
HELPER = "namespace {\nint helper() { return 1; }\n}  // namespace\n"


@pytest.mark.parametrize("text, finding", [
    ("int* nowhere() { return nullptr; }\n", None),
    ("int* nowhere() { return 0; }\n", "modernize-use-nullptr"),
    (HELPER + "int again() { return helper(); }\n", None),  # good.cpp has one of that name
    (HELPER + "int* again() { return helper() ? 0 : nullptr; }\n", "modernize-use-nullptr"),
    ("int* nowhere() { return missing; }\n", "clang-diagnostic-error"),
    ("static_assert(__cplusplus >= 202002L);\n#include <planted.hpp>\n", None),
])
def test_tidy_finds_what_the_compiler_lets_pass(tree, text, finding):
    shutil.copy(ROOT / ".clang-tidy", tree)
    plant(tree, "CMakeLists.txt", CMAKE_LISTS)
    plant(tree, "headers/planted.hpp", "")
    plant(tree, "lib/core/good.cpp", HELPER + "int good() { return helper(); }\n")
    plant(tree, "lib/core/planted.cpp", text)
    status, output = run("tidy", tree)
    assert (status != 0) == (finding is not None), output
    assert (finding or "tidy: 2 files in 1 units") in output
