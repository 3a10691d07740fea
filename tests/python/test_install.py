"""What `cmake --install` leaves, as a user's project finds it: without this tree, its Python or a UCX of the system."""

import ctypes.util
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

# Each source is compiled once, and linked with the static libraries and with libbrant.so.
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(brant REQUIRED)
foreach(name IN ITEMS swap where)
  add_library(${name}_objects OBJECT ${name}.cc)
  target_link_libraries(${name}_objects PRIVATE brant::brant)
  foreach(form IN ITEMS brant shared)
    add_executable(${name}_${form} $<TARGET_OBJECTS:${name}_objects>)
    target_link_libraries(${name}_${form} PRIVATE brant::${form})
    set_target_properties(${name}_${form} PROPERTIES LINKER_LANGUAGE CXX)
  endforeach()
endforeach()
add_executable(device device.cc)
add_executable(host host.cc)
foreach(name IN ITEMS Left Right)
  add_library(${name} MODULE plugin.cc)
  target_compile_definitions(${name} PRIVATE GREETER=${name})
  target_link_libraries(${name} PRIVATE brant::shared)
endforeach()
foreach(name IN ITEMS device host)
  target_link_libraries(${name} PRIVATE brant::shared ${CMAKE_DL_LIBS})
endforeach()
"""
WHERE = """#include <cstdio>
#include "brant/brant.h"
int main() { std::puts(brant::Runtime().network().c_str()); }
"""
DEVICE = """#include <cstdio>
#include "brant/device.h"
void twice(int* values, int count) noexcept {
  for (int i = 0; i < count; ++i) values[i] *= 2;
}
int main() {
  brant::Runtime runtime;
  const brant::Device device = runtime.device();
  const brant::Kernel<int*, int> kernel(device, {}, "twice", brant::host_version<twice>);
  brant::Stream stream = device.create_stream();
  brant::Event event = device.create_event();
  const brant::Memory memory = runtime.allocate(device.kind(), 2 * sizeof(int));
  int values[2] = {3, 20};
  bool ok = stream.copy(memory, std::span<int>(values)) == brant::Status::ok;
  ok = ok && kernel.launch({}, stream, memory.as<int>(), 2) == brant::Status::ok;
  ok = ok && stream.copy(std::span<int>(values), memory) == brant::Status::ok;
  ok = ok && stream.record(event) == brant::Status::ok && stream.synchronize() == brant::Status::ok;
  std::printf("%s: %d and %d\\n", device.info().name.c_str(), values[0], values[1]);
  return ok && event.poll() == brant::Status::ok ? 0 : 1;
}
"""
# A chare class that the program does not know.
PLUGIN = """#include <string>
#include "brant/chare.h"
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
class GREETER : public brant::Chare<GREETER, brant::Single> {
 public:
  std::string greet(int number) {
    return TEXT(GREETER) " on rank " + std::to_string(chares().rank().value) + " says " + std::to_string(number);
  }
};
extern "C" brant::Future<std::string> greet(brant::Chares& chares, int rank, int number) {
  return brant::create_chare<GREETER>(chares, brant::Rank{rank}).ask<&GREETER::greet>(number);
}
"""
HOST = """#include <dlfcn.h>
#include <cstdio>
#include <map>
#include <string>
#include "brant/chare.h"
using Greet = brant::Future<std::string> (*)(brant::Chares&, int, int);
std::map<std::string, Greet> greet;
class Loader : public brant::Chare<Loader, brant::Index<1>> {
 public:
  brant::Task<int> open(std::string folder, std::string first, std::string second) {
    for (const std::string& name : {first, second}) {
      void* library = dlopen((folder + "/lib" + name + ".so").c_str(), RTLD_NOW | RTLD_NODELETE);
      if (library == nullptr) throw brant::Error(brant::Status::not_found, dlerror());
      greet[name] = reinterpret_cast<Greet>(dlsym(library, "greet"));
      co_await chares().enroll_late();
    }
    co_return 0;
  }
};
brant::Task<void> program(brant::Chares& chares, std::string folder) {
  const auto loaders = brant::create_array<Loader>(chares, {chares.size()}, brant::Placement::round_robin());
  co_await loaders[{0}].ask<&Loader::open>(folder, "Left", "Right");
  auto early = greet["Right"](chares, 1, 1);  // nobody has opened it there
  co_await loaders[{1}].ask<&Loader::open>(folder, "Right", "Left");
  std::printf("early: %s\\n", (co_await early).c_str());
  for (const char* name : {"Left", "Right"}) {
    for (const int rank : {0, 1}) {
      auto reply = greet[name](chares, rank, 2);
      std::printf("%s\\n", (co_await reply).c_str());
    }
  }
}
int main(int, char** arguments) {
  brant::Runtime runtime;
  brant::Chares chares(runtime);
  return chares.run(program(chares, arguments[1]));
}
"""


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """In an environment that knows nothing of this tree."""
    bare = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), **environment}
    return subprocess.run([str(word) for word in command], env=bare, text=True, capture_output=True, timeout=300)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory) -> pathlib.Path:
    """An installed tree, moved after it was installed."""
    folder = tmp_path_factory.mktemp("installed") / "brant"
    done = run(CMAKE, "--install", TREE, "--prefix", folder)
    assert done.returncode == 0, done.stderr
    return folder.rename(tmp_path_factory.mktemp("moved") / "brant")


@pytest.fixture(scope="module")
def project(prefix, tmp_path_factory) -> pathlib.Path:
    """The build folder of a user's project."""
    folder = tmp_path_factory.mktemp("project")
    sources = {"where.cc": WHERE, "device.cc": DEVICE, "plugin.cc": PLUGIN, "host.cc": HOST, "CMakeLists.txt": PROJECT}
    sources["swap.cc"] = (ROOT / "examples/01_swap/swap.cc").read_text()
    for name, text in sources.items():
        (folder / name).write_text(text)
    build = folder / "build"
    done = run(CMAKE, "-S", folder, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    assert done.returncode == 0, done.stderr
    done = run(CMAKE, "--build", build, "--parallel", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    return build


def ucx_of(prefix: pathlib.Path) -> pathlib.Path:
    return prefix / "lib" / "libucx" / "lib"


def test_installed_programs_take_the_ucx_that_was_installed_with_them(prefix):
    done = run(prefix / "bin" / "brant", "info", "--json")
    assert done.returncode == 0, done.stderr
    assert str(ucx_of(prefix)) in done.stdout


@pytest.mark.parametrize("form", ["brant", "shared"])
def test_a_users_project_finds_the_package_and_its_program_the_ucx(prefix, project, form):
    swap = project / f"swap_{form}"
    done = run(prefix / "bin" / "brant", "run", "-n", "2", "--timeout", "60", "--", swap, BRANT_GPU="none")
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        assert f"rank {rank} has the 1048576 bytes of rank {1 - rank}" in done.stdout
    done = run(project / f"where_{form}", BRANT_GPU="none")
    assert done.returncode == 0, done.stderr
    assert str(ucx_of(prefix)) in done.stdout
    needed = run("readelf", "-d", project / f"where_{form}").stdout
    assert ("libbrant.so." in needed) == (form == "shared"), needed


def test_a_program_needs_nothing_but_public_headers_for_streams_and_kernels(project):
    done = run(project / "device", BRANT_GPU="emulated")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "emulated: 6 and 40\n"


def test_plug_ins_that_are_opened_in_different_orders_share_one_runtime(prefix, project):
    job = run(
        prefix / "bin" / "brant", "run", "-n", "2", "--timeout", "60", "--", project / "host", project, BRANT_GPU="none"
    )
    assert job.returncode == 0, job.stderr
    for line in (
        "early: Right on rank 1 says 1",
        *(f"{name} on rank {rank} says 2" for name in ("Left", "Right") for rank in (0, 1)),
    ):
        assert line in job.stdout


def test_the_shared_library_exports_names_of_brant_and_nothing_else(prefix):
    (library,) = prefix.glob("lib*/**/libbrant.so")
    assert library.resolve().name.startswith("libbrant.so.0.")
    symbols = run("nm", "-D", "--defined-only", library).stdout
    names = subprocess.run(["c++filt"], input=symbols, text=True, capture_output=True, check=True).stdout
    exported = {line.split(maxsplit=2)[2] for line in names.splitlines()}
    public = re.compile(r"(typeinfo for |typeinfo name for |vtable for )?brant::(?!port::|am::|log::|test::)")
    assert [name for name in sorted(exported) if not public.match(name)] == []
    for name in ("brant::Runtime::~Runtime()", "brant::Channel::close()", "typeinfo for brant::Error"):
        assert name in exported
    hidden = ("brant::Engine::", "brant::ChannelEndpoint::", "brant::detail::Core::", "fmt::", "std::")
    assert [name for name in exported if name.startswith(hidden)] == []


def test_every_example_finds_in_the_shared_library_what_its_headers_declare(prefix, tmp_path):
    (library,) = prefix.glob("lib*/**/libbrant.so")
    examples = sorted((TREE / "examples").glob("*/CMakeFiles/*.dir/*.cc.o"))
    assert len(examples) == len(list((ROOT / "examples").glob("*/*.cc")))
    for example in examples:
        done = run("g++", example, library, "-o", tmp_path / "example")
        assert done.returncode == 0, f"{example.name} wants something that has no BRANT_API:\n{done.stderr}"


def test_nothing_that_was_installed_names_the_folder_of_the_build(prefix):
    for file in [*prefix.rglob("*.pc"), *prefix.rglob("*.cmake"), *prefix.rglob("libbrant.a")]:
        assert str(ROOT) not in file.read_text(), file
    (library,) = prefix.glob("lib*/**/libbrant.so")
    assert "$ORIGIN/" in run("readelf", "-d", library).stdout


@pytest.mark.skipif(ctypes.util.find_library("ucp") is not None, reason="this system has a UCX of its own")
def test_without_a_ucx_the_message_names_cures_that_cure(prefix, project):
    aside = prefix / "lib" / "aside"
    job = [prefix / "bin" / "brant", "run", "-n", "2", "--timeout", "60", "--", project / "where_shared"]
    ucx_of(prefix).parent.rename(aside)
    try:
        done = run(*job, BRANT_GPU="none")
        assert done.returncode == 1
        assert "no UCX library found" in done.stderr
        assert "pip install libucx-cu13 into the active Python environment" in done.stderr
        assert "BRANT_UCX=PATH" in done.stderr
        cured = run(*job, BRANT_GPU="none", VIRTUAL_ENV=str(ROOT / ".venv"))
        assert cured.returncode == 0, cured.stderr
        assert "UCX 1." in cured.stdout
        cured = run(*job, BRANT_GPU="none", BRANT_UCX=str(aside / "lib" / "libucp.so.0"))
        assert cured.returncode == 0, cured.stderr
        assert str(aside) in cured.stdout
    finally:
        aside.rename(ucx_of(prefix).parent)


def pc_fields(file: pathlib.Path) -> dict[str, str]:
    """What a .pc file says, its variables put in, as pkg-config does it."""
    variables, fields = {"pcfiledir": str(file.parent)}, {}
    for line in file.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, sign, text = re.fullmatch(r"([\w.]+)(=|: )(.*)", line).groups()
        (variables if sign == "=" else fields)[name] = re.sub(r"\$\{(\w+)\}", lambda at: variables[at[1]], text)
    return fields


@pytest.fixture(scope="module")
def pc_file(prefix) -> pathlib.Path:
    (file,) = prefix.glob("lib*/**/pkgconfig/brant.pc")
    return file


@pytest.mark.parametrize("static", [False, True])
def test_a_users_program_builds_by_hand_with_what_the_pc_file_says(prefix, pc_file, project, tmp_path, static):
    fields = pc_fields(pc_file)
    libs = fields["Libs"].split()
    if static:
        libs = ["-Wl,-Bstatic", *libs, *fields["Libs.private"].split()]
    source = project.parent / "where.cc"
    done = run("g++", *fields["Cflags"].split(), source, "-o", tmp_path / "where", *libs)
    assert done.returncode == 0, done.stderr
    done = run(tmp_path / "where", BRANT_GPU="none")
    assert done.returncode == 0, done.stderr
    assert str(ucx_of(prefix).resolve()) in str(pathlib.Path(done.stdout.split("(")[1]).resolve())
    assert ("libbrant.so." in run("readelf", "-d", tmp_path / "where").stdout) == (not static)


def test_libbrant_a_names_every_library_that_was_installed(prefix):
    (archive,) = prefix.glob("lib*/**/libbrant.a")
    named = set(re.findall(r"-l(brant_\w+)", archive.read_text()))
    assert named == {library.stem.removeprefix("lib") for library in prefix.rglob("libbrant_*.a")}


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="needs pkg-config")
@pytest.mark.parametrize("static", [False, True])
def test_pkg_config_reads_the_pc_file_as_these_tests_do(pc_file, static):
    wanted = ["--static"] if static else []
    done = run("pkg-config", *wanted, "--cflags", "--libs", "brant", PKG_CONFIG_PATH=str(pc_file.parent))
    assert done.returncode == 0, done.stderr
    fields = pc_fields(pc_file)
    private = fields["Libs.private"].split() if static else []
    said = done.stdout.split()
    assert set(said) == {*fields["Cflags"].split(), *fields["Libs"].split(), *private}
    if static:
        assert said.index("-lbrant") < said.index("-Wl,-Bdynamic") < said.index("-ldl")


def test_an_older_language_standard_is_refused_with_the_cure(prefix, tmp_path):
    (tmp_path / "where.cc").write_text(WHERE)
    done = run("g++", "-std=c++17", "-fsyntax-only", f"-I{prefix}/include", tmp_path / "where.cc")
    assert done.returncode != 0
    assert "brant needs C++20: compile with -std=c++20" in done.stderr.split("error:")[1], done.stderr


def test_nothing_that_only_tests_use_is_installed(prefix):
    assert [str(file) for file in prefix.rglob("*faulty*")] == []
    assert [str(file) for file in prefix.rglob("libbrant_test*")] == []
