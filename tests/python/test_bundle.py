"""The packed folder runs from another place, with nothing of this tree and no environment."""

import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import bundle  # noqa: E402  (tools/ is no package)

pytestmark = pytest.mark.skipif(
    not (ROOT / "build" / "bin" / "brant").exists(), reason="needs the release build: run 'make build'"
)


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """The bundle, unpacked elsewhere."""
    packed = subprocess.run([sys.executable, ROOT / "tools" / "bundle.py"], text=True, capture_output=True)
    assert packed.returncode == 0, packed.stderr
    archive = ROOT / "build" / "dist" / f"brant-{bundle.version()}-linux-x86_64.tar.xz"
    where = tmp_path_factory.mktemp("elsewhere")
    with tarfile.open(archive) as tar:
        tar.extractall(where)
    return where / archive.name.removesuffix(".tar.xz")


def run_bare(*command) -> subprocess.CompletedProcess[str]:
    bare = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    return subprocess.run(command, env=bare, text=True, capture_output=True, timeout=60)


def test_is_small_enough_to_carry(moved):
    archive = next((ROOT / "build" / "dist").glob("*.tar.xz"))
    assert archive.stat().st_size < 40e6


def test_command_line_tool_starts(moved):
    done = run_bare(moved / "bin" / "brant", "--version")
    assert done.returncode == 0, done.stderr
    assert bundle.version() in done.stdout


def test_ucx_is_the_packed_one(moved):
    done = run_bare(moved / "bin" / "ucx_info", "-v")
    assert done.returncode == 0, done.stderr
    assert f"Library path: {moved}/lib/libucx/lib/" in done.stdout


def test_ucx_finds_its_modules(moved):
    done = run_bare(moved / "bin" / "ucx_info", "-d")
    assert done.returncode == 0, done.stderr
    assert "Transport: cma" in done.stdout  # cma comes from a module, tcp and posix do not


def test_programs_need_only_what_every_host_has(moved):
    for program in sorted((moved / "bin").iterdir()):
        if program.read_bytes()[:4] == b"\x7fELF" and program.name != "brant-ranks":
            assert [name for name in bundle.needed(program) if not bundle.HOST_LIBRARIES.match(name)] == []


HELLO = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int sum = 0, rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("sum %d\\n", sum);
  MPI_Finalize();
  return 0;
}
"""


def test_programs_of_mpi_are_compiled_and_run(moved, tmp_path):
    source, program = tmp_path / "hello.c", tmp_path / "hello"
    source.write_text(HELLO)
    done = run_bare(moved / "bin" / "mpicc", source, "-o", program)
    assert done.returncode == 0, done.stderr
    for options, expected in ((["-n", "2"], "sum 1"), (["-n", "2", "--ranks", "5"], "sum 10")):
        if "--ranks" in options and not (moved / "bin" / "brant-ranks").exists():
            continue
        done = run_bare(moved / "bin" / "brant", "run", *options, "--", program)
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout


def test_holds_one_copy_of_each_library(moved):
    libraries = [path for path in (moved / "lib").rglob("*.so*") if not path.is_symlink()]
    stems = [path.name.split(".so")[0] for path in libraries]
    assert len(stems) == len(set(stems))


def test_links_are_names_of_libraries_beside_them(moved):
    links = [path for path in moved.rglob("*") if path.is_symlink()]
    assert [path for path in links if "/" in str(path.readlink()) or not path.exists()] == []
    assert all(path.parent == moved / "lib" for path in links)


def test_names_no_folder_of_the_build_machine(moved):
    named = [path for path in (moved / "bin").iterdir() if str(ROOT).encode() + b"/" in path.read_bytes()]
    assert named == []


def test_tests_come_with_the_programs_that_they_start(tmp_path, monkeypatch):
    # The packing is that of any program: small ones of the system stand in for ours, which take a minute.
    tree, programs = tmp_path / "build" / "release", tmp_path / "build" / "bin"
    tree.mkdir(parents=True)
    programs.mkdir()
    (tmp_path / "LICENSE").write_text("")
    (tree / "CMakeCache.txt").write_text("CMAKE_PROJECT_VERSION:STATIC=1.2.3\n")
    (tree / "programs.txt").write_text("brant\n")
    tests = ["wire_ucx_test\twire_ucx_test\t0\t120\tmulti\t", "again\twire_ucx_test\t0\t120\tmulti\tA=1 B=2"]
    (tree / "tests.tsv").write_text("\n".join(tests) + "\n")
    for name in ("brant", "wire_ucx_test", "wire_peer", "boot_probe"):
        shutil.copy("/bin/true", programs / name)
    for name, value in (
        ("ROOT", tmp_path),
        ("TREE", tree),
        ("BIN", programs),
        ("pack_ucx", lambda root: None),
        ("pack_mpi", lambda root: None),
    ):
        monkeypatch.setattr(bundle, name, value)
    with tarfile.open(bundle.bundle(with_tests=True)) as tar:
        packed = {pathlib.Path(name).name for name in tar.getnames() if "/bin/" in name}
    assert packed == {"brant", "wire_ucx_test", "wire_peer", "boot_probe", "run_tests", "tests.tsv"}


def test_a_program_that_a_test_looks_for_is_packed_with_it():
    # Tests name it beside themselves: replace_filename("wire_peer"), beside_this_test("boot_probe").
    beside = r'(?:replace_filename|beside_this_test)\("(\w+)"\)'
    named = {name for file in (ROOT / "tests").rglob("*.cc") for name in re.findall(beside, file.read_text())}
    assert named - {"brant"} == set(bundle.TEST_HELPERS)
