#include "models/mpi/ranks/executable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "brant/base/status.h"
#include "models/mpi/ranks/thread_local_window.h"

namespace brant::mpi {
namespace {

constexpr std::string_view kProcesses = "Run it with one rank a process: `brant run -n RANKS` without --ranks";
constexpr std::string_view kRelink = "Compile it with -fPIE and link it with -pie, or run it with one rank a process";
constexpr std::string_view kRebuild = "Build or copy it anew";
constexpr std::uint64_t kAddresses = std::uint64_t{1} << 47;  // what a process of this machine may have
constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kMostSegments = 1024;

[[noreturn]] void refuse(Status status, const std::string& path, std::string_view reason, std::string_view cure) {
  throw Error(status, fmt::format("'{}' cannot run with several ranks in a process: it {}. {}.", path, reason, cure));
}

[[noreturn]] void refuse_damaged(const std::string& path, std::string_view what) {
  refuse(Status::invalid_argument, path, fmt::format("is damaged: {}", what), kRebuild);
}

/// Reads a file whose parts may lie anywhere, also outside of it.
class Reader {
 public:
  Reader(const std::string& path, int fd, std::uint64_t size) : path_(path), fd_(fd), size_(size) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return offset <= size_ && bytes <= size_ - offset;
  }
  void read(std::uint64_t offset, void* to, std::size_t bytes, std::string_view what) const {
    if (!holds(offset, bytes)) refuse_damaged(path_, fmt::format("its {} lies behind the end of the file", what));
    std::size_t done = 0;
    while (done < bytes) {
      const ssize_t got = ::pread(fd_, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Error(Status::io_error, fmt::format("'{}' cannot be read: {}", path_, std::strerror(errno)));
      if (got == 0) refuse_damaged(path_, fmt::format("it ended while its {} was read", what));
      done += static_cast<std::size_t>(got);
    }
  }

 private:
  const std::string& path_;
  int fd_;
  std::uint64_t size_;
};

std::string_view machine_name(unsigned machine) noexcept {
  switch (machine) {
    case EM_386: return "32-bit x86";
    case EM_AARCH64: return "64-bit ARM";
    case EM_PPC64: return "64-bit POWER";
    case EM_RISCV: return "RISC-V";
    default: return "another machine";
  }
}

Elf64_Ehdr read_header(const std::string& path, const Reader& reader) {
  std::array<char, 2> first = {};
  if (reader.size() >= first.size()) reader.read(0, first.data(), first.size(), "start");
  if (first[0] == '#' && first[1] == '!') {
    refuse(Status::not_supported, path, "is a script, and an interpreter such as Python's holds one program a process",
           kProcesses);
  }
  Elf64_Ehdr header = {};
  if (reader.size() < EI_NIDENT)
    refuse(Status::not_supported, path, "is no program: it has no ELF header", "Name a program");
  reader.read(0, &header, EI_NIDENT, "header");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    refuse(Status::not_supported, path, "is no program: it has no ELF header", "Name a program");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    refuse(Status::not_supported, path, "is not a program of 64 bits", "Compile it for x86-64");
  reader.read(0, &header, sizeof header, "header");
  if (header.e_machine != EM_X86_64) {
    refuse(Status::not_supported, path, fmt::format("was compiled for {}", machine_name(header.e_machine)),
           "Compile it for x86-64");
  }
  if (header.e_type != ET_DYN && header.e_type != ET_EXEC)
    refuse(Status::not_supported, path, "is no program, but an object file or a core dump", "Link it");
  return header;
}

std::vector<Elf64_Phdr> read_segments(const std::string& path, const Reader& reader, const Elf64_Ehdr& header) {
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 || header.e_phnum > kMostSegments)
    refuse_damaged(path, "it has no table of segments");
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  reader.read(header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr), "table of segments");
  return segments;
}

const Elf64_Phdr* find(const std::vector<Elf64_Phdr>& segments, std::uint32_t type) noexcept {
  const auto found = std::find_if(segments.begin(), segments.end(),
                                  [type](const Elf64_Phdr& segment) { return segment.p_type == type; });
  return found == segments.end() ? nullptr : &*found;
}

/// The loaded segment whose bytes of the file hold these addresses; null if there is none.
const Elf64_Phdr* holding(const ExecutableFile& file, std::uint64_t address, std::uint64_t bytes) noexcept {
  for (const Elf64_Phdr& segment : file.segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr <= segment.p_filesz &&
        bytes <= segment.p_filesz - (address - segment.p_vaddr))
      return &segment;
  }
  return nullptr;
}

void check_kind(const std::string& path, const Elf64_Ehdr& header, const std::vector<Elf64_Phdr>& segments) {
  const bool dynamic = find(segments, PT_DYNAMIC) != nullptr;
  if (find(segments, PT_INTERP) == nullptr) {
    if (header.e_type == ET_DYN && dynamic && header.e_entry == 0)
      refuse(Status::not_supported, path, "is a shared library", "Name a program");
    refuse(Status::not_supported, path, "is linked statically (or is a shared library)",
           "Link it without -static, or run it with one rank a process");
  }
  if (header.e_type == ET_EXEC) refuse(Status::not_supported, path, "is not position independent", kRelink);
  if (!dynamic) refuse_damaged(path, "it has no dynamic section");
}

void check_loaded(ExecutableFile& file, const Reader& reader) {
  std::uint64_t end = 0;
  for (const Elf64_Phdr& segment : file.segments) {
    if (segment.p_type != PT_LOAD) continue;
    if (!reader.holds(segment.p_offset, segment.p_filesz))
      refuse_damaged(file.path, "a segment lies behind the end of the file");
    if (segment.p_filesz > segment.p_memsz || segment.p_vaddr >= kAddresses ||
        segment.p_memsz > kAddresses - segment.p_vaddr || segment.p_vaddr < end ||
        segment.p_vaddr % kPage != segment.p_offset % kPage)
      refuse_damaged(file.path, "its segments do not fit together");
    end = segment.p_vaddr + segment.p_memsz;
    file.loaded_bytes = std::max<std::size_t>(file.loaded_bytes, segment.p_offset + segment.p_filesz);
    if (file.headers == 0 && segment.p_offset == 0) file.headers = segment.p_vaddr;
  }
  if (end == 0) refuse_damaged(file.path, "it has no segment to load");
  file.memory_bytes = end;
}

void read_entry(ExecutableFile& file, const Elf64_Ehdr& header) {
  const Elf64_Phdr* segment = holding(file, header.e_entry, 1);
  if (segment == nullptr || (segment->p_flags & PF_X) == 0) refuse_damaged(file.path, "it has no code where it starts");
  file.entry = header.e_entry;
  const std::uint64_t bytes = file.segments.size() * sizeof(Elf64_Phdr);
  file.headers = holding(file, file.headers + header.e_phoff, bytes) == nullptr ? 0 : file.headers + header.e_phoff;
}

void read_thread_locals(ExecutableFile& file) {
  const Elf64_Phdr* segment = find(file.segments, PT_TLS);
  if (segment == nullptr || segment->p_memsz == 0) return;
  const std::uint64_t alignment = std::max<std::uint64_t>(segment->p_align, 1);
  if (segment->p_filesz > segment->p_memsz || !std::has_single_bit(alignment) ||
      (segment->p_filesz != 0 && holding(file, segment->p_vaddr, segment->p_filesz) == nullptr))
    refuse_damaged(file.path, "its thread-local variables lie outside of its segments");
  if (segment->p_memsz > ThreadLocalWindow::kBytes || alignment > ThreadLocalWindow::kAlignment) {
    refuse(Status::not_supported, file.path,
           fmt::format("has {} bytes of thread-local variables, aligned to {}; there is room for {}, aligned to {}",
                       segment->p_memsz, alignment, ThreadLocalWindow::kBytes, ThreadLocalWindow::kAlignment),
           kProcesses);
  }
  file.thread_locals = {.address = segment->p_filesz == 0 ? 0 : segment->p_vaddr,
                        .initial_bytes = segment->p_filesz,
                        .bytes = segment->p_memsz,
                        .alignment = alignment};
}

void read_dynamic(ExecutableFile& file, const Reader& reader) {
  const Elf64_Phdr& segment = *find(file.segments, PT_DYNAMIC);
  const Elf64_Phdr* loaded = holding(file, segment.p_vaddr, segment.p_filesz);
  if (loaded == nullptr || segment.p_offset - loaded->p_offset != segment.p_vaddr - loaded->p_vaddr)
    refuse_damaged(file.path, "its dynamic section lies outside of its segments");
  file.dynamic_offset = segment.p_offset;
  file.dynamic.resize(segment.p_filesz / sizeof(Elf64_Dyn));
  reader.read(segment.p_offset, file.dynamic.data(), file.dynamic.size() * sizeof(Elf64_Dyn), "dynamic section");
  const auto end = std::find_if(file.dynamic.begin(), file.dynamic.end(),
                                [](const Elf64_Dyn& entry) { return entry.d_tag == DT_NULL; });
  if (end == file.dynamic.end()) refuse_damaged(file.path, "its dynamic section has no end");
  file.dynamic.erase(end, file.dynamic.end());
}

std::optional<std::uint64_t> value_of(const ExecutableFile& file, std::int64_t tag) noexcept {
  for (const Elf64_Dyn& entry : file.dynamic)
    if (entry.d_tag == tag) return entry.d_un.d_val;
  return std::nullopt;
}

/// The strings that the dynamic section names.
std::vector<char> read_strings(const ExecutableFile& file, const Reader& reader) {
  const std::optional<std::uint64_t> address = value_of(file, DT_STRTAB);
  const std::optional<std::uint64_t> bytes = value_of(file, DT_STRSZ);
  const Elf64_Phdr* loaded = address && bytes && *bytes != 0 ? holding(file, *address, *bytes) : nullptr;
  if (loaded == nullptr) refuse_damaged(file.path, "its table of names lies outside of its segments");
  std::vector<char> strings(*bytes);
  reader.read(loaded->p_offset + (*address - loaded->p_vaddr), strings.data(), strings.size(), "table of names");
  if (strings.back() != 0) refuse_damaged(file.path, "its table of names has no end");
  return strings;
}

void add_folders(std::vector<std::string>& folders, std::string_view list) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(':'), list.size());
    if (end != 0) folders.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

void read_names(ExecutableFile& file, const Reader& reader) {
  const std::vector<char> strings = read_strings(file, reader);
  const bool has_run_path = value_of(file, DT_RUNPATH).has_value();
  for (const Elf64_Dyn& entry : file.dynamic) {
    const bool run_path = entry.d_tag == (has_run_path ? DT_RUNPATH : DT_RPATH);
    if (entry.d_tag != DT_NEEDED && !run_path) continue;
    if (entry.d_un.d_val >= strings.size()) refuse_damaged(file.path, "a library that it needs has no name");
    const char* name = strings.data() + entry.d_un.d_val;
    if (run_path) {
      add_folders(file.run_paths, name);
    } else {
      file.needed.emplace_back(name);
    }
  }
}

ExecutableFile::Functions read_functions(const ExecutableFile& file, std::int64_t array, std::int64_t size) {
  const std::uint64_t bytes = value_of(file, size).value_or(0);
  const std::uint64_t address = value_of(file, array).value_or(0);
  if (bytes == 0) return {};
  if (address % sizeof(void*) != 0 || bytes % sizeof(void*) != 0 || holding(file, address, bytes) == nullptr)
    refuse_damaged(file.path, "functions that it runs at its start or end lie outside of its segments");
  return {.address = address, .count = bytes / sizeof(void*)};
}

std::uint64_t read_function(const ExecutableFile& file, std::int64_t tag) {
  const std::uint64_t address = value_of(file, tag).value_or(0);
  const Elf64_Phdr* loaded = holding(file, address, 1);
  if (address != 0 && (loaded == nullptr || (loaded->p_flags & PF_X) == 0))
    refuse_damaged(file.path, "a function that it runs at its start or end lies outside of its code");
  return address;
}

void refuse_other_mpi(const ExecutableFile& file) {
  for (const std::string& library : file.needed) {
    const bool is_other_mpi = library.starts_with("libmpi.so") && library != "libmpi.so.12";  // which brant has too
    if (is_other_mpi || library.starts_with("libmpich.so")) {
      refuse(Status::not_supported, file.path, fmt::format("is linked with another MPI, {}", library),
             "Compile it with brant's mpicc or mpicxx");
    }
  }
}

UniqueFd open_program(const std::string& path, std::uint64_t& size) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info = {};
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    const int error = errno;
    throw Error(
        error == ENOENT ? Status::not_found : Status::io_error,
        fmt::format("'{}' cannot be opened: {}. The program must be there and readable.", path, std::strerror(error)));
  }
  if (!S_ISREG(info.st_mode)) refuse(Status::not_supported, path, "is no file", "Name a program");
  if (::access(path.c_str(), X_OK) != 0)
    refuse(Status::not_supported, path, "may not be executed", fmt::format("Allow it: `chmod +x {}`", path));
  size = static_cast<std::uint64_t>(info.st_size);
  return fd;
}

}  // namespace

bool ExecutableFile::needs(std::string_view library) const noexcept {
  return std::find(needed.begin(), needed.end(), library) != needed.end();
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "/bin:/usr/bin" : path;
  for (bool more = !name.empty(); more;) {
    const std::size_t end = folders.find(':');
    more = end != std::string_view::npos;
    const std::string_view folder = folders.substr(0, end);
    folders.remove_prefix(more ? end + 1 : folders.size());
    const std::string file = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    struct stat info = {};
    if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(file.c_str(), X_OK) == 0) return file;
  }
  throw Error(Status::not_found,
              fmt::format("there is no program '{}' in PATH. Name its path, as './{}', or add its folder to PATH.",
                          name, name));
}

ExecutableFile read_executable_file(const std::string& path) {
  ExecutableFile file;
  file.path = path;
  std::uint64_t size = 0;
  file.fd = open_program(path, size);
  const Reader reader(file.path, file.fd.get(), size);
  const Elf64_Ehdr header = read_header(path, reader);
  file.segments = read_segments(path, reader, header);
  check_kind(path, header, file.segments);
  check_loaded(file, reader);
  read_entry(file, header);
  read_thread_locals(file);
  read_dynamic(file, reader);
  read_names(file, reader);
  file.preinit = read_functions(file, DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ);
  file.init = read_function(file, DT_INIT);
  file.init_array = read_functions(file, DT_INIT_ARRAY, DT_INIT_ARRAYSZ);
  file.fini_array = read_functions(file, DT_FINI_ARRAY, DT_FINI_ARRAYSZ);
  file.fini = read_function(file, DT_FINI);
  refuse_other_mpi(file);
  return file;
}

}  // namespace brant::mpi
