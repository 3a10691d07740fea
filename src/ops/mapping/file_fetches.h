#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/file_box.h"
#include "core/engine.h"
#include "ops/mapping/mapping.h"
#include "ops/mapping/mapping_message.h"

namespace brant {

/// Memory that is mapped by means of a file has that fetched from its owner, who puts it into a box of this process and
/// says so. Until then the memory is not mapped, and what lies there goes other ways; nobody waits in here.
///
/// Bounded: so many files are under way at a time, and further ones are asked for in their turn. No file stays open
/// once the memory is mapped; the box costs a descriptor, from the first file on.
class FileFetches {
 public:
  static constexpr unsigned kAtOnce = 16;
  static_assert(kAtOnce < FileBox::kKeptMax);

  /// `patience`: an owner that has not answered for so long makes no progress, and nobody waits for it any more. A file
  /// that comes later is used all the same.
  FileFetches(Engine& engine, std::chrono::milliseconds patience) noexcept : engine_(engine), patience_(patience) {}
  FileFetches(const FileFetches&) = delete;
  FileFetches& operator=(const FileFetches&) = delete;

  [[nodiscard]] static bool is_awaited(const Mapping& mapping) noexcept {
    return mapping.file == Mapping::File::wanted || mapping.file == Mapping::File::asked_for;
  }
  /// in_progress: it is asked for, at once or in its turn. Else why not, which was said.
  Status begin(Mapping& mapping) noexcept;
  /// What the owner has put into the box, or its reason not to.
  Result<UniqueFd> receive(const Peer& peer, const MappingMessage& handed) noexcept;
  /// It was answered for. False: that was not asked for.
  bool end(Mapping& mapping) noexcept;
  /// Nobody wants it any more.
  void forget(Mapping& mapping) noexcept;
  /// The peer is gone: closes what it has put into the box.
  void discard(const Peer& peer) noexcept;
  void look_for_late() noexcept;
  /// Aloud once, with the cure.
  void say_why(Mapping& mapping, Status why) noexcept;

 private:
  using List = IntrusiveList<Mapping, &Mapping::file_hook>;

  Status ask(Mapping& mapping) noexcept;
  void ask_next() noexcept;

  Engine& engine_;
  const std::chrono::milliseconds patience_;
  std::optional<FileBox> box_;
  std::uint64_t last_number_ = 0;
  unsigned under_way_ = 0;
  bool said_ = false;
  bool said_late_ = false;
  List asked_for_;  ///< Those under way, the longest first.
  List wanted_;
};

}  // namespace brant
