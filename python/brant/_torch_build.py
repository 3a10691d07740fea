"""Compiles what connects brant to PyTorch, against the PyTorch that is there: its C++ interface changes from version to
version. Once for each of them and for each brant; the result is kept in the user's cache."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from types import ModuleType

import torch

NAME = "_brant_torch"
PACKAGE = pathlib.Path(__file__).parent
SOURCES = PACKAGE / "sources"  # of C++, as in the source tree
UNIT = SOURCES / "bindings" / "torch"
HEADERS = PACKAGE / "include"
# Compiled together: PyTorch's headers take most of the time. The others do without them.
TOGETHER = (("backend", "call_streams", "gpu", "module", "tensors", "work"), ("group", "job"))


def _library() -> pathlib.Path:
    """libbrant.so, which this process has loaded with brant._brant."""
    from brant import _brant  # noqa: F401, loads it

    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        path = line.partition("/")[2]
        if "libbrant.so" in path:
            return pathlib.Path("/" + path)
    raise ImportError("brant.torch: brant was not loaded as libbrant.so, with which its backend is linked")


def _compiler() -> list[str]:
    command = shlex.split(os.environ.get("CXX", "c++"))
    if shutil.which(command[0]) is None:
        raise ImportError(
            f"brant.torch: its backend is compiled when it is first imported, and there is no C++ compiler "
            f"({command[0]}): install g++ 12 or newer, or set CXX"
        )
    return command


def _flags() -> list[str]:
    torch_headers = pathlib.Path(torch.__file__).parent / "include"
    new_strings = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    return [
        *("-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-w"),
        *(f"-DTORCH_EXTENSION_NAME={NAME}", f"-D_GLIBCXX_USE_CXX11_ABI={new_strings}", "-DUSE_C10D"),
        *(f"-I{HEADERS}", f"-I{SOURCES}", f"-I{sysconfig.get_path('include')}"),
        *(f"-isystem{torch_headers}", f"-isystem{torch_headers / 'torch/csrc/api/include'}"),
    ]


def _key(library: pathlib.Path) -> str:
    """Of all that the result depends on."""
    digest = hashlib.sha256()
    headers = sorted(path for path in HEADERS.rglob("*.h"))
    for source in [*sorted(UNIT.glob("*")), *headers]:
        digest.update(source.read_bytes())
    compiler = subprocess.run([*_compiler(), "--version"], text=True, capture_output=True, check=True).stdout
    parts = (torch.__version__, torch.__file__, compiler, sys.implementation.cache_tag, *_flags(), *_libraries(library))
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:20]


def _libraries(library: pathlib.Path) -> list[str]:
    """What the backend is linked with. The C++ library is the one that PyTorch has loaded: where a compiler finds none
    that is shared, it would link a copy, and streams of one are not understood by the other."""
    folder = pathlib.Path(torch.__file__).parent / "lib"
    mapped = pathlib.Path("/proc/self/maps").read_text().splitlines()
    of_cpp = {line.split(maxsplit=5)[5] for line in mapped if "/libstdc++.so" in line}
    names = [str(library), f"-Wl,-rpath,{library.parent}", *sorted(of_cpp)[:1]]
    names += [f"-L{folder}", "-lc10", "-ltorch_cpu", "-ltorch_python"]
    return [*names, "-Wl,--allow-shlib-undefined"]  # of PyTorch's own libraries, that it has loaded already


def _compile(folder: pathlib.Path, result: pathlib.Path, library: pathlib.Path) -> None:
    commands = []
    for names in TOGETHER:
        source = folder / f"{names[0]}.cc"
        source.write_text("".join(f'#include "bindings/torch/{name}.cc"\n' for name in names))
        commands.append([*_compiler(), *_flags(), "-c", str(source), "-o", str(source.with_suffix(".o"))])
    running = [subprocess.Popen(command, text=True, stderr=subprocess.PIPE) for command in commands]
    errors = [one.communicate()[1] for one in running]
    link = [*_compiler(), "-shared", "-o", str(folder / "linked"), *(command[-1] for command in commands)]
    link += _libraries(library)
    failed = [error for one, error in zip(running, errors, strict=True) if one.returncode != 0]
    if not failed:
        linked = subprocess.run(link, text=True, capture_output=True)
        failed = [linked.stderr] if linked.returncode != 0 else []
    if failed:
        words = "\n".join(failed[0].strip().splitlines()[:12])
        raise ImportError(f"brant.torch: its backend does not compile against PyTorch {torch.__version__}:\n{words}")
    os.replace(folder / "linked", result)


def _cache() -> pathlib.Path:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(home) / "brant" / "torch"


def load() -> ModuleType:
    """The extension module. Takes half a minute of a core where it has to be compiled first; other processes that want
    the same wait for it."""
    library = _library()
    folder = _cache() / _key(library)
    folder.mkdir(parents=True, exist_ok=True)
    result = folder / f"{NAME}.so"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.exists():
            with tempfile.TemporaryDirectory(dir=folder) as work:
                _compile(pathlib.Path(work), result, library)
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(result))
    specification = importlib.util.spec_from_file_location(NAME, result, loader=loader)
    module = importlib.util.module_from_spec(specification)
    loader.exec_module(module)
    return module
