#!/usr/bin/env python3
"""Packs the release build into a folder that runs where nothing can be installed, and into a tar.xz beside it.

    tools/bundle.py [--with-tests]

    build/dist/brant-VERSION-linux-x86_64/
        bin/                      programs (with --with-tests also the test programs and run_tests), mpicc, brant-ranks
        include/, lib/            brant's headers and libraries, for programs of MPI
        lib/mpich/                libmpi.so.12, for programs that were compiled for MPICH
        lib/libucx/               UCX: libraries and modules, one copy each, and its own programs
        lib/libucx_cu13.libs/     what UCX's CUDA modules need, where their run path looks for it

Host needed to run it: x86-64 Linux with glibc at least as new as the one of the build; for GPUs, NVIDIA's driver; for
programs of MPI, libstdc++ too.
"""

from __future__ import annotations

import argparse
import lzma
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TREE = ROOT / "build" / "release"
BIN = ROOT / "build" / "bin"

# The parts of glibc, which every host has; anything else a program needs would be missing there.
HOST_LIBRARIES = re.compile(r"^(libc|libm|libdl|libpthread|librt|libresolv|ld-linux-x86-64)\.so\.\d+$")
UCX_LIBRARIES = ["libucp.so.0", "libuct.so.0", "libucs.so.0", "libucm.so.0"]
# UCX opens its modules with the suffix it was itself loaded with, hence ".so.0".
UCX_MODULES = ["libuct_cma.so.0", "libuct_cuda.so.0", "libucm_cuda.so.0", "libucx_perftest_cuda.so.0"]
UCX_PROGRAMS = ["ucx_info", "ucx_perftest"]
TEST_HELPERS = ["boot_probe", "wire_peer"]  # what tests start and look for beside themselves

UCX_WRAPPER = """#!/bin/sh
# Starts UCX's own program with the libraries of this folder.
here=$(cd "$(dirname "$0")/.." && pwd)
LD_LIBRARY_PATH="$here/lib/libucx/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$here/lib/libucx/bin/NAME" "$@"
"""

RUN_TESTS = """#!/bin/sh
# Runs the packed tests whose labels match a pattern: run_tests [LABEL-PATTERN], for example run_tests 'gpu|multi'.
here=$(cd "$(dirname "$0")" && pwd)
passed=0
failed=0
set -f  # settings may hold stars
while IFS="$(printf '\\t')" read -r name program ranks seconds labels settings; do
    [ -x "$here/$program" ] && echo "$labels" | grep -Eq "${1:-.}" || continue
    if [ "$ranks" -gt 0 ]; then
        env $settings timeout -k 5 "$seconds" "$here/brant" run -n "$ranks" -- "$here/$program" </dev/null
    else
        env $settings timeout -k 5 "$seconds" "$here/$program" </dev/null
    fi
    status=$?
    [ $status -eq 0 ] && passed=$((passed + 1)) && continue
    failed=$((failed + 1))
    echo "FAILED: $name (exit status $status)"
done <"$here/tests.tsv"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
"""


class BundleError(Exception):
    """The build cannot be packed; the text says why and what to do."""


def version() -> str:
    cache = (TREE / "CMakeCache.txt").read_text() if (TREE / "CMakeCache.txt").exists() else ""
    match = re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(.*)$", cache, re.MULTILINE)
    if not match:
        raise BundleError("build/release is not configured: run 'make build' first")
    return match.group(1)


def needed(program: pathlib.Path) -> list[str]:
    text = subprocess.run(["readelf", "-d", program], text=True, capture_output=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def copy(source: pathlib.Path, target: pathlib.Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source.resolve(), target)


def write_script(path: pathlib.Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def pack_programs(names: list[str], into: pathlib.Path) -> None:
    for name in names:
        program = BIN / name
        if not program.exists():
            raise BundleError(f"build/bin/{name} is missing: run 'make build' first, with TARGETS=all for the tests")
        foreign = [library for library in needed(program) if not HOST_LIBRARIES.match(library)]
        if foreign:
            print(f"bundle: leaving out {name}: it needs {', '.join(foreign)}, which other machines may not have")
            continue
        copy(program, into / name)
        strip = shutil.which("strip")
        if strip is not None:  # names of functions stay, for backtraces; line numbers triple the size
            subprocess.run([strip, "--strip-debug", str(into / name)], check=True)


def pack_mpi(root: pathlib.Path) -> None:
    command = ["cmake", "--install", TREE, "--prefix", root, "--component", "mpi", "--strip"]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise BundleError(f"MPI cannot be packed: run 'make build' first\n{done.stdout}")


def pack_ucx(root: pathlib.Path) -> None:
    link = ROOT / "build" / "lib" / "libucx"
    if not link.exists():
        raise BundleError(
            "build/lib/libucx is missing: only the UCX of 'make setup' can be packed; run it, then 'make build'"
        )
    ucx = link.resolve()
    target = root / "lib" / "libucx"
    for name in UCX_LIBRARIES:
        copy(ucx / "lib" / name, target / "lib" / name)
    for name in UCX_MODULES:
        copy(ucx / "lib" / "ucx" / name, target / "lib" / "ucx" / name)
    for name in UCX_PROGRAMS:
        copy(ucx / "bin" / name, target / "bin" / name)
        write_script(root / "bin" / name, UCX_WRAPPER.replace("NAME", name))
    for extra in sorted(ucx.parent.glob("libucx_cu*.libs/*.so*")):
        copy(extra, root / "lib" / extra.parent.name / extra.name)
    for text in sorted(ucx.parent.glob("libucx_cu*.dist-info/licenses/LICENSE*")):
        copy(text, root / "lib" / "libucx" / text.name)


def pack_tar(folder: pathlib.Path) -> pathlib.Path:
    """Same input, same bytes: no names, no times, in order."""
    archive = folder.with_name(folder.name + ".tar.xz")

    def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = "root"
        return entry

    # The programs share most of their code: a dictionary that spans several of them packs three times as tight as gzip.
    packing = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 64 << 20}]
    with lzma.open(archive, "wb", filters=packing) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path in [folder, *sorted(folder.rglob("*"))]:
            tar.add(path, arcname=str(path.relative_to(folder.parent)), recursive=False, filter=anonymous)
    return archive


def bundle(with_tests: bool) -> pathlib.Path:
    folder = ROOT / "build" / "dist" / f"brant-{version()}-linux-x86_64"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bin").mkdir(parents=True)
    pack_programs((TREE / "programs.txt").read_text().split(), folder / "bin")
    if with_tests:
        lines = (TREE / "tests.tsv").read_text().splitlines()
        pack_programs([*dict.fromkeys(line.split("\t")[1] for line in lines if line), *TEST_HELPERS], folder / "bin")
        copy(TREE / "tests.tsv", folder / "bin" / "tests.tsv")
        write_script(folder / "bin" / "run_tests", RUN_TESTS)
    pack_mpi(folder)
    pack_ucx(folder)
    copy(ROOT / "LICENSE", folder / "LICENSE")
    return pack_tar(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--with-tests", action="store_true", help="pack the test programs too, with bin/run_tests")
    options = parser.parse_args()
    try:
        archive = bundle(options.with_tests)
    except BundleError as error:
        print(f"bundle: {error}", file=sys.stderr)
        return 1
    print(f"bundle: {archive.relative_to(ROOT)}: {archive.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
