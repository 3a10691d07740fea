#include "models/mpi/ranks/executable_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brant/base/status.h"
#include "models/mpi/ranks/thread_local_window.h"
#include "support/mutation.h"
#include "support/refused.h"
#include "support/temporary_folder.h"

namespace brant::mpi {
namespace {

using test::Mutation;
using test::refused;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kNames[] = "\0libmpi_abi.so.1\0libc.so.6\0$ORIGIN/lib:/opt/lib\0libmpi.so.40";

/// A program as a linker lays it, as short as can be: addresses are the places in the file.
struct Layout {
  Elf64_Ehdr header = {};
  Elf64_Phdr interpreter = {};
  Elf64_Phdr loaded = {};
  Elf64_Phdr dynamic_segment = {};
  Elf64_Phdr thread_locals = {};
  Elf64_Dyn needed = {DT_NEEDED, {1}};
  Elf64_Dyn needed_too = {DT_NEEDED, {17}};
  Elf64_Dyn run_path = {DT_RUNPATH, {27}};
  Elf64_Dyn strings = {DT_STRTAB, {}};
  Elf64_Dyn strings_bytes = {DT_STRSZ, {sizeof kNames}};
  Elf64_Dyn flags = {DT_FLAGS_1, {DF_1_PIE | DF_1_NOW}};
  Elf64_Dyn init_array = {DT_INIT_ARRAY, {}};
  Elf64_Dyn init_array_bytes = {DT_INIT_ARRAYSZ, {16}};
  Elf64_Dyn fini = {DT_FINI, {}};
  Elf64_Dyn end = {DT_NULL, {}};
  std::uint64_t functions[2] = {};
  char names[sizeof kNames] = {};
  char code[16] = {};

  Layout();
};

Layout::Layout() {
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_entry = offsetof(Layout, code);
  header.e_phoff = offsetof(Layout, interpreter);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 4;
  interpreter.p_type = PT_INTERP;
  loaded.p_type = PT_LOAD;
  loaded.p_flags = PF_R | PF_W | PF_X;
  loaded.p_filesz = loaded.p_memsz = sizeof(Layout);
  dynamic_segment.p_type = PT_DYNAMIC;
  dynamic_segment.p_offset = dynamic_segment.p_vaddr = offsetof(Layout, needed);
  dynamic_segment.p_filesz = dynamic_segment.p_memsz = offsetof(Layout, functions) - offsetof(Layout, needed);
  thread_locals.p_type = PT_TLS;
  thread_locals.p_vaddr = thread_locals.p_offset = offsetof(Layout, code);
  thread_locals.p_filesz = 8;
  thread_locals.p_memsz = 40;
  thread_locals.p_align = 16;
  strings.d_un.d_val = offsetof(Layout, names);
  init_array.d_un.d_val = offsetof(Layout, functions);
  fini.d_un.d_val = offsetof(Layout, code);
  std::memcpy(names, kNames, sizeof kNames);
}

class ExecutableFileTest : public ::testing::Test {
 protected:
  std::string write(std::span<const std::byte> bytes, const std::string& name = "program") const {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    file.close();
    ::chmod(path.c_str(), 0700);
    return path;
  }
  std::string write(const Layout& layout) const { return write(std::as_bytes(std::span(&layout, 1))); }
  std::string write(const std::string& text) const { return write(std::as_bytes(std::span(text))); }
  template <typename Content>
  std::string refusal(const Content& content) const {
    const std::string path = write(content);
    return refused([&path] { read_executable_file(path); });
  }

  TemporaryFolder folder_;
};

TEST_F(ExecutableFileTest, says_what_the_loader_needs) {
  const std::string path = write(Layout());
  const ExecutableFile file = read_executable_file(path);
  EXPECT_EQ(file.path, path);
  EXPECT_GE(file.fd.get(), 0);
  EXPECT_EQ(file.loaded_bytes, sizeof(Layout));
  EXPECT_EQ(file.memory_bytes, sizeof(Layout));
  EXPECT_EQ(file.entry, offsetof(Layout, code));
  EXPECT_EQ(file.headers, offsetof(Layout, interpreter));
  EXPECT_EQ(file.dynamic_offset, offsetof(Layout, needed));
  EXPECT_EQ(file.dynamic.size(), 9u);
  EXPECT_EQ(file.thread_locals.address, offsetof(Layout, code));
  EXPECT_EQ(file.thread_locals.initial_bytes, 8u);
  EXPECT_EQ(file.thread_locals.bytes, 40u);
  EXPECT_EQ(file.thread_locals.alignment, 16u);
  EXPECT_THAT(file.needed, ElementsAre("libmpi_abi.so.1", "libc.so.6"));
  EXPECT_TRUE(file.needs("libmpi_abi.so.1"));
  EXPECT_FALSE(file.needs("libmpi_abi.so"));
  EXPECT_THAT(file.run_paths, ElementsAre("$ORIGIN/lib", "/opt/lib"));
  EXPECT_EQ(file.init_array.address, offsetof(Layout, functions));
  EXPECT_EQ(file.init_array.count, 2u);
  EXPECT_EQ(file.fini_array.count, 0u);
  EXPECT_EQ(file.init, 0u);
  EXPECT_EQ(file.fini, offsetof(Layout, code));
}

TEST_F(ExecutableFileTest, what_is_sound_but_of_another_sort_is_refused_with_the_cure) {
  EXPECT_THAT(refusal(std::string("#!/usr/bin/env python3\n")),
              AllOf(HasSubstr("not_supported: '" + folder_.path() + "/program' cannot run with several ranks"),
                    HasSubstr("is a script"), HasSubstr("`brant run -n RANKS` without --ranks")));
  EXPECT_THAT(refusal(std::string("no program at all, but a text of some length")), HasSubstr("is no program"));
  EXPECT_THAT(refusal(std::string()), HasSubstr("is no program"));
  Layout layout;
  layout.header.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_THAT(refusal(layout), HasSubstr("is not a program of 64 bits. Compile it for x86-64."));
  layout = Layout();
  layout.header.e_machine = EM_AARCH64;
  EXPECT_THAT(refusal(layout), HasSubstr("was compiled for 64-bit ARM. Compile it for x86-64."));
  layout = Layout();
  layout.header.e_type = ET_REL;
  EXPECT_THAT(refusal(layout), HasSubstr("is no program, but an object file"));
  layout = Layout();
  layout.header.e_type = ET_EXEC;
  EXPECT_THAT(refusal(layout), HasSubstr("is not position independent. Compile it with -fPIE and link it with -pie"));
  layout = Layout();
  layout.interpreter.p_type = PT_NULL;
  EXPECT_THAT(refusal(layout), HasSubstr("is linked statically (or is a shared library). Link it without -static"));
  layout = Layout();
  layout.needed_too.d_un.d_val = 48;
  EXPECT_THAT(refusal(layout), HasSubstr("is linked with another MPI, libmpi.so.40. Compile it with brant's mpicc"));
}

TEST_F(ExecutableFileTest, thread_locals_that_do_not_fit_are_refused) {
  Layout layout;
  layout.thread_locals.p_memsz = ThreadLocalWindow::kBytes;
  EXPECT_EQ(refusal(layout), "not refused");
  layout.thread_locals.p_memsz += 1;
  EXPECT_THAT(refusal(layout), AllOf(HasSubstr("has 16385 bytes of thread-local variables"), HasSubstr("16384")));
  layout = Layout();
  layout.thread_locals.p_align = 2 * ThreadLocalWindow::kAlignment;
  EXPECT_THAT(refusal(layout), HasSubstr("aligned to 8192; there is room for 16384, aligned to 4096"));
}

TEST_F(ExecutableFileTest, what_is_not_there_or_may_not_be_executed_is_refused) {
  const std::string path = write(Layout());
  ::chmod(path.c_str(), 0600);
  EXPECT_THAT(refused([&] { read_executable_file(path); }),
              HasSubstr("may not be executed. Allow it: `chmod +x " + path));
  EXPECT_THAT(refused([&] { read_executable_file(path + "x"); }),
              HasSubstr("not_found: '" + path + "x' cannot be opened"));
  EXPECT_THAT(refused([&] { read_executable_file(folder_.path()); }), HasSubstr("is no file"));
}

TEST_F(ExecutableFileTest, a_program_is_found_as_a_shell_finds_it) {
  const std::string path = write(Layout());
  const std::string before = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  ::setenv("PATH", ("/nowhere:" + folder_.path()).c_str(), 1);
  EXPECT_EQ(find_program("program"), path);
  EXPECT_EQ(find_program("./program"), "./program");
  EXPECT_EQ(
      refused([] { find_program("nothing"); }),
      "not_found: there is no program 'nothing' in PATH. Name its path, as './nothing', or add its folder to PATH.");
  ::setenv("PATH", before.c_str(), 1);
}

TEST_F(ExecutableFileTest, damaged_files_are_refused) {
  const auto damaged = [this](auto&& damage) {
    Layout layout;
    damage(layout);
    return refusal(layout);
  };
  EXPECT_THAT(damaged([](Layout& layout) { layout.header.e_phoff = ~std::uint64_t{0}; }),
              HasSubstr("invalid_argument: '" + folder_.path() +
                        "/program' cannot run with several ranks in a process: it is damaged: its table of segments "
                        "lies behind the end of the file. Build or copy it anew."));
  EXPECT_THAT(damaged([](Layout& layout) { layout.header.e_phnum = 0; }), HasSubstr("it has no table of segments"));
  EXPECT_THAT(damaged([](Layout& layout) { layout.loaded.p_filesz += 1; }), HasSubstr("a segment lies behind the end"));
  EXPECT_THAT(damaged([](Layout& layout) { layout.loaded.p_memsz -= 1; }), HasSubstr("segments do not fit together"));
  EXPECT_THAT(damaged([](Layout& layout) { layout.header.e_entry = sizeof(Layout); }),
              HasSubstr("no code where it starts"));
  EXPECT_THAT(damaged([](Layout& layout) { layout.dynamic_segment.p_vaddr += 8; }),
              HasSubstr("its dynamic section lies"));
  EXPECT_THAT(damaged([](Layout& layout) { layout.end.d_tag = DT_DEBUG; }),
              HasSubstr("its dynamic section has no end"));
  EXPECT_THAT(damaged([](Layout& layout) { layout.strings_bytes.d_un.d_val = 1 << 20; }),
              HasSubstr("its table of names lies"));
  EXPECT_THAT(damaged([](Layout& layout) { layout.names[sizeof kNames - 1] = 'x'; }),
              HasSubstr("its table of names has no end"));
  EXPECT_THAT(damaged([](Layout& layout) { layout.needed.d_un.d_val = sizeof kNames; }),
              HasSubstr("needs has no name"));
  EXPECT_THAT(damaged([](Layout& layout) { layout.init_array.d_un.d_val += 4; }),
              HasSubstr("lie outside of its segments"));
  EXPECT_THAT(damaged([](Layout& layout) { layout.fini.d_un.d_val = 1 << 20; }), HasSubstr("lies outside of its code"));
  EXPECT_THAT(damaged([](Layout& layout) { layout.thread_locals.p_align = 3; }),
              HasSubstr("its thread-local variables lie"));
}

/// What is read is either refused with an Error, or keeps to the file.
TEST_F(ExecutableFileTest, any_file_is_read_or_refused) {
  Mutation mutation(86);
  const Layout layout;
  const auto sound = std::as_bytes(std::span(&layout, 1));
  unsigned read = 0;
  const unsigned rounds = test::fuzz_records(4000);
  for (unsigned round = 0; round < rounds; ++round) {
    std::vector<std::byte> bytes(sound.begin(), sound.end());
    if (round % 4 == 0) bytes.resize(mutation.below(bytes.size()));
    if (round % 4 != 1) mutation.spoil(bytes);
    if (round % 4 == 1) mutation.spoil(std::span(bytes).subspan(sizeof(Elf64_Ehdr)));
    const std::string path = write(bytes);
    try {
      const ExecutableFile file = read_executable_file(path);
      ++read;
      ASSERT_LE(file.loaded_bytes, bytes.size());
      ASSERT_LT(file.entry, file.memory_bytes);
      ASSERT_LE(file.dynamic_offset + file.dynamic.size() * sizeof(Elf64_Dyn), bytes.size());
      ASSERT_LE(file.thread_locals.address + file.thread_locals.initial_bytes, file.memory_bytes);
      ASSERT_LE(file.thread_locals.bytes, ThreadLocalWindow::kBytes);
      ASSERT_LE(file.init_array.address + file.init_array.count * sizeof(void*), file.memory_bytes);
    } catch (const Error& error) {
      ASSERT_THAT(error.what(), HasSubstr(path));
    }
  }
  EXPECT_GT(read, rounds / 20);
  EXPECT_LT(read, rounds);
}

}  // namespace
}  // namespace brant::mpi
