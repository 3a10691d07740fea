#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/process_mark.h"
#include "core/observe/counters.h"

namespace brant {

/// What stands in front of the counters: who they are of. Written before the file gets its name, and never again. Texts
/// end with a zero and are cut where they are longer.
struct StatisticsHeader {
  static constexpr std::uint64_t kMagic = 0x317461747362726e;  // "nrbstat1"
  /// Of the layout of the whole page. A reader of another version reads nothing.
  static constexpr std::uint32_t kVersion = 2;

  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t page_bytes = 0;  ///< sizeof(StatisticsPage), and
  std::uint32_t path_count = kPathCount;
  std::int32_t parent_pid = 0;  ///< Of the launcher, under `brant run`.
  ProcessMark owner;
  std::int64_t started_ns = 0;  ///< On the steady clock, which all processes of a host share.
  std::int32_t rank = 0;
  std::int32_t size = 1;
  std::int32_t local_rank = 0;
  std::int32_t local_size = 1;
  char job_id[256] = {};
  char launcher[32] = {};
  char program[64] = {};
};
static_assert(std::is_trivially_copyable_v<StatisticsHeader> && std::is_standard_layout_v<StatisticsHeader>);

/// The file that a process publishes itself by: `brant info --jobs` reads it while the process goes on writing.
struct StatisticsPage {
  static constexpr std::size_t kFileBytes = 4096;

  StatisticsHeader header;
  alignas(64) Counters counters;
};
static_assert(sizeof(StatisticsPage) <= StatisticsPage::kFileBytes && std::is_standard_layout_v<StatisticsPage>);

}  // namespace brant
