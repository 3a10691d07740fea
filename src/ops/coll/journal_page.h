#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/coll/call_words.h"

namespace brant::coll {

/// One call as it stands in a page: half a cache line, so that to note a call touches one line of them.
struct JournalEntry {
  std::uint64_t high = 0;  ///< Of its CallWords.
  std::uint32_t low = 0;
  std::uint8_t algorithm = 0;  ///< An Algorithm; of streams, a StreamAlgorithm.
  std::uint8_t unused = 0;
  std::int16_t status = 0;
  std::int64_t begun_ns = 0;  ///< On the steady clock. Of streams: when it was queued.
  std::int64_t ended_ns = 0;  ///< Of streams: nobody tells.

  [[nodiscard]] CallWords words() const noexcept { return {high, low}; }
};
static_assert(sizeof(JournalEntry) == 32);

/// The last calls of a member of a team, as `brant info --job` reads them in a file of the process (PublishedPages),
/// which goes on writing. The call of number n stands at place n modulo the number of places.
struct JournalPage {
  static constexpr std::uint64_t kMagic = 0x316c6c6f63726e62;  // "bnrcoll1"; the last digit is the layout's version
  static constexpr std::size_t kBytes = 4096;
  static constexpr std::size_t kCalls = 64;
  static constexpr std::size_t kStreamCalls = 32;

  std::uint64_t magic = 0;  ///< Written last.
  std::uint64_t key = 0;    ///< Of the team: the same at all its members, and at nobody else in the job.
  char name[40] = {};       ///< "0.3"; ends with a zero.
  std::uint32_t members = 0;
  std::uint32_t self = 0;
  std::int32_t rank = 0;  ///< Of the process in its job.
  /// How many calls the making of the team took, which nobody counts.
  std::uint64_t hidden = 0;
  std::uint64_t stream_calls = 0;  ///< How many were queued.
  /// What kernels were last seen to wait for: the call's number among those that kernels have begun, which counts each
  /// launch of a graph, and the member. 0: nothing.
  std::uint64_t kernel_call = 0;
  std::uint32_t kernel_awaits = 0;
  /// The member that the call under way was last seen to wait for, and one more. 0: nobody.
  std::uint32_t awaits = 0;
  std::uint32_t fault = 0;  ///< The status that the team has ended with.
  /// The last call that has begun; written behind its entry. Beside nothing else that is written.
  alignas(64) std::uint64_t last = 0;
  alignas(64) JournalEntry calls[kCalls];
  JournalEntry of_streams[kStreamCalls];
};
static_assert(std::is_standard_layout_v<JournalPage> && std::is_trivially_copyable_v<JournalPage>);
static_assert(sizeof(JournalPage) <= JournalPage::kBytes);

}  // namespace brant::coll
