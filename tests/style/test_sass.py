"""Plants one fault after another in the persistent kernel and sees that scripts/checks/sass finds it."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CUDA = "/usr/local/cuda/bin"
NVCC = shutil.which("nvcc") or shutil.which(f"{CUDA}/nvcc")
CUOBJDUMP = (os.environ.get("CUOBJDUMP") or shutil.which("cuobjdump")
             or shutil.which(f"{CUDA}/cuobjdump"))

ACQUIRE = '''  asm volatile("fence.acquire.sys;" ::: "memory");'''
ACQUIRE_BY_LOAD = "ld.acquire.sys.global.b128 v"
RELEASE = '''  asm volatile("fence.release.sys;" ::: "memory");'''
LOAD = '''  asm volatile("{ .reg .b128 v; ld.relaxed.sys.global.b128 v, [%2]; mov.b128 {%0, %1}, v; }"'''
STORE = '''"{ .reg .b128 v; mov.b128 v, {%1, %2}; st.relaxed.sys.global.b128 [%0], v; }"'''
BY_LOAD = ("__CUDA_ARCH__ >= 900 && OFFLOAD_CUDA_VERSION >= 1208", "0")  # as before sm_90


def check(*arguments, **more):
    done = subprocess.run([ROOT / "scripts/checks/sass", *arguments], text=True, timeout=100,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **more)
    return done.returncode, done.stdout


def check_kernel(folder, *changes):
    """The check of a persistent kernel for sm_90 with one service, some text of it replaced."""
    if NVCC is None or CUOBJDUMP is None:
        pytest.skip("there is no nvcc or no cuobjdump")
    shutil.copytree(ROOT / "kernels", folder / "kernels")
    services = folder / "kernels/services.hpp"
    services.write_text(re.sub("tuple<Reverse.*>", "tuple<Reverse>", services.read_text()))
    source = folder / "kernels/channel_packets.hpp"
    text = source.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    source.write_text(text)
    subprocess.run([NVCC, "-std=c++17", "-arch=sm_90", "-I.", "-c", "kernels/module/built_in.cu",
                    "-o", "worker.o"], cwd=folder, timeout=200, check=True)
    return check(folder / "worker.o")


@pytest.mark.parametrize("changes", [(), (BY_LOAD,), (("PACKETS) && OFFLOAD_CUDA_VERSION < 1204",
                                                        "PACKETS)"),)])
def test_the_kernel_passes_in_each_form(tmp_path, changes):
    status, output = check_kernel(tmp_path, *changes)
    assert status == 0, output
    assert "2 kernels of sm_90, 0 violations" in output


@pytest.mark.parametrize("changes, finding", [
    (((ACQUIRE, ""),), "nothing acquires a plain payload"),
    (((ACQUIRE, RELEASE),), "nothing acquires a plain payload"),  # a full barrier: slow
    ((BY_LOAD, (ACQUIRE_BY_LOAD, ACQUIRE_BY_LOAD.replace("acquire", "relaxed"))),
     "nothing acquires a plain payload"),
    (((RELEASE, ""),), "no kernel releases a plain payload"),
    (((LOAD, '''  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"'''
       .replace(".v2.u64 {%0, %1}, [%2];",
                ".u64 %0, [%2]; ld.relaxed.sys.global.u64 %1, [%2+8];")),),
     "a packet in pieces: LDG.E.64.STRONG.SYS"),
    (((STORE, '''"st.relaxed.sys.global.u64 [%0], %1; st.relaxed.sys.global.u64 [%0+8], %2;"'''),),
     "no packet is stored by STG.E.128.STRONG.SYS"),
])
def test_a_fault_is_found(tmp_path, changes, finding):
    status, output = check_kernel(tmp_path, *changes)
    assert status == 1, output
    assert finding in output


def test_no_kernel_is_no_success(tmp_path):
    (tmp_path / "empty.sass").write_text("arch = sm_90\n\t\tFunction : _Z5otherv\n")
    status, output = check(tmp_path / "empty.sass")
    assert status == 1
    assert "0 kernels of no architecture" in output


def test_without_cuobjdump_it_is_skipped_and_says_so(tmp_path):
    if shutil.which(f"{CUDA}/cuobjdump"):
        pytest.skip("cuobjdump is here: this is about a machine without it")
    environment = {"PATH": "/usr/bin:/bin"}
    status, output = check(tmp_path / "worker.o", env=environment)
    assert status == 77
    assert "there is no cuobjdump" in output
