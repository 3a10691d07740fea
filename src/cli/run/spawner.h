#pragma once

#include <string_view>
#include <utility>

#include "base/unique_fd.h"

namespace brant::run {

/// The program that has spawned this job, at the other end of a socket (port/boot/launcher/spawn_plan.h).
class Spawner {
 public:
  explicit Spawner(UniqueFd line) noexcept : line_(std::move(line)) {}

  /// Tells it something; a program that does not read is not waited for.
  void tell(std::string_view text) noexcept;
  /// -1 once it has left or died.
  [[nodiscard]] int fd() const noexcept { return line_.get(); }
  void on_readable() noexcept;

  /// The two are connected: before, what becomes of this job is the spawner's to know alone.
  [[nodiscard]] bool has_met() const noexcept { return met_; }
  /// Without a word. Told once.
  [[nodiscard]] bool take_death() noexcept { return std::exchange(died_, false); }

 private:
  UniqueFd line_;
  bool met_ = false;
  bool left_ = false;
  bool died_ = false;
};

}  // namespace brant::run
