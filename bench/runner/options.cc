#include "bench/runner/options.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::bench {
namespace {

/// 0 if the text is no unit.
std::size_t unit_of(std::string_view text) noexcept {
  if (text.empty() || text == "B") return 1;
  const std::string_view rest = text.substr(1);
  if (!rest.empty() && rest != "iB" && rest != "B" && rest != "i") return 0;
  switch (text.front()) {
    case 'k':
    case 'K': return std::size_t{1} << 10;
    case 'm':
    case 'M': return std::size_t{1} << 20;
    case 'g':
    case 'G': return std::size_t{1} << 30;
    default: return 0;
  }
}

/// Throws Error for memory that nobody but the library makes, or that the messages would not lie in.
void require_alloc(const Options& options) {
  if (options.alloc == Alloc::library) return;
  const std::string asked =
      fmt::format("--alloc {} with --memory {}", alloc_name(options.alloc), memory_kind_name(options.memory));
  const bool of_host = options.memory == MemoryKind::host && options.alloc != Alloc::cuda;
  const bool of_gpu = options.memory == MemoryKind::cuda && options.alloc != Alloc::malloc;
  if (!of_host && !of_gpu) {
    throw Error(Status::invalid_argument,
                fmt::format("{}: malloc makes host memory, cuda makes cuda memory, torch-like either of the two; all "
                            "kinds are made by --alloc library",
                            asked));
  }
  if (of_host && options.model == Model::message) {
    throw Error(
        Status::invalid_argument,
        fmt::format("{}: arguments of entry methods in host memory are packed into memory of brant whoever made "
                    "theirs; use --model channel, put or get",
                    asked));
  }
}

void require_of_mpi(const Options& options) {
  const auto refuse = [](const std::string& text) { throw Error(Status::invalid_argument, text); };
  if (options.alloc == Alloc::cuda)
    refuse("--alloc cuda with --model mpi: its memory of a device is that of MPI_Win_allocate; drop --alloc");
  if (options.path != Path::automatic)
    refuse(fmt::format("--path {0} with --model mpi: programs of MPI have no such option; set BRANT_PATH={0} instead",
                       path_name(options.path)));
  if (options.spin) refuse("--spin with --model mpi: the library decides how it waits; drop --spin");
  if (options.coroutines) refuse("--api await with --model mpi: MPI has no coroutines; drop --api");
  if (options.rival != Rival::none)
    refuse(fmt::format("--peer {} with --model mpi: its rivals are MPIs; use --peer mpi, or the path of an mpiexec",
                       rival_name(options.rival)));
  if (options.sizes.back() > std::size_t{std::numeric_limits<int>::max()})
    refuse("--model mpi counts bytes up to 2147483647; use smaller sizes");
}

}  // namespace

void require_sense(const Options& options) {
  require_alloc(options);
  if (options.model == Model::mpi) require_of_mpi(options);
  const auto is_word = [](std::size_t bytes) { return bytes == 4 || bytes == 8; };
  if (options.model == Model::fetch_add && !std::all_of(options.sizes.begin(), options.sizes.end(), is_word)) {
    throw Error(Status::invalid_argument, "--model fetch-add: words have 4 or 8 bytes; use --sizes 4,8");
  }
  if (options.trigger == Trigger::stream && options.model != Model::channel) {
    throw Error(Status::invalid_argument,
                "--trigger stream: only channels are triggered by streams, the rest by the host; use --model channel");
  }
  if (options.trigger == Trigger::stream && options.path != Path::automatic && options.path != Path::kernel) {
    throw Error(Status::invalid_argument,
                fmt::format("--trigger stream: kernels move the bytes there, path `kernel`; drop --path {}",
                            path_name(options.path)));
  }
  if (options.rival != Rival::none && options.model == Model::told_put) {
    throw Error(Status::invalid_argument,
                "--model told-put: rivals tell no target of puts; drop --peer, or use --model put");
  }
  if (options.rival != Rival::none && options.model == Model::rpc) {
    throw Error(Status::invalid_argument,
                fmt::format("--model rpc: {} calls no functions; drop --peer", rival_name(options.rival)));
  }
  if (options.model == Model::told_put && options.sizes.front() == 0) {
    throw Error(Status::invalid_argument, "--model told-put: a put of no bytes tells nothing; use --sizes from 1 on");
  }
  if (options.rival == Rival::nccl && is_one_sided(options.model)) {
    throw Error(Status::invalid_argument,
                "--peer nccl: NCCL's sends and receives are no puts and gets; use --model channel, or --peer ucx");
  }
  if (options.rival == Rival::nccl && options.memory != MemoryKind::cuda) {
    throw Error(Status::invalid_argument,
                fmt::format("--peer nccl: NCCL moves memory of GPUs only, not {} memory; add --memory cuda",
                            memory_kind_name(options.memory)));
  }
}

std::size_t parse_size(const std::string& text) {
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, number);
  const std::size_t unit = unit_of({rest, static_cast<std::size_t>(end - rest)});
  if (fault != std::errc{} || unit == 0 || number > std::numeric_limits<std::size_t>::max() / unit) {
    throw Error(Status::invalid_argument,
                fmt::format("'{}' is not a size: use whole numbers of bytes such as 8, 64K, 1M or 2G", text));
  }
  return number * unit;
}

std::vector<std::size_t> parse_sizes(const std::string& list) {
  std::vector<std::size_t> sizes;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    sizes.push_back(parse_size(list.substr(begin, comma - begin)));
    begin = comma + 1;
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::vector<std::size_t> sizes_between(std::size_t min, std::size_t max) {
  if (min > max)
    throw Error(Status::invalid_argument,
                fmt::format("the smallest size {} is above the largest {}", format_size(min), format_size(max)));
  std::vector<std::size_t> sizes;
  if (min == 0) sizes.push_back(0);
  for (std::size_t size = std::max<std::size_t>(min, 1); size < max; size *= 2) {
    sizes.push_back(size);
    if (size > max / 2) break;  // doubling could overflow
  }
  if (sizes.empty() || sizes.back() != max) sizes.push_back(max);
  return sizes;
}

std::string format_size(std::size_t bytes) {
  constexpr std::size_t kUnit = 1024;
  if (bytes == 0 || bytes % kUnit != 0) return std::to_string(bytes);
  const char* suffix = "K";
  std::size_t number = bytes / kUnit;
  for (const char* next : {"M", "G"}) {
    if (number % kUnit != 0) break;
    number /= kUnit;
    suffix = next;
  }
  return std::to_string(number) + suffix;
}

}  // namespace brant::bench
