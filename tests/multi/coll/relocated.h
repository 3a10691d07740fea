#pragma once

#include <cstddef>
#include <optional>

#include "brant/brant.h"
#include "brant/coll/collectives.h"

namespace brant::test {

/// A call on copies of its buffers, which lie in memory of other kinds.
class Relocated {
 public:
  /// Where `in` and `out` are to be; host: where they are. A call in place stays one.
  Relocated(Runtime& runtime, const Collective& call, MemoryKind in, MemoryKind out)
      : runtime_(runtime), original_(call), call_(call) {
    const auto* const given = static_cast<const std::byte*>(call.in.data);
    auto* const gotten = static_cast<std::byte*>(call.out.data);
    const bool in_place = given != nullptr && given >= gotten && given < gotten + call.out.bytes;
    if (out != MemoryKind::host && call.out.bytes != 0) {
      out_.emplace(runtime.allocate(out, call.out.bytes));
      runtime.copy(*out_, call.out);
      call_.out = *out_;
      if (in_place) call_.in = {static_cast<std::byte*>(out_->data()) + (given - gotten), call.in.bytes, out};
    }
    if (in != MemoryKind::host && !in_place && call.in.bytes != 0) {
      in_.emplace(runtime.allocate(in, call.in.bytes));
      runtime.copy(*in_, call.in);
      call_.in = *in_;
    }
  }

  [[nodiscard]] const Collective& call() const { return call_; }
  void bring_back() {
    if (out_) runtime_.copy(original_.out, *out_);
  }

 private:
  Runtime& runtime_;
  const Collective original_;
  Collective call_;
  std::optional<Memory> in_, out_;
};

}  // namespace brant::test
