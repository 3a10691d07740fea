"""Makes libraries that stand in for those of CUDA, so that PyTorch's wheel for GPUs loads on a machine without one.

The wheel's libraries are linked with some of CUDA (2.5 GB of further wheels) and with `libtorch_cuda.so` (0.5 GB), of
which nothing runs on a CPU. The loader wants the files, the versions of their symbols and their data all the same. What
this module compiles has just these: a function that is called all the same ends the process and says its name, but
those that only ask whether there is a GPU, which say that there is none.
"""

from __future__ import annotations

import collections
import pathlib
import re
import subprocess

# Asked by `torch.cuda.is_available()` and its like; 100 is cudaErrorNoDevice.
ANSWERS = {"cudaGetDeviceCount": 100, "cudaGetLastError": 0, "cudaPeekAtLastError": 0}
# Called while PyTorch is imported: they give a reference to a hook that nobody has set.
HOOKS = {"_ZN4c10d15get_gil_checkerEv"}
SYSTEM = ["libstdc++.so.6", "libgcc_s.so.1", "libc.so.6", "libm.so.6"]  # some are used without being named
OF_SYSTEM = re.compile(r"^(GLIBC|GCC|CXXABI|GLIBCXX|GOMP|OMP|OACC|GFORTRAN)_")
WEAK = "wv"

HEAD = """
#include <stdio.h>
#include <stdlib.h>
static void no_gpu(const char* name) {
  fprintf(stderr, "%s: this PyTorch was set up without CUDA, for tests on CPUs\\n", name);
  abort();
}
"""


def output(*command: str) -> str:
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


def needed(library: pathlib.Path) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-W", "-d", str(library))))


def missing_symbols(libraries: list[pathlib.Path]) -> dict[str, set[str]]:
    """By version ("" without one): what the libraries want of others and none of them has."""
    wanted: dict[str, str] = {}
    had: set[str] = set()
    system = [pathlib.Path(output("gcc", f"-print-file-name={name}").strip()) for name in SYSTEM]
    for library in [*libraries, *system]:
        for line in output("nm", "-D", "--with-symbol-versions", str(library)).splitlines():
            parts = line.split()
            name, _, version = parts[-1].partition("@")
            if len(parts) == 3:
                had.add(name)
            elif parts[0] not in WEAK and not OF_SYSTEM.match(version.lstrip("@")):
                wanted[name] = version.lstrip("@")
    missing = collections.defaultdict(set)
    for name, version in wanted.items():
        if name not in had and not name.startswith(("Py", "_Py")):
            missing[version].add(name)
    return missing


def definition(name: str) -> str:
    """In C. Data of C++ are its types: their names are read, what is behind their tables of functions is not."""
    if name.startswith("_ZTI"):
        text = name.removeprefix("_ZTI")
        return f'extern void* _ZTVN10__cxxabiv117__class_type_infoE[];\nvoid* {name}[2];\n__attribute__((constructor)) static void type_{name}(void) {{ {name}[0] = _ZTVN10__cxxabiv117__class_type_infoE + 2; {name}[1] = (void*)"{text}"; }}\n'  # noqa: E501
    if name.startswith(("_ZTV", "_ZTT")):
        return f"void* {name}[64];\n"
    if name in ANSWERS:
        return f"int {name}(int* count) {{ (void)count; return {ANSWERS[name]}; }}\n"
    if name in HOOKS:
        return f"void** {name}(void) {{ static void* hook; return &hook; }}\n"
    return f'void {name}(void) {{ no_gpu("{name}"); }}\n'


# Made while PyTorch is imported, as default values of arguments: options of process groups of NCCL, without what is
# NCCL's. The second file is of C++, against PyTorch's own headers.
OPTIONS = re.compile(r"^_ZN4c10d.*ProcessGroupNCCL7OptionsC1Eb$")
OPTIONS_HEAD = """
#include <new>
#include <torch/csrc/distributed/c10d/Backend.hpp>
"""


def compile_options(folder: pathlib.Path, symbols: set[str]) -> list[str]:
    """What to link with besides."""
    made = sorted(name for name in symbols if OPTIONS.match(name))
    if not made:
        return []
    source, objects = folder / "options.cc", folder / "options.o"
    source.write_text(
        OPTIONS_HEAD
        + "".join(
            f'extern "C" void {name}(void* self, bool) {{ new (self) c10d::Backend::Options("nccl"); }}\n'
            for name in made
        )
    )
    include = f"-I{folder.parent / 'include'}"
    subprocess.run(
        ["g++", "-std=c++20", "-w", "-O0", "-fPIC", include, "-c", str(source), "-o", str(objects)], check=True
    )
    source.unlink()
    return [str(objects)]


def compile_library(path: pathlib.Path, symbols: set[str], version: str) -> None:
    source = path.with_suffix(".c")
    objects = compile_options(path.parent, symbols)
    source.write_text(HEAD + "".join(definition(name) for name in sorted(symbols) if not OPTIONS.match(name)))
    command = ["gcc", "-shared", "-fPIC", "-w", "-O0", "-fno-builtin", f"-Wl,-soname,{path.name}", "-o", str(path)]
    script = path.with_suffix(".map")
    if version:
        script.write_text(f"{version} {{ global: *; }};\n")
        command.append(f"-Wl,--version-script={script}")
    subprocess.run([*command, str(source), *objects, "-Wl,--no-as-needed", "-lstdc++"], check=True)
    for made in [source, *map(pathlib.Path, objects)]:
        made.unlink()
    script.unlink(missing_ok=True)


def make(folder: pathlib.Path) -> list[str]:
    """Stands in for what the libraries of this folder need and neither it nor the system has. The files' names."""
    libraries = sorted(folder.glob("*.so*"))
    present = {library.name for library in libraries}
    absent = set().union(*(needed(library) for library in libraries)) - present
    absent = {name for name in absent if re.match(r"lib(cu|nv|torch_cuda)", name)}
    symbols = missing_symbols(libraries)
    named = {name: symbols[name] for name in absent if name in symbols}
    for name in sorted(absent):
        # What has no version is looked up in all libraries alike.
        here = symbols[""] if name == "libtorch_cuda.so" else named.get(name, set())
        compile_library(folder / name, here, name if name in named else "")
    return sorted(absent)
