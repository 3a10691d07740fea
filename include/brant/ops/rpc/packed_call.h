#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/archive.h"
#include "brant/base/ids.h"
#include "brant/base/status.h"
#include "brant/core/reply.h"
#include "brant/ops/rpc/function.h"

namespace brant {

/// A call whose message is made and not sent yet: for what is to run at a rank once something else is done, such as the
/// remote completion of a put. Made by `Rpc::pack`. The worker's thread; it goes before its Runtime.
class BRANT_API PackedCall {
 public:
  PackedCall() noexcept = default;  ///< Nothing, to be assigned to: `send` answers no_memory.
  /// Of `Rpc::pack`. Nothing without memory.
  PackedCall(remote::RpcService& service, const remote::Function& function, Rank to, std::size_t bytes) noexcept;
  PackedCall(PackedCall&& other) noexcept
      : service_(other.service_),
        function_(other.function_),
        message_(std::exchange(other.message_, nullptr)),
        arguments_(other.arguments_),
        to_(other.to_) {}
  PackedCall& operator=(PackedCall&& other) noexcept {
    PackedCall incoming(std::move(other));
    std::swap(service_, incoming.service_);
    std::swap(function_, incoming.function_);
    std::swap(message_, incoming.message_);
    std::swap(arguments_, incoming.arguments_);
    std::swap(to_, incoming.to_);
    return *this;
  }
  /// Unsent, it gives its message back, and nothing runs anywhere.
  ~PackedCall();

  /// True until it was sent.
  [[nodiscard]] bool packed() const noexcept { return message_ != nullptr; }
  [[nodiscard]] Rank to() const noexcept { return to_; }

  /// Sends it as `Rpc::tell` does, with the same outcomes; ok: it is sent, and this object is nothing from now on.
  /// Otherwise it stays what it is, and may be sent again. May be called wherever messages may be sent, inside pollers
  /// too: it runs no code of the user.
  Status send() noexcept;
  /// As `Rpc::try_tell`.
  Status try_send() noexcept;
  /// Sends it as `Rpc::call` does: `waiting` is delivered exactly once, before the return unless that is ok. For the
  /// layers above.
  Status ask(const detail::Waiting& waiting, bool at_once) noexcept;

  /// Where its arguments are written; null if it is nothing.
  [[nodiscard]] std::byte* arguments() const noexcept { return message_ != nullptr ? arguments_ : nullptr; }

 private:
  Status post(bool at_once) noexcept;

  remote::RpcService* service_ = nullptr;
  const remote::Function* function_ = nullptr;
  void* message_ = nullptr;
  std::byte* arguments_ = nullptr;
  Rank to_;
};

namespace remote {

/// Gives every argument the type that the function declares, once, and packs it.
template <typename Arguments>
struct PackAs;
template <typename... Ts>
struct PackAs<std::tuple<Ts...>> {
  static PackedCall pack(RpcService& service, const Function& function, Rank to, const Ts&... values) {
    SizeArchive size;
    size(values...);
    PackedCall call(service, function, to, size.size());
    if (std::byte* place = call.arguments()) {
      WriteArchive write(place);
      write(values...);
    }
    return call;
  }
};

template <auto F, typename... Args>
PackedCall pack(RpcService& service, Rank to, Args&&... args) {
  using Called = FunctionOf<F>;
  if constexpr (Called::template require_fitting<Args...>()) {
    return PackAs<typename Called::Shape::Arguments>::pack(service, Called::get(), to, std::forward<Args>(args)...);
  } else {
    return {};
  }
}

}  // namespace remote
}  // namespace brant
