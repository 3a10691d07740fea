"""`pip wheel .`, and the wheel in an environment that has nothing else of this tree. ccache has compiled its parts."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import setup  # noqa: E402  (tools/ is no package)

SITE = pathlib.Path(sysconfig.get_path("purelib"))
PROGRAM = """import brant
async def main():
    channel = brant.channel(1 - brant.rank(), 1)
    outgoing = channel.send(memoryview(bytes(range(200)) * 1000), {"from": brant.rank()})
    data, note = await channel.recv()
    await outgoing
    assert bytes(data) == bytes(range(200)) * 1000 and note == {"from": 1 - brant.rank()}
    print(brant.network())
brant.run(main())
"""


def bare(**more: str) -> dict[str, str]:
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "BRANT_GPU": "none", **more}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> pathlib.Path:
    """Built as a user builds it, but with the tools of `make setup` and without kernels, which nvcc takes long for."""
    folder = tmp_path_factory.mktemp("wheel")
    pip, env = setup.pip_command(pathlib.Path(sys.executable))
    # The compiler's name is part of what ccache knows an object by: the one that the release tree was built with.
    compiler = {"CXX": shutil.which("c++") or "c++", "CC": shutil.which("cc") or "cc"}
    options = ["--no-deps", "--no-build-isolation", "-C", "cmake.define.BRANT_WITH_CUDA=OFF", "-w", folder]
    command = [*pip, "wheel", "--quiet", *options, ROOT]
    done = subprocess.run(command, env={**env, **compiler}, text=True, capture_output=True, timeout=1500)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = folder.glob("brant-*.whl")
    return file


@pytest.fixture(scope="module")
def prefix(wheel, tmp_path_factory) -> pathlib.Path:
    """An environment with the wheel, and the one package that it needs."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip, env = setup.pip_command(pathlib.Path(sys.executable))
    command = [*pip, "--python", folder / "bin" / "python", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(command, env=env, check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    for package in SITE.glob("libucx*"):
        (site / package.name).symlink_to(package)
    return folder


def test_a_program_runs_with_what_the_wheel_brings(prefix, tmp_path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    program = [prefix / "bin" / "python", "program.py"]
    command = [prefix / "bin" / "brant", "run", "-n", "2", "--timeout", "60", "--", *program]
    done = subprocess.run(command, cwd=tmp_path, env=bare(), text=True, capture_output=True, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(f"({SITE}/libucx/") == 2, done.stdout  # found beside the package, and a link there


def test_what_is_shipped_needs_no_cuda_no_mpi_and_is_there_once(prefix) -> None:
    libraries = [file for file in (*prefix.rglob("*brant*.so*"), prefix / "bin" / "brant") if not file.is_symlink()]
    assert len(libraries) == 3, libraries
    for library in libraries:
        needed = subprocess.run(["readelf", "-d", library], text=True, capture_output=True, check=True).stdout
        for outside in ("libcuda", "libmpi", "libpmix", "libucp", "libnccl"):
            assert outside not in needed, f"{library} needs {outside}"


def test_the_wheel_is_small(wheel) -> None:
    assert wheel.stat().st_size < 6e6  # libbrant.so is the one that MPI uses, too


def test_kernels_find_their_headers(prefix) -> None:
    program = "import brant; from brant._device_code import numba_source; numba_source(); print(brant.include_dir())"
    done = subprocess.run([prefix / "bin" / "python", "-c", program], env=bare(), text=True, capture_output=True)
    folder = pathlib.Path(done.stdout.strip())
    assert done.returncode == 0 and folder.is_relative_to(prefix), done.stdout + done.stderr
    for header in [*(ROOT / "include").rglob("*.cuh"), ROOT / "include" / "brant" / "base" / "simt.h"]:
        assert (folder / header.relative_to(ROOT / "include")).read_bytes() == header.read_bytes()


def test_the_command_is_there(prefix) -> None:
    done = subprocess.run([prefix / "bin" / "brant", "--version"], env=bare(), text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
