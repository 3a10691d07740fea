#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/archive.h"
#include "brant/base/ids.h"
#include "brant/base/status.h"
#include "brant/core/reply.h"
#include "brant/ops/rpc/function.h"

namespace brant {

namespace remote {

/// The arguments of a call that travel beside its message.
struct PackedData {
  lane::DataOrigin* first = nullptr;
  const lane::DataMeta* metas = nullptr;
};

}  // namespace remote

/// A call whose message is made and not sent yet: for what is to run at a rank once something else is done, such as the
/// remote completion of a put. Made by `Rpc::pack`. The worker's thread; it goes before its Runtime.
class BRANT_API PackedCall {
 public:
  PackedCall() noexcept = default;  ///< Nothing, to be assigned to: `send` answers no_memory.
  /// Of `Rpc::pack`. Nothing without memory. Takes over the data.
  PackedCall(remote::RpcService& service, const remote::Function& function, Rank to, std::size_t bytes,
             const remote::PackedData& data) noexcept;
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
    PackedCall call(service, function, to, size.size(), {});
    if (std::byte* place = call.arguments()) {
      WriteArchive write(place);
      write(values...);
    }
    return call;
  }
};

/// Throws wrong_kind, invalid_argument, limit_reached, no_memory.
BRANT_API lane::DataOrigin* take_sources(RpcService& service, const Function& function, detail::DataSource* sources,
                                         lane::DataMeta* metas);

/// The same where some of the arguments travel as data beside the message.
template <typename Parameters, typename Sent>
struct PackWithData;
template <typename... Ps, typename... Ts>
struct PackWithData<std::tuple<Ps...>, std::tuple<Ts...>> {
  template <typename P, typename T>
  using Given = std::conditional_t<detail::DataParameter<P>::is_data, T, const T&>;
  static constexpr std::size_t kData = (std::size_t{0} + ... + (detail::DataParameter<Ps>::is_data ? 1 : 0));

  static PackedCall pack(RpcService& service, const Function& function, Rank to, Given<Ps, Ts>... values) {
    SizeArchive size;
    (write_unless_data<Ps>(size, values), ...);
    detail::DataSource sources[kData];
    lane::DataMeta metas[kData];
    std::size_t index = 0;
    (collect<Ps>(values, sources, metas, index), ...);
    PackedCall call(service, function, to, size.size(), {take_sources(service, function, sources, metas), metas});
    if (std::byte* place = call.arguments()) {
      WriteArchive write(place);
      (write_unless_data<Ps>(write, values), ...);
    }
    return call;
  }

 private:
  template <typename P, typename T>
  static void collect(T& value, detail::DataSource* sources, lane::DataMeta* metas, std::size_t& index) {
    if constexpr (detail::DataParameter<P>::is_data) {
      metas[index].host_only = detail::DataParameter<P>::host_only;
      sources[index++] = std::move(value.source());
    }
  }
  template <typename P, typename Archive, typename T>
  static void write_unless_data(Archive& archive, const T& value) {
    if constexpr (!detail::DataParameter<P>::is_data) archive(value);
  }
};

template <auto F, typename... Args>
PackedCall pack(RpcService& service, Rank to, Args&&... args) {
  using Called = FunctionOf<F>;
  if constexpr (Called::template require_fitting<Args...>()) {
    using Shape = typename Called::Shape;
    using Packer = std::conditional_t<Shape::kData == 0, PackAs<typename Shape::Arguments>,
                                      PackWithData<typename Shape::Arguments, typename Shape::Sent>>;
    return Packer::pack(service, Called::get(), to, std::forward<Args>(args)...);
  } else {
    return {};
  }
}

}  // namespace remote
}  // namespace brant
