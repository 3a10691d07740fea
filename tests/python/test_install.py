"""What `cmake --install` leaves, as a user's project finds it: without this tree, its Python or a UCX of the system."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREE = ROOT / "build" / "release"
CMAKE = ROOT / ".venv" / "bin" / "cmake"

pytestmark = pytest.mark.skipif(not (TREE / "programs.txt").exists(), reason="needs build/release: run 'make build'")

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(brant REQUIRED)
foreach(name IN ITEMS swap where)
  add_executable(${name} ${name}.cc)
  target_link_libraries(${name} PRIVATE brant::brant)
endforeach()
"""
WHERE = """#include <cstdio>
#include "brant/brant.h"
int main() { std::puts(brant::Runtime().network().c_str()); }
"""


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """In an environment that knows nothing of this tree."""
    bare = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), **environment}
    return subprocess.run([str(word) for word in command], env=bare, text=True, capture_output=True, timeout=300)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("installed") / "brant"
    done = run(CMAKE, "--install", TREE, "--prefix", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_installed_programs_take_the_ucx_that_was_installed_with_them(prefix):
    done = run(prefix / "bin" / "brant", "info", "--json")
    assert done.returncode == 0, done.stderr
    assert str(prefix / "lib" / "libucx" / "lib") in done.stdout


def test_a_users_project_finds_the_package_and_its_program_the_ucx(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "swap.cc").write_text((ROOT / "examples/01_swap/swap.cc").read_text())
    (tmp_path / "where.cc").write_text(WHERE)
    build = tmp_path / "build"
    done = run(CMAKE, "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
    assert done.returncode == 0, done.stderr
    done = run(CMAKE, "--build", build)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run(prefix / "bin" / "brant", "run", "-n", "2", "--timeout", "60", "--", build / "swap", BRANT_GPU="none")
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        assert f"rank {rank} has the 1048576 bytes of rank {1 - rank}" in done.stdout
    done = run(build / "where", BRANT_GPU="none")
    assert done.returncode == 0, done.stderr
    assert str(prefix / "lib" / "libucx" / "lib") in done.stdout


def pc_fields(file: pathlib.Path) -> dict[str, str]:
    """What a .pc file says, its variables put in, as pkg-config does it."""
    variables, fields = {"pcfiledir": str(file.parent)}, {}
    for line in filter(None, file.read_text().splitlines()):
        name, sign, text = re.fullmatch(r"(\w+)(=|: )(.*)", line).groups()
        (variables if sign == "=" else fields)[name] = re.sub(r"\$\{(\w+)\}", lambda at: variables[at[1]], text)
    return fields


@pytest.fixture(scope="module")
def pc_file(prefix) -> pathlib.Path:
    (file,) = prefix.glob("lib*/**/pkgconfig/brant.pc")
    return file


def test_a_users_program_builds_by_hand_with_what_the_pc_file_says(prefix, pc_file, tmp_path):
    (tmp_path / "where.cc").write_text(WHERE)
    fields = pc_fields(pc_file)
    done = run(
        "g++", *fields["Cflags"].split(), tmp_path / "where.cc", "-o", tmp_path / "where", *fields["Libs"].split()
    )
    assert done.returncode == 0, done.stderr
    done = run(tmp_path / "where", BRANT_GPU="none")
    assert done.returncode == 0, done.stderr
    assert str((prefix / "lib" / "libucx" / "lib").resolve()) in str(pathlib.Path(done.stdout.split("(")[1]).resolve())


def test_the_pc_file_names_every_library_that_was_installed(prefix, pc_file):
    named = set(re.findall(r"-l(brant_\w+)", pc_fields(pc_file)["Libs"]))
    assert named == {library.stem.removeprefix("lib") for library in prefix.rglob("libbrant_*.a")}


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="needs pkg-config")
def test_pkg_config_reads_the_pc_file_as_these_tests_do(pc_file):
    done = run("pkg-config", "--cflags", "--libs", "brant", PKG_CONFIG_PATH=str(pc_file.parent))
    assert done.returncode == 0, done.stderr
    fields = pc_fields(pc_file)
    assert set(done.stdout.split()) == set(fields["Cflags"].split()) | set(fields["Libs"].split())


def test_an_older_language_standard_is_refused_with_the_cure(prefix, tmp_path):
    (tmp_path / "where.cc").write_text(WHERE)
    done = run("g++", "-std=c++17", "-fsyntax-only", f"-I{prefix}/include", tmp_path / "where.cc")
    assert done.returncode != 0
    assert "brant needs C++20: compile with -std=c++20" in done.stderr.split("error:")[1], done.stderr


def test_nothing_that_only_tests_use_is_installed(prefix):
    assert [str(file) for file in prefix.rglob("*faulty*")] == []
    assert [str(file) for file in prefix.rglob("libbrant_test*")] == []
