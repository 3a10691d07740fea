#!/usr/bin/env python3
"""Runs the tests of the Python package with other versions of Python and of NumPy than those of .venv.

    tools/test_python_versions.py               # a wheel for each Python that is found here, and what it does
    tools/test_python_versions.py 3.10 3.13     # these
    tools/test_python_versions.py --numpy1      # nothing is built: the release tree and a NumPy before 2; a stage of CI

A wheel is built as `pip wheel .` does it, without kernels, in build/wheel-3.X and build/versions. It takes as long as
the release tree where ccache has not compiled that, and else a minute or two. What is tested is tests/python_api, but
for the wheel itself.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

import setup

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "versions"
NUMPY_1 = "1.26.4"
# The oldest with the oldest, and so on. 3.13t is the build of Python without a GIL, which comes back with brant.
NUMPY = {"3.10": NUMPY_1, "3.11": "2.4.6", "3.12": NUMPY_1, "3.13": "2.4.6", "3.13t": "2.4.6"}
LARGE = "test_an_array_of_three_gib_arrives"  # takes longest, and is no matter of NumPy
# For arrays, not for time-outs: what NumPy has a part in.
OF_NUMPY = (
    "arrays bench chares chares_together examples_of_python guide_of_python jacobi3d_of_python one_sided post_entries"
)


def run(*command: object, env: dict[str, str] | None = None, log: pathlib.Path | None = None) -> None:
    """Ends the program if it fails. With a log the output goes there, and its end is shown on failure."""
    print(f"+ {' '.join(map(str, command))}", flush=True)
    words = list(map(str, command))
    if log is None:
        code = subprocess.run(words, cwd=ROOT, env=env, stdin=subprocess.DEVNULL).returncode
    else:
        with log.open("w") as file:
            code = subprocess.run(
                words, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file
            ).returncode
        if code != 0:
            print("\n".join(log.read_text(errors="replace").splitlines()[-30:]))
    if code != 0:
        raise SystemExit(f"'{' '.join(words[:4])} ...' failed with exit status {code}")


def python_of(version: str) -> pathlib.Path | None:
    """An interpreter with its headers: this one, one on the PATH, or one of pyenv's."""
    folders = sorted(pathlib.Path.home().glob(f".pyenv/versions/{version.rstrip('t')}.*/bin"), reverse=True)
    candidates = [shutil.which(f"python{version}", path=path) for path in (None, *folders)]
    ask = "import sys, sysconfig, pathlib; print('%d.%d' % sys.version_info[:2] + sys.abiflags); "
    ask += "print(pathlib.Path(sysconfig.get_path('include'), 'Python.h').exists())"
    for candidate in filter(None, [sys.executable, *candidates]):
        done = subprocess.run([candidate, "-c", ask], text=True, capture_output=True)
        if done.stdout.split() == [version, "True"]:
            return pathlib.Path(candidate)
    return None


def environment_with(python: pathlib.Path, folder: pathlib.Path, *packages: str) -> pathlib.Path:
    """A new virtual environment with these packages: its interpreter."""
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", "--without-pip", folder)
    inside = folder / "bin" / "python"
    pip, env = setup.pip_command(pathlib.Path(sys.executable))
    run(*pip, "--python", inside, "install", "--quiet", "--only-binary", ":all:", *packages, env=env)
    return inside


def pin_of(package: str) -> str:
    """As `requirements.txt` has it."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return next(line for line in lines if line.startswith(package + "=="))


def test_a_wheel(version: str, options: list[str]) -> None:
    python = python_of(version)
    if python is None:
        raise SystemExit(f"there is no Python {version} with its headers on the PATH, nor in ~/.pyenv/versions")
    folder = FOLDER / version
    folder.mkdir(parents=True, exist_ok=True)
    builder = environment_with(
        python, folder / "builder", "pip", "tomli", *map(pin_of, ("nanobind", "scikit-build-core"))
    )
    for old in folder.glob("*.whl"):
        old.unlink()
    # Tools, compiler's name and UCX are those of .venv, and the folder is as deep as that of the release tree: ccache
    # knows what has been compiled there, and only what includes Python's headers is compiled anew.
    (site,) = (ROOT / ".venv").glob("lib/python3*/site-packages")
    (own,) = (folder / "builder").glob("lib/python3*/site-packages")
    for package in site.glob("libucx*"):
        (own / package.name).symlink_to(package)
    compiler = {"CXX": shutil.which("c++") or "c++", "CC": shutil.which("cc") or "cc"}
    path = os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ["PATH"]])
    build = ["--no-deps", "--no-build-isolation", "-w", folder, "-C", "cmake.define.BRANT_WITH_CUDA=OFF"]
    build += ["-C", f"build-dir={ROOT / 'build' / f'wheel-{version}'}"]
    env = {**os.environ, **compiler, "PATH": path}
    run(builder, "-m", "pip", "wheel", *build, ROOT, env=env, log=folder / "build.log")
    (wheel,) = folder.glob("brant-*.whl")
    inside = environment_with(python, folder / "venv", str(wheel), f"numpy=={NUMPY.get(version, '')}", pin_of("pytest"))
    (package,) = (folder / "venv").glob("lib/python3*/site-packages")
    env = {**os.environ, "BRANT_PYTHONPATH": str(package), "BRANT_BIN": str(folder / "venv" / "bin" / "brant")}
    run(inside, "-m", "pytest", "-q", "tests/python_api", "--ignore=tests/python_api/test_wheel.py", *options, env=env)


def test_numpy_1(options: list[str]) -> None:
    if sys.version_info >= (3, 13):
        print(f"skipped: NumPy {NUMPY_1} has no wheel for Python 3.{sys.version_info.minor}")
        return
    inside = environment_with(pathlib.Path(sys.executable), FOLDER / "numpy1", f"numpy=={NUMPY_1}", pin_of("pytest"))
    files = [f"tests/python_api/test_{name}.py" for name in OF_NUMPY.split()]
    run(inside, "-m", "pytest", "-q", *files, "--deselect", "tests/python_api/test_arrays.py::" + LARGE, *options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="3.X", help=f"of {', '.join(NUMPY)}; default those found here")
    parser.add_argument("--numpy1", action="store_true", help="the release tree and this Python, with an old NumPy")
    parser.add_argument("-k", metavar="WORDS", help="only tests of these names, as pytest has it")
    arguments = parser.parse_args()
    options = ["-k", arguments.k] if arguments.k else []
    if arguments.numpy1:
        return test_numpy_1(options)
    for version in arguments.versions:
        if version not in NUMPY:
            parser.error(f"'{version}' is none of {', '.join(NUMPY)}")
    for version in arguments.versions or [version for version in NUMPY if python_of(version)]:
        test_a_wheel(version, options)
    return None


if __name__ == "__main__":
    main()
