#include "models/mpi/files/opening.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "base/random_bytes.h"
#include "models/mpi/checks/same_call.h"
#include "models/mpi/communicators.h"
#include "models/mpi/files/agreement.h"
#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

constexpr int kKnownModes = MPI_MODE_RDONLY | MPI_MODE_RDWR | MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL |
                            MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND;
constexpr int kAccessModes = MPI_MODE_RDONLY | MPI_MODE_RDWR | MPI_MODE_WRONLY;
constexpr unsigned kFileMode = 0666;  // less what the umask takes away

void require_mode(int amode) {
  require((amode & ~kKnownModes) == 0, MPI_ERR_AMODE, "the access mode {} has bits that no mode has", amode);
  require(std::has_single_bit(static_cast<unsigned>(amode & kAccessModes)), MPI_ERR_AMODE,
          "the access mode {} must have one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR", amode);
  require((amode & MPI_MODE_RDONLY) == 0 || (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL)) == 0, MPI_ERR_AMODE,
          "MPI_MODE_CREATE and MPI_MODE_EXCL do not go with MPI_MODE_RDONLY");
  require((amode & MPI_MODE_RDWR) == 0 || (amode & MPI_MODE_SEQUENTIAL) == 0, MPI_ERR_AMODE,
          "MPI_MODE_SEQUENTIAL does not go with MPI_MODE_RDWR");
}

int access_flags(int amode) noexcept {
  if ((amode & MPI_MODE_RDONLY) != 0) return O_RDONLY;
  return (amode & MPI_MODE_WRONLY) != 0 ? O_WRONLY : O_RDWR;
}

/// The first member makes the file, so that it is made once.
int flags_of_first(int amode) noexcept {
  const int create = (amode & MPI_MODE_CREATE) != 0 ? O_CREAT : 0;
  const int exclusive = create != 0 && (amode & MPI_MODE_EXCL) != 0 ? O_EXCL : 0;
  return access_flags(amode) | create | exclusive;
}

constexpr const char* kHostFolder = "/dev/shm";

/// The same for members that see the same files in `kHostFolder`, which is in the memory of a host. Containers of a
/// host may have one each.
std::uint64_t host_folder_number() {
  struct stat folder{};
  const bool is_there = ::stat(kHostFolder, &folder) == 0 && ::access(kHostFolder, W_OK) == 0;
  const std::uint64_t device = is_there ? folder.st_dev + 1 : 0;
  return is_there ? Process::host_number() ^ device * 0x9e3779b97f4a7c15u : 0;
}

/// What members tell each other first.
struct OpenOffer {
  std::int32_t error = MPI_SUCCESS;
  std::int32_t amode = 0;
  std::uint64_t host_folder = 0;  ///< 0: it has none.
  std::uint64_t token = 0;        ///< Of the first member, by which the file's own small file is named.
};

std::vector<OpenOffer> tell_offers(Communicator& communicator, int amode, const std::optional<CallError>& error) {
  OpenOffer own{.error = error ? error->error_class() : kSuccess, .amode = amode, .host_folder = host_folder_number()};
  fill_with_random_bytes(std::as_writable_bytes(std::span(&own.token, 1)), "the name of a shared file pointer");
  std::vector<OpenOffer> offers(static_cast<std::size_t>(communicator.size()));
  gather_from_all(communicator, &own, offers.data(), sizeof own);
  if (error) throw CallError(*error);
  for (std::size_t i = 0; i < offers.size(); ++i) {
    require(offers[i].error == MPI_SUCCESS, offers[i].error, "rank {} cannot open the file, so no rank has opened it",
            i);
    require(offers[i].amode == offers[0].amode, MPI_ERR_NOT_SAME,
            "the access mode must be the same on all ranks: {} on rank {}, {} on rank 0", offers[i].amode, i,
            offers[0].amode);
  }
  return offers;
}

bool are_on_one_host(const std::vector<OpenOffer>& offers) noexcept {
  const std::uint64_t first = offers[0].host_folder;
  return first != 0 && std::ranges::all_of(offers, [&](const OpenOffer& each) { return each.host_folder == first; });
}

/// On one host in its memory, where everyone may write; else beside the file, which all hosts see.
std::string pointer_path(const std::string& name, std::uint64_t token, bool on_one_host) {
  if (on_one_host) return fmt::format("{}/brant-file-pointer-{:016x}", kHostFolder, token);
  const std::size_t base = name.rfind('/') + 1;  // 0 where there is no folder
  return fmt::format("{}.{}.brant-pointer-{:016x}", name.substr(0, base), name.substr(base, 128), token);
}

}  // namespace

File& open_file(Communicator& parent, const char* name, int amode) {
  require_same_call(parent);
  RankState& rank = current_rank();
  auto file =
      std::make_unique<File>(make_communicator(rank, parent.members, {parent.context}), amode, rank.files.handler());
  file->communicator.session = parent.session;
  Communicator& members = file->communicator;
  const std::optional<CallError> error = error_in([&] {
    require(name != nullptr && *name != 0, MPI_ERR_BAD_FILE, "the name of the file is {}",
            name == nullptr ? "null" : "empty");
    require_mode(amode);
    if (members.rank == 0) file->disk = DiskFile(name, flags_of_first(amode), kFileMode);
  });
  const std::vector<OpenOffer> offers = tell_offers(members, amode, error);
  do_together(members, [&] {
    if (members.rank != 0) file->disk = DiskFile(name, access_flags(amode), 0);
    if (file->has_mode(MPI_MODE_APPEND)) file->pointer = file->disk.size();
  });
  file->on_one_host = are_on_one_host(offers);
  file->shared_pointer = SharedPointer(pointer_path(name, offers[0].token, file->on_one_host), file->pointer);
  return *file.release();
}

void require_closable(const File& file) {
  require(!file.split.has_value(), MPI_ERR_OTHER,
          "a split collective on the file '{}' was begun and not ended: call its second function first", file.name());
}

/// The last word of a member is that it has closed its own: then the first one may delete.
void close_file(File& file) {
  const std::optional<CallError> error = error_in([&] {
    if (file.written && !file.has_mode(MPI_MODE_DELETE_ON_CLOSE)) file.disk.sync();
    file.disk.close();
  });
  const std::string& name = file.name();
  const bool is_first = file.communicator.rank == 0;
  const bool deletes = file.has_mode(MPI_MODE_DELETE_ON_CLOSE);
  const auto outcome = error_in([&] { agree(file.communicator, error); });
  if (is_first) file.shared_pointer.remove();
  if (outcome) throw CallError(*outcome);
  if (!deletes) return;
  do_together(file.communicator, [&] {
    if (is_first) delete_disk_file(name);
  });
}

}  // namespace brant::mpi
