"""A UCX that something else, as MPI does, has loaded into the process before brant starts."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import BRANT, environment, run_command

# The UCX that the wheel of MPICH brings, for mpi4py.
FOREIGN = pathlib.Path(sys.prefix) / "lib" / "mpich" / "libucp.so.0"
needs_foreign = pytest.mark.skipif(not FOREIGN.exists(), reason="there is no wheel of MPICH, which brings a UCX")

RING = """
async def main():
    channel = brant.channel(brant.rank(), 1)
    other = brant.channel(brant.rank(), 1)
    sent = channel.send("it works")
    print(await other.recv())
    await sent

brant.run(main())
"""


def run(program: str, **more: str) -> subprocess.CompletedProcess[str]:
    return run_command([sys.executable, "-c", program], BRANT_PATH="auto", **more)


@needs_foreign
def test_a_warning_names_the_library_and_the_cure() -> None:
    done = run(f"import ctypes; ctypes.CDLL({str(FOREIGN)!r}); import brant; print(brant.network())" + RING)
    assert done.returncode == 0, done.stderr
    assert str(FOREIGN.resolve()) in done.stdout and "it works" in done.stdout
    warning = next(line for line in done.stderr.splitlines() if "ForeignLibraryWarning" in line)
    assert str(FOREIGN.resolve()) in warning and "loaded first" in warning and "Cure: start brant" in warning


@needs_foreign
def test_mpi4py_that_comes_first_is_named_as_well() -> None:
    pytest.importorskip("mpi4py")
    caught = "with warnings.catch_warnings(record=True) as said: brant.init()"
    shown = "print([str(one.message) for one in said if one.category is brant.ForeignLibraryWarning])"
    done = run(f"from mpi4py import MPI\nimport warnings, brant\n{caught}\n{shown}")
    assert done.returncode == 0, done.stderr
    assert "libucp" in done.stdout and "which is often MPI" in done.stdout


@needs_foreign
def test_the_warning_can_be_an_error() -> None:
    program = f"""
import ctypes, warnings
ctypes.CDLL({str(FOREIGN)!r})
import brant
warnings.simplefilter("error", brant.ForeignLibraryWarning)
try:
    brant.init()
except brant.ForeignLibraryWarning as warning:
    print("refused:", warning)
print(brant.rank())
"""
    done = run(program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused: brant uses UCX ") and done.stdout.endswith("\n0\n"), (
        "brant runs all the same"
    )


@needs_foreign
def test_whoever_loads_brant_s_first_has_it() -> None:
    """MPI then works with that one too, since it asks for the library by its name alone."""
    pytest.importorskip("libucx")
    pytest.importorskip("mpi4py")
    done = run(
        "import libucx; libucx.load_library()\nfrom mpi4py import MPI\nimport brant; print(brant.network())" + RING
    )
    assert done.returncode == 0, done.stderr
    assert "it works" in done.stdout and "/libucx/lib/" in done.stdout and "ForeignLibraryWarning" not in done.stderr


@needs_foreign
def test_another_one_than_the_one_asked_for_ends_the_start() -> None:
    libucx = pytest.importorskip("libucx")
    wanted = pathlib.Path(libucx.__file__).parent / "lib"
    done = run(f"import ctypes; ctypes.CDLL({str(FOREIGN)!r}); import brant; brant.init()", BRANT_UCX=str(wanted))
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("brant._errors.VersionMismatch: ") and str(FOREIGN.resolve()) in last and "Cure:" in last


OLD = """
void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release) { *major = 1, *minor = 10, *release = 1; }
const char* ucp_get_version_string(void) { return "1.10.1"; }
"""


def test_one_that_is_too_old_ends_the_start_with_its_name(tmp_path: pathlib.Path) -> None:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("there is no compiler of C, which makes an old UCX")
    library = tmp_path / "libucp.so.0"
    make = [compiler, "-shared", "-fPIC", "-Wl,-soname,libucp.so.0", "-x", "c", "-", "-o", str(library)]
    subprocess.run(make, input=OLD, text=True, check=True, env=environment())
    # Of two: one alone needs no network.
    program = f"import ctypes; ctypes.CDLL({str(library)!r}); import brant; brant.init()"
    done = run_command([str(BRANT), "run", "-n", "2", "--timeout", "30", "--", sys.executable, "-c", program])
    assert done.returncode != 0
    said = done.stderr.partition("brant._errors.VersionMismatch: ")[2]
    for part in (str(library), "UCX 1.10.1", "another library of this process loaded it first", "Cure: start brant"):
        assert part in said, done.stderr
