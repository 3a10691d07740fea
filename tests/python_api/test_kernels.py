"""What kernels of CuPy, Numba and Triton get of brant, without a GPU: test_gpu_bells.py runs them on one."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys

import pytest
from conftest import ROOT, brant, environment, run_job

sys.path.append(str(ROOT / "tests" / "python"))
from device_compilers import by_kernel, by_nvrtc, find_nvrtc, find_tool, instructions  # noqa: E402

GUIDE = (ROOT / "docs" / "guide" / "notify.md").read_text()
SIMT = (ROOT / "include" / "brant" / "base" / "simt.h").read_text()
OF_CUPY = ROOT / "tests" / "python_api" / "kernels_of_cupy.py"
TEXTS = """
import json
from brant import _device_code as code, include_dir
print(json.dumps({"ring": code.TRITON_RING, "wait": code.TRITON_WAIT, "numba": code.numba_source(),
                  "folder": include_dir()}))
"""
# A kernel of Triton as it is compiled for a GPU that is not here.
OF_TRITON = """
import sys, types
sys.modules["torch"] = types.SimpleNamespace(__version__="none")
import triton
from triton.backends.compiler import GPUTarget
import kernels_of_triton as kernels
for kernel in (kernels._steps, kernels._together):
    signature = {name: "constexpr" if name == "CELLS" else "i64" for name in kernel.arg_names}
    source = triton.compiler.ASTSource(kernel, signature=signature, constexprs={"CELLS": 256})
    print(triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8}).asm["ptx"])
"""


def python(program: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], env=environment(**more), text=True, capture_output=True)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    done = python(TEXTS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def nvrtc():
    library = find_nvrtc()
    if library is None:
        pytest.skip("no NVRTC here: install nvidia-cuda-nvrtc to run this")
    return library


def instruction_of(function: str) -> str:
    """What the header does it by."""
    return re.search(rf'{function}\(.*?asm volatile\("([\w.]+)', SIMT, re.DOTALL)[1]


# --- What a kernel gets ------------------------------------------------------------------------------------------


async def what_a_kernel_gets() -> None:
    import numpy

    notifier = brant.Notifier(64)
    bells = [brant.Bell(notifier), brant.Bell(notifier, rung_by="host", seen_by="device")]
    bells.append(brant.Bell(notifier, rung_by="device", seen_by="device"))
    given = [bell.device() for bell in bells]
    assert len({one.word for one in given}) == len({one.number for one in given}) == 3
    for one in given:
        word, number = one
        assert isinstance(one, brant.DeviceBell) and word % 8 == 0 and word > 0
        structure = numpy.array(one, "u8,u8")
        assert structure.size == 1 and structure.nbytes == 16
        assert structure.tobytes() == word.to_bytes(8, "little") + number.to_bytes(8, "little")
    with pytest.raises(brant.TimedOut, match=rf"bell {given[0].number}\b"):
        await bells[0].when(1, timeout=0.01)

    fan_ins = [notifier.fan_in(arrivals) for arrivals in (1, 65535)]
    assert [one.of for one in fan_ins] == [1, 65535] and fan_ins[0].counts != fan_ins[1].counts
    assert all(isinstance(one, brant.FanIn) for one in fan_ins)
    for arrivals in (0, 65536):
        with pytest.raises(brant.InvalidArgument, match="arrivals"):
            notifier.fan_in(arrivals)

    bells[0].close()
    with pytest.raises(brant.InvalidArgument, match="closed"):
        bells[0].device()


async def the_word_is_where_python_rings() -> None:
    """On the emulated device memory of the host is what it says: kernels find there what Python rang."""
    import ctypes

    notifier, stream = brant.Notifier(16), brant.Stream()
    go = brant.Bell(notifier, rung_by="host", seen_by="device")
    packed = brant.Bell(notifier)
    go.ring(5)
    go.enqueue_wait(stream, 5)
    packed.enqueue_ring(stream, 7)
    assert await packed.when(7, timeout=20) == 7
    for bell, epoch in ((go, 5), (packed, 7)):
        assert ctypes.c_uint64.from_address(bell.device().word).value == epoch


def test_what_a_kernel_gets() -> None:
    run_job(what_a_kernel_gets, ranks=1, BRANT_GPU="emulated")


def test_the_word_is_where_python_rings() -> None:
    run_job(the_word_is_where_python_rings, ranks=1, BRANT_GPU="emulated")


# --- Headers -----------------------------------------------------------------------------------------------------


def test_the_headers_are_with_the_package_and_need_no_others(texts, nvrtc) -> None:
    headers = (ROOT / "include" / "brant" / "device").glob("*.cuh")
    text = "".join(f'#include "brant/device/{header.name}"\n' for header in headers)
    for standard in ("c++17", "c++20"):
        by_nvrtc(nvrtc, text, f"-std={standard}", f"-I{texts['folder']}")


def test_a_package_without_headers_says_so(tmp_path) -> None:
    done = python(f"import brant._kernels as k; k.__file__ = r'{tmp_path}/_kernels.py'; k.include_dir()")
    assert done.returncode == 1
    assert f"NotFound: brant's headers for kernels are not with its package: there is no {tmp_path}" in done.stderr
    assert "install brant again" in done.stderr


# --- Each framework ----------------------------------------------------------------------------------------------


def test_the_kernel_of_the_guide_compiles_as_cupy_compiles_it(texts, nvrtc) -> None:
    program = re.search(r"python cupy_rings\.py\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)[1]
    code = re.search(r'CODE = r"""\n(.*?)"""', program, re.DOTALL)[1]
    assert 'options=("-std=c++17", "-I" + brant.include_dir())' in program
    (kernel,) = by_kernel(by_nvrtc(nvrtc, code, "-std=c++17", "-I" + texts["folder"])).values()
    assert kernel.index("ld.acquire.sys.u64") < kernel.index("st.release.sys.u64") == len(kernel) - 1, kernel


def test_the_kernels_that_a_gpu_runs_compile_as_cupy_compiles_them(texts, nvrtc) -> None:
    code = re.search(r'CODE = r"""\n(.*?)"""', OF_CUPY.read_text(), re.DOTALL)[1]
    kernels = by_kernel(by_nvrtc(nvrtc, code, "-std=c++17", "-I" + texts["folder"]))
    barriers = {"steps_thread": None, "steps_warp": "bar.warp.sync", "steps_block": "bar.sync", "together": "bar.sync"}
    assert kernels.keys() == barriers.keys()
    for name, barrier in barriers.items():
        ring = kernels[name].index("st.release.sys.u64")
        assert {each for each in kernels[name][:ring] if each.startswith("bar.")} == ({barrier} - {None}), name


def test_the_functions_for_numba_are_those_of_the_header(texts, nvrtc) -> None:
    """One text, for which no folder has to be known."""
    assert '#include "' not in texts["numba"] and "#pragma once" not in texts["numba"]
    ptx = by_nvrtc(nvrtc, texts["numba"], "-rdc=true")
    functions = {part[: part.index("(")]: instructions(part) for part in re.split(r"\.func .*?\) ", ptx)[1:]}
    own = {name: [each for each in found if "sys" in each or "gpu" in each] for name, found in functions.items()}
    assert own["brant_ring"] == ["st.release.sys.u64"]
    assert set(own["brant_wait"]) == {"ld.acquire.sys.u64"}
    assert set(own["brant_arrive"]) == {"st.release.sys.u64", "atom.acq_rel.gpu.add.u64"}


def test_the_functions_for_triton_have_the_instructions_of_the_header(texts) -> None:
    assert instructions(texts["ring"]) == [instruction_of("store_release")] == ["st.release.sys.u64"]
    assert instructions(texts["wait"]) == [instruction_of("load_acquire")] == ["ld.acquire.sys.u64"]


@pytest.mark.parametrize(("name", "arguments"), [("ring", 2), ("wait", 3)])
def test_the_functions_for_triton_assemble(name: str, arguments: int, texts, tmp_path) -> None:
    ptxas = find_tool("ptxas")
    if ptxas is None:
        pytest.skip("no ptxas here: install nvidia-cuda-nvcc to run this")
    numbers = range(1, arguments + 1)
    body = texts[name].replace("$0", "%r0")
    for number in numbers:
        body = body.replace(f"${number}", f"%rd{number}")
    # Twice: what a compiler unrolls has its labels twice.
    loads = "".join(f"ld.param.u64 %rd{number}, [p{number}];\n" for number in numbers)
    parameters = ", ".join(f".param .u64 p{number}" for number in numbers)
    registers = ".reg .b32 %r<1>;\n.reg .b64 %rd<4>;\n"
    head = f".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry probe({parameters})\n"
    (tmp_path / "probe.ptx").write_text(f"{head}{{\n{registers}{loads}{body}{body}ret;\n}}\n")
    command = [ptxas, "-arch=sm_90", "-o", tmp_path / "probe.cubin", tmp_path / "probe.ptx"]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="there is no triton")
def test_triton_keeps_the_order() -> None:
    tests = str(ROOT / "tests" / "python_api")
    done = python(f"import sys\nsys.path.append({tests!r})\n{OF_TRITON}")
    assert done.returncode == 0, done.stderr
    steps, together = by_kernel(done.stdout).values()
    outside = ("ld.acquire", "st.release", "st.global", "atom", "bar.")
    order = [each for each in steps if each.startswith(outside)]
    assert order == ["ld.acquire.sys.u64", "st.global.b64", "bar.sync", "st.release.sys.u64", "st.global.b64"]
    assert {each for each in together if each.startswith("atom")} == {"atom.global.gpu.acq_rel.add.u64"}
    assert together.count("st.release.sys.u64") == 1
    assert together.index("bar.sync") < together.index("atom.global.gpu.acq_rel.add.u64")


def test_brant_imports_none_of_them() -> None:
    done = python("import sys, brant; print({'cupy', 'numba', 'torch', 'triton'} & set(sys.modules))")
    assert done.stdout == "set()\n", done.stderr


def test_a_numba_that_links_no_sources_is_refused() -> None:
    fakes = "numba = types.ModuleType('numba'); numba.cuda = types.ModuleType('numba.cuda')"
    known = "sys.modules.update({'numba': numba, 'numba.cuda': numba.cuda})"
    done = python(f"import sys, types; {fakes}; {known}; import brant.numba")
    assert done.returncode == 1 and "ImportError: brant.numba" in done.stderr and "install numba-cuda" in done.stderr
