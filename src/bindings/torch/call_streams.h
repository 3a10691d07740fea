#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>
#include <optional>

#include "bindings/torch/gpu.h"

namespace brant::distributed {

/// The streams that a group's calls are queued on, behind each other: that of the caller, or one of the group's own.
/// With the job claimed.
class CallStreams {
 public:
  explicit CallStreams(Gpu gpu) noexcept : gpu_(gpu) {}

  /// The calling thread's, behind the calls that were queued before.
  c10::Stream current();
  /// The group's own, behind what the calling thread computes, and those calls.
  c10::Stream own();
  /// A call was queued there: what tells of its end.
  std::shared_ptr<c10::Event> note_call(const c10::Stream& stream);

  /// There was a call on tensors of the GPU.
  [[nodiscard]] bool used() const noexcept { return own_ || last_; }
  /// Of the last call that was queued; null: there was none.
  [[nodiscard]] std::shared_ptr<c10::Event> last_end() const { return last_ ? last_->end : nullptr; }

 private:
  struct Queued {
    c10::Stream stream;
    std::shared_ptr<c10::Event> end;
  };

  void put_behind_last(const c10::Stream& stream) const;

  Gpu gpu_;
  std::optional<c10::Stream> own_;
  std::optional<Queued> last_;
};

}  // namespace brant::distributed
