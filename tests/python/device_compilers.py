"""Compilers of kernels that are here without a GPU, and what came of them."""

from __future__ import annotations

import ctypes
import re
import shutil
import sys
from pathlib import Path

PACKAGES = [Path(entry) / "nvidia" for entry in sys.path if (Path(entry) / "nvidia").is_dir()]
SYNC = r"bar\.(?:warp\.)?sync"


def find_tool(name: str) -> str | None:
    """nvcc or ptxas."""
    for package in PACKAGES:
        found = next(package.glob(f"cu*/bin/{name}"), None)
        if found is not None:
            return str(found)
    return shutil.which(name)


def find_nvrtc() -> Path | None:
    for package in PACKAGES:
        found = next(package.rglob("libnvrtc.so.*"), None)
        if found is not None:
            return found
    return None


def by_nvrtc(library: Path, text: str, *options: str) -> str:
    """The PTX. It compiles without a remark, or this fails with what NVRTC says."""
    for builtins in library.parent.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(builtins))  # which the library would not find there by itself
    nvrtc = ctypes.CDLL(str(library))
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None) == 0
    words = [option.encode() for option in ("--gpu-architecture=compute_90", *options)]
    outcome = nvrtc.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert outcome == 0 and log.value == b"", log.value.decode()
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    return ptx.value.decode()


def instructions(body: str) -> list[str]:
    """Those that touch memory or order it, but not those of parameters and local memory."""
    found = re.findall(rf"(?<![\w.])((?:ld|st|atom|red|fence|membar)\.[\w.:]+|{SYNC})", body)
    return [each for each in found if ".param" not in each and ".local" not in each]


def by_kernel(ptx: str) -> dict[str, list[str]]:
    """The instructions of each kernel."""
    kernels: dict[str, list[str]] = {}
    for part in ptx.split(".entry ")[1:]:
        name = part[: part.index("(")].strip()
        kernels[name] = instructions(part[part.index("{") :])
    return kernels
