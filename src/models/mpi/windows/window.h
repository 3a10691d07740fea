#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "brant/base/intrusive_list.h"
#include "brant/core/runtime.h"
#include "models/mpi/communicator.h"
#include "models/mpi/rank_state.h"
#include "models/mpi/windows/transfer.h"
#include "models/mpi/windows/window_lock.h"
#include "models/mpi/windows/window_part.h"

namespace brant::mpi {

/// Memory that was attached to a dynamic window.
struct AttachedMemory {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::host;
  Segment segment;      ///< Of device memory alone, as the next one.
  RemoteSegment reach;  ///< How this process itself copies from and to it.
};

/// Where bytes of this rank's own memory lie: `host`, or in a segment.
struct OwnPlace {
  std::byte* host = nullptr;
  RemoteSegment* segment = nullptr;
  std::uint64_t offset = 0;
};

/// What a handle of a window points to. It has a communicator of its own, whose context names it in messages.
class Window final : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::window;

  Window(RankState& rank, std::unique_ptr<Communicator> communicator, int flavor);
  ~Window();

  [[nodiscard]] int size() const noexcept { return communicator.size(); }
  [[nodiscard]] Rank process_of(int member) const noexcept;
  [[nodiscard]] bool is_dynamic() const noexcept { return flavor == MPI_WIN_FLAVOR_DYNAMIC; }
  [[nodiscard]] WindowPart& part(int member) noexcept { return parts[static_cast<std::size_t>(member)]; }
  [[nodiscard]] WindowPeer& peer(int member) noexcept { return peers[static_cast<std::size_t>(member)]; }
  void set_handler(ErrorHandler& next) noexcept;

  /// How the memory of a member is reached, which has some that does not change. Null: by messages alone. Throws what
  /// RemoteSegment does.
  RemoteSegment* reach(int member);
  [[nodiscard]] std::uint64_t segment_offset(int member) noexcept { return part(member).offset; }
  /// Where this CPU reaches the memory of a member; null: it does not.
  [[nodiscard]] std::byte* host_pointer(int member);
  /// Bytes of this rank's memory that a message names, whatever it says. Nothing: they are not all there.
  [[nodiscard]] std::optional<OwnPlace> own_place(std::int64_t offset, std::uint64_t bytes);
  /// Maps nothing any more.
  void let_go_of_others() noexcept;

  RankState& rank;
  Communicator& communicator;
  const int flavor;
  void* base = nullptr;  ///< Of this rank's memory.
  MPI_Aint bytes = 0;
  int disp_unit = 1;
  std::vector<WindowPart> parts;
  std::vector<WindowPeer> peers;
  std::vector<std::unique_ptr<AttachedMemory>> attached;

  Memory memory;         ///< That MPI allocated.
  Segment segment;       ///< Of this rank's memory, or in a shared window of the memory of all.
  RemoteSegment shared;  ///< The memory of all in a shared window, mapped.
  WindowLock lock;       ///< Of this rank's memory.

  // Epochs of this rank.
  bool fenced = false;      ///< MPI_Win_fence has opened one.
  bool fence_used = false;  ///< There were accesses since.
  bool locked_all = false;
  int locks_held = 0;                       ///< Without MPI_Win_lock_all.
  std::optional<std::vector<int>> started;  ///< The group of MPI_Win_start.
  std::optional<std::vector<int>> exposed;  ///< The group of MPI_Win_post.

  IntrusiveList<Transfer, &Transfer::hook> under_way;
  IntrusiveList<Transfer, &Transfer::hook> landed;  ///< Whose data is still to go where the program wants it.

  ErrorHandler* handler;
  Attributes attributes;
  std::string name;
  Info info;
};

}  // namespace brant::mpi
