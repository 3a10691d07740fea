"""The CMake functions, on a small project of their own: what folders of brant rely on, and what misuse says."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"

pytestmark = pytest.mark.skipif(not (VENV / "bin" / "cmake").exists(), reason="needs .venv: run 'make setup'")

SOURCES = {
    "include/brant/describe.h": "#include <string>\nstd::string describe();\n",
    "src/base/CMakeLists.txt": "brant_fatbin(NAME one_kernels SOURCE one.cu)\n"
    "brant_library(NAME brant_base SOURCES base.cc DEPS one_kernels fmt::fmt-header-only)\n",
    "src/base/one.cu": '#include "base/factor.h"\n'
    'extern "C" __global__ void scale(float* x) { x[threadIdx.x] *= kFactor; }\n',
    "src/base/factor.h": "constexpr float kFactor = 2;\n",
    "src/base/base.cc": '#include <fmt/format.h>\n#include <cstddef>\n#include "brant/describe.h"\n'
    'extern "C" const unsigned char one_kernels_fatbin[];\n'
    'extern "C" const std::size_t one_kernels_fatbin_bytes;\n'
    "std::string describe() {\n"
    '  return fmt::format("{} {:02x}", one_kernels_fatbin_bytes, one_kernels_fatbin[0]);\n}\n',
    "apps/CMakeLists.txt": "brant_executable(NAME show SOURCES show.cc DEPS brant_base)\n",
    "apps/show.cc": '#include <cstdio>\n#include "brant/describe.h"\nint main() { std::puts(describe().c_str()); }\n',
    "tests/unit/CMakeLists.txt": "brant_test(NAME a_test LABELS unit SOURCES a_test.cc DEPS brant_base)\n"
    "brant_test(NAME pair_test LABELS multi RANKS 2 SOURCES a_test.cc DEPS brant_base)\n",
    "tests/unit/a_test.cc": "#include <gtest/gtest.h>\nTEST(A, passes) {}\n"
    'TEST(A, skips) { GTEST_SKIP() << "no reason to run"; }\n',
}


class Project:
    """A copy of brant's build files around a few sources."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "cmake", folder / "cmake")
        for name in ("CMakeLists.txt", "src/CMakeLists.txt", "tests/CMakeLists.txt", "tests/main.cc"):
            self.write(name, (ROOT / name).read_text())
        for name, text in SOURCES.items():
            self.write(name, text)
        for name in (".venv", ".deps"):
            (folder / name).symlink_to(ROOT / name)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        env = dict(os.environ, PATH=f"{VENV / 'bin'}:{os.environ['PATH']}")
        return subprocess.run(command, cwd=self.folder, env=env, text=True, capture_output=True, timeout=300)

    def configure(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self.run("cmake", "-G", "Ninja", "-S", ".", "-B", "build", "-DBRANT_CUDA_SASS=90", *options)

    def build(self) -> subprocess.CompletedProcess[str]:
        return self.run("cmake", "--build", "build", "-j", "2")


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")


def test_embeds_kernels_and_rebuilds_them_when_a_header_changes(project):
    assert project.configure("-DBRANT_WITH_CUDA=ON").returncode == 0
    built = project.build()
    assert built.returncode == 0, built.stdout
    size, first_byte = project.run("build/bin/show").stdout.split()
    assert int(size) > 1000
    assert first_byte == "50"  # the first byte of a fat binary's magic number, 0xba55ed50

    project.write("src/base/factor.h", "constexpr float kFactor = 3;\n")
    assert "Compiling GPU kernels one_kernels" in project.build().stdout
    assert "no work to do" in project.build().stdout


def test_without_nvcc_images_are_empty_and_everything_else_works(project):
    configured = project.configure("-DBRANT_WITH_CUDA=OFF")
    assert configured.returncode == 0, configured.stderr
    assert "pair_test (2 ranks) is built but not registered" in configured.stdout
    built = project.build()
    assert built.returncode == 0, built.stdout
    assert project.run("build/bin/show").stdout == "0 00\n"

    tested = project.run("ctest", "--test-dir", "build")
    assert "100% tests passed, 0 tests failed out of 1" in tested.stdout
    listed = project.run("python", str(ROOT / "tools" / "run_tests.py"), "--skips", "build")
    assert "1 x no reason to run" in listed.stdout

    assert project.run("cmake", "--install", "build", "--prefix", str(project.folder / "prefix")).returncode == 0
    project.write("user/user.cc", '#include "brant/describe.h"\nint main() { return describe().empty(); }\n')
    project.write(
        "user/CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.25)\nproject(user CXX)\nfind_package(brant REQUIRED)\n"
        "add_executable(user user.cc)\ntarget_link_libraries(user brant::brant)\n",
    )
    found = project.run("cmake", "-S", "user", "-B", "user/build", f"-DCMAKE_PREFIX_PATH={project.folder}/prefix")
    assert found.returncode == 0, found.stderr
    assert project.run("cmake", "--build", "user/build").returncode == 0
    assert project.run("user/build/user").returncode == 0


def test_cuda_on_without_nvcc_fails_with_the_cure(project):
    configured = project.configure(
        "-DBRANT_WITH_CUDA=ON",
        "-DBRANT_NVCC=BRANT_NVCC-NOTFOUND",
        "-DCMAKE_FIND_USE_PACKAGE_ROOT_PATH=OFF",
        "-DCMAKE_PROGRAM_PATH=",
        "-DBRANT_VENV=/nonexistent",
        f"-DBRANT_UCX_INCLUDE={ucx_include()}",
        f"-DBRANT_CUDA_INCLUDE={ucx_include()}",
    )
    if configured.returncode == 0:
        pytest.skip("this machine has an nvcc of its own")
    assert "nvcc was not found" in configured.stderr
    assert "make setup" in configured.stderr


def ucx_include() -> pathlib.Path:
    return next(VENV.glob("lib/python3*/site-packages/libucx/include"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("brant_library(NAME brant_x SOURCE x.cc)", "unknown arguments: SOURCE;x.cc"),
        ("brant_library(SOURCES x.cc)", "NAME is missing"),
        ("brant_test(NAME x_test LABELS slow SOURCES x.cc)", "unknown label 'slow'"),
        ("brant_test(NAME x_test SOURCES x.cc)", "LABELS is missing"),
        ("brant_test(NAME x_test LABELS unit SOURCES x.cc FILTER -X.*)", "FILTER is for SAME_AS"),
    ],
)
def test_misuse_is_refused(project, line, message):
    project.write("src/base/CMakeLists.txt", line + "\n")
    project.write("src/base/x.cc", "")
    configured = project.configure("-DBRANT_WITH_CUDA=OFF")
    assert configured.returncode != 0
    assert message in " ".join(configured.stderr.split())


def test_a_dependency_that_no_folder_defines_is_named(project):
    project.write("src/base/CMakeLists.txt", "brant_library(NAME brant_base SOURCES base.cc DEPS brant_misspelt)\n")
    assert "target brant_base names brant_misspelt in DEPS" in " ".join(
        project.configure("-DBRANT_WITH_CUDA=OFF").stderr.split()
    )
