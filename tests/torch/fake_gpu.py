"""Compiles and loads fake_gpu.cc: `python fake_gpu.py` beforehand, `load()` in a process of a test."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess

from brant import _torch_build

SOURCE = pathlib.Path(__file__).with_suffix(".cc")
NAME = "_fake_gpu"


def result() -> pathlib.Path:
    return pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "brant" / f"{NAME}.so"


def build() -> None:
    import torch

    library, libraries = _torch_build._library(), pathlib.Path(torch.__file__).parent / "lib"
    command = [
        *_torch_build._compiler(),
        *_torch_build._flags(),
        "-UTORCH_EXTENSION_NAME",
        f"-DTORCH_EXTENSION_NAME={NAME}",
    ]
    command += ["-shared", str(SOURCE), "-o", str(result()), str(library), f"-Wl,-rpath,{library.parent}"]
    command += [f"-L{libraries}", "-lc10", "-ltorch_cpu", "-ltorch_python", "-Wl,--allow-shlib-undefined"]
    result().parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(command, check=True)


def load():
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(result()))
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(NAME, result(), loader=loader))
    loader.exec_module(module)
    return module


if __name__ == "__main__":
    build()
