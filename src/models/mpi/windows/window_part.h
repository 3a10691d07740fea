#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "brant/mpi/mpi.h"
#include "brant/ops/rma.h"

namespace brant::mpi {

/// What a member tells the others of its memory when a window is made.
struct WindowOffer {
  std::int64_t bytes = 0;
  std::int64_t disp_unit = 1;
  std::uint64_t base = 0;
  std::int32_t error = MPI_SUCCESS;  ///< Why it has none to offer.
  std::uint32_t ticket_bytes = 0;    ///< 0: no ticket, since there is no memory, or it changes.
  std::byte ticket[SegmentTicket::kBytesMax] = {};
};

/// The memory of one member as this rank sees it.
struct WindowPart {
  std::int64_t bytes = 0;
  std::int64_t disp_unit = 1;
  SegmentTicket ticket;
  std::uint64_t offset = 0;      ///< In the segment that has it: that of all members in a shared window.
  bool is_out_of_reach = false;  ///< By any means but messages.
  RemoteSegment segment;         ///< Opened when it is first used.
  std::byte* mapped = nullptr;   ///< Where this CPU reaches it, if that is known. Else ask Window::host_pointer.
};

/// What this rank has under way with one member of a window, and holds of it.
struct WindowPeer {
  enum class Hold : std::uint8_t { none, shared, exclusive, unchecked };

  Hold hold = Hold::none;          ///< Of its lock.
  bool started = false;            ///< It is in the group of MPI_Win_start.
  bool has_puts = false;           ///< By the network, which may not be visible there yet.
  bool has_messages = false;       ///< Accesses that it carries out, and has not told of.
  bool has_words = false;          ///< Words that were said to it and that it has not answered.
  std::size_t answers_due = 0;     ///< Of accesses whose answer tells that they were made.
  std::size_t under_way = 0;       ///< Transfers that have not ended here.
  int error = MPI_SUCCESS;         ///< The first one since the last synchronisation.
  int served_error = MPI_SUCCESS;  ///< What went wrong here with its accesses, which it asks for by `flush`.
  std::uint64_t posts = 0;         ///< Calls of MPI_Win_post at it that name this rank.
  std::uint64_t starts = 0;        ///< Calls of MPI_Win_start here that name it.
  std::uint64_t completions = 0;   ///< Calls of MPI_Win_complete at it that name this rank.
  std::uint64_t exposures = 0;     ///< Calls of MPI_Win_post here that name it.
};

}  // namespace brant::mpi
