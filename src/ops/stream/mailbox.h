#pragma once

#include <cstddef>
#include <cstdint>

namespace brant {

/// Device memory of one end of a StreamChannel. Both ends' kernels write into it: no
/// CPU takes part. All of an end's kernels run one after the other.
///
/// A *turn* is the number of a message in its direction, from 1 on; a word that has reached a turn is what others wait
/// for, and is written last.
struct StreamMailbox {
  static constexpr unsigned kSlots = 64;         ///< Receives that may be started and not finished.
  static constexpr unsigned kBases = 64;         ///< Allocations of the other end that messages land in.
  static constexpr std::uint64_t kUnmapped = 1;  ///< Of an allocation that cannot be mapped, or is gone already.
  static constexpr unsigned kEagerSlots = 16;
  static constexpr std::size_t kEagerBytes = std::size_t{8} << 10;  ///< Messages up to here need no receive to leave.
  /// Messages up to here go as words of 4 bytes and the turn: each tells by itself that it has arrived, so no fence is
  /// needed between bytes and word of them, which costs 0.9 us.
  static constexpr std::size_t kLineBytes = std::size_t{4} << 10;

  struct Landing {  ///< Of a receive of the other end.
    std::uint64_t turn;
    std::uint64_t bytes;
    std::uint64_t offset;
    std::uint64_t base;
  };
  struct Target {  ///< A receive of this end.
    std::byte* address;
    std::uint64_t bytes;
  };

  // Written by the other end.
  Landing landings[kSlots];
  std::uint64_t arrivals[kSlots];  ///< StreamArrival::word.
  std::uint64_t consumed;          ///< The other end is done with messages up to this turn.
  // Written by this end alone: its kernels and, of `bases`, its CPU.
  std::uint64_t sent;
  std::uint64_t started;
  std::uint64_t received;
  std::uint64_t fault;  ///< A Status: nothing goes any more.
  std::uint64_t blocks_done;
  Target targets[kSlots];
  std::uint64_t bases[kBases];  ///< Where this end has mapped allocations of the other; 0: not yet; or kUnmapped.
  // Written by the other end: messages that came before their receive.
  alignas(128) std::byte eager[kEagerSlots][kEagerBytes];
  std::uint64_t lines[kEagerSlots][kLineBytes / 4];  ///< The low half of a word: bytes; the high half: its turn.
};

/// What became of a message on its way.
enum class StreamOutcome : std::uint64_t {
  direct = 1,    ///< It lies in the landing.
  eager = 2,     ///< It lies in the receiver's `eager`.
  line = 3,      ///< It comes into the receiver's `lines`.
  truncated = 4  ///< It is longer than the landing, and was not sent.
};

/// Pinned memory of one end, through which its kernels and its CPU talk.
struct StreamControl {
  static constexpr unsigned kReports = 64;

  struct Report {  ///< What became of one transfer that somebody waits for.
    std::uint64_t status;
    std::uint64_t bytes;
  };

  std::uint64_t abort;        ///< A Status: kernels that wait give up.
  std::uint64_t patience_ns;  ///< How long they wait at most.
  std::uint64_t fault;        ///< Copy of the mailbox's, for the CPU.
  Report reports[kReports];
};

}  // namespace brant
