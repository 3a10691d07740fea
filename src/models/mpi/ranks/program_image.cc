#include "models/mpi/ranks/program_image.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::mpi {
namespace {

// The dynamic linker passes over it: it is no entry that it knows.
constexpr std::int64_t kIgnoredTag = DT_LOOS + 2;

[[noreturn]] void fail(const ExecutableFile& file, const char* what) {
  const int error = errno;
  throw Error(error == EMFILE || error == ENFILE ? Status::limit_reached : Status::no_memory,
              fmt::format("no image of '{}' ({} bytes) could be made: {}: {}. Run fewer ranks in a process, or raise "
                          "the limit of open files (ulimit -n) or of memory.",
                          file.path, file.loaded_bytes, what, std::strerror(error)));
}

void write_at(const ExecutableFile& file, int fd, const void* from, std::size_t bytes, std::uint64_t offset) {
  if (::pwrite(fd, from, bytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes)) fail(file, "pwrite");
}

/// The dynamic linker refuses what says of itself that it is a program, and would run the functions of its start before
/// there is a rank.
std::vector<Elf64_Dyn> as_library(const ExecutableFile& file) {
  std::vector<Elf64_Dyn> dynamic = file.dynamic;
  for (Elf64_Dyn& entry : dynamic) {
    switch (entry.d_tag) {
      case DT_FLAGS_1: entry.d_un.d_val &= ~static_cast<std::uint64_t>(DF_1_PIE); break;
      case DT_INIT:
      case DT_FINI:
      case DT_INIT_ARRAY:
      case DT_INIT_ARRAYSZ:
      case DT_FINI_ARRAY:
      case DT_FINI_ARRAYSZ:
      case DT_PREINIT_ARRAY:
      case DT_PREINIT_ARRAYSZ: entry.d_tag = kIgnoredTag; break;
      default: break;
    }
  }
  return dynamic;
}

constexpr std::uint64_t kPage = 4096;

std::uint64_t page_down(std::uint64_t place) noexcept { return place / kPage * kPage; }
std::uint64_t page_up(std::uint64_t place) noexcept { return page_down(place + kPage - 1); }

/// Its bytes in memory are those of the file, whatever the linker has done: its code and constants.
bool is_constant(const ExecutableFile& file, const Elf64_Phdr& segment) noexcept {
  return segment.p_type == PT_LOAD && (segment.p_flags & PF_W) == 0 && segment.p_filesz == segment.p_memsz &&
         (file.dynamic_offset < segment.p_offset || file.dynamic_offset >= segment.p_offset + segment.p_filesz);
}

bool has_relocations_in_code(const ExecutableFile& file) noexcept {
  return std::any_of(file.dynamic.begin(), file.dynamic.end(), [](const Elf64_Dyn& entry) {
    return entry.d_tag == DT_TEXTREL || (entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_TEXTREL) != 0);
  });
}

/// The dynamic linker takes two names for two libraries only if they differ, and numbers of files are used again. So
/// the digits of a number that is not stand in the path, which the kernel does not see: "/." is 1 and "/" is 0.
std::string unique_path(int fd) {
  static std::atomic<unsigned> next{1};
  std::string path = "/proc/self/fd";
  for (unsigned rest = next.fetch_add(1, std::memory_order_relaxed); rest != 0; rest /= 2)
    path += rest % 2 != 0 ? "/." : "/";
  return fmt::format("{}/{}", path, fd);
}

}  // namespace

UniqueFd copy_in_memory(const ExecutableFile& file) {
  UniqueFd fd(::memfd_create("brant-image", MFD_CLOEXEC));
  if (!fd) fail(file, "memfd_create");
  off_t from = 0;
  while (static_cast<std::size_t>(from) < file.loaded_bytes) {
    const ssize_t sent = ::sendfile(fd.get(), file.fd.get(), &from, file.loaded_bytes - static_cast<std::size_t>(from));
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) fail(file, "sendfile");
    if (sent == 0) {
      throw Error(Status::io_error,
                  fmt::format("'{}' became shorter while it was read. Start again when it is complete.", file.path));
    }
  }
  return fd;
}

ProgramImage::ProgramImage(const ExecutableFile& file) : file_(file) {
  const UniqueFd fd = copy_in_memory(file);
  const std::vector<Elf64_Dyn> dynamic = as_library(file);
  write_at(file, fd.get(), dynamic.data(), dynamic.size() * sizeof(Elf64_Dyn), file.dynamic_offset);
  handle_ = ::dlopen(unique_path(fd.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    throw Error(Status::not_supported,
                fmt::format("'{}' cannot be loaded for a rank: {}. If a library is missing, add its folder to "
                            "LD_LIBRARY_PATH; else run with one rank a process.",
                            file.path, ::dlerror()));
  }
  link_map* map = nullptr;
  ::dlinfo(handle_, RTLD_DI_LINKMAP, static_cast<void*>(&map));
  base_ = reinterpret_cast<std::byte*>(map->l_addr);
  if (!has_relocations_in_code(file)) share_constants(fd.get());
}

void ProgramImage::share_constants(int copy) const {
  for (const Elf64_Phdr& segment : file_.segments) {
    if (!is_constant(file_, segment)) continue;
    const std::uint64_t begin = page_down(segment.p_vaddr);
    const std::uint64_t end = page_up(segment.p_vaddr + segment.p_filesz);
    const int protection = PROT_READ | ((segment.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
    if (::mmap(at(begin), end - begin, protection, MAP_PRIVATE | MAP_FIXED, file_.fd.get(),
               static_cast<off_t>(page_down(segment.p_offset))) == MAP_FAILED)
      fail(file_, "mmap");
    // Not the pages at the borders, which a segment of variables may begin or end in.
    const std::uint64_t first = page_up(segment.p_offset);
    const std::uint64_t last = page_down(segment.p_offset + segment.p_filesz);
    if (first < last) {
      static_cast<void>(::fallocate(copy, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
                                    static_cast<off_t>(last - first)));
    }
  }
}

ProgramImage::~ProgramImage() { ::dlclose(handle_); }

void* ProgramImage::variable(const char* name) const noexcept { return ::dlsym(handle_, name); }

}  // namespace brant::mpi
