#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/mpi/session.h"

namespace brant::mpi {

/// The sessions of a rank that are open.
class Sessions {
 public:
  [[nodiscard]] Session& open(ErrorHandler& handler) {
    open_.push_back(std::make_unique<Session>(last_ + 1, handler));
    ++last_;
    return *open_.back();
  }
  void close(const Session& session) noexcept {
    std::erase_if(open_, [&](const auto& open) { return open.get() == &session; });
  }
  /// Null: the session with this number is over, or the number is `kNone`.
  [[nodiscard]] Session* find(std::uint64_t number) const noexcept {
    for (const auto& session : open_) {
      if (session->number == number) return session.get();
    }
    return nullptr;
  }
  [[nodiscard]] std::size_t count() const noexcept { return open_.size(); }

  static constexpr std::uint64_t kNone = 0;  ///< Of what derives from no session.

 private:
  std::uint64_t last_ = kNone;
  std::vector<std::unique_ptr<Session>> open_;
};

}  // namespace brant::mpi
