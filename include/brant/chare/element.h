#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "brant/base/status.h"
#include "brant/chare/chares.h"
#include "brant/chare/detail/entry.h"
#include "brant/core/future.h"
#include "brant/core/reply.h"

namespace brant {

namespace detail {

/// Base of proxies. They hold an address of this process, so they must never be copied as bytes, nor a struct with one
/// inside: this makes the compiler say that it is not trivially copyable, and `serialize` is asked for.
struct NotBytes {
  NotBytes() noexcept = default;
  NotBytes(const NotBytes&) noexcept {}
  NotBytes& operator=(const NotBytes&) noexcept { return *this; }
};

}  // namespace detail

/// One chare, wherever it lives. A value: copy it, keep it, send it as an argument. Costs nothing to make.
///
///     blocks[{x, y, z}].call<&Block::halo>(step, face);                     // asynchronous, nothing comes back
///     double n = co_await blocks[{0, 0, 0}].ask<&Block::norm>();           // a Future of the result
///     blocks[{0, 0, 0}].with({.priority = 5}).call<&Block::halo>(step, face);
///
/// Arguments are packed inside the call: the caller's buffers are free when it returns. In steady state nothing is
/// allocated. Between processes of one host the method reads large arguments where they were packed. Worker's thread.
template <typename C>
class Element : private detail::NotBytes {
 public:
  Element() noexcept = default;
  Element(detail::Core& core, const detail::Target& target) noexcept : core_(&core), target_(target) {}

  [[nodiscard]] typename C::IndexType index() const noexcept {
    return target_.key.template as<typename C::IndexType>();
  }
  /// The same element with other options for the next call.
  [[nodiscard]] Element with(const CallOptions& options) const noexcept {
    Element other = *this;
    other.options_ = options;
    return other;
  }

  /// Invokes a method. Throws limit_reached (see Chares, bounds), no_memory. A chare that does not exist ends the job
  /// with an error that names it.
  template <auto Method, typename... As>
  void call(As&&... arguments) const {
    using Entry = detail::EntryOf<C, Method>;
    if constexpr (Entry::template require_fitting<As...>()) {
      if constexpr (!detail::kIsTask<typename Entry::Traits::Result> && Entry::Traits::kData == 0) {
        if (options_.inline_when_local && !Entry::get().awaited && call_inline<Method>(arguments...)) return;
      }
      send<Method>(0, std::forward<As>(arguments)...);
    }
  }

  /// Invokes a method and gives the future of its result. The future throws what the method threw (as Error, with the
  /// text), or peer_lost: that is for cleaning up, as the program ends whoever catches it (see Chares, lost ranks). It
  /// allocates once. Dropping it is allowed.
  template <auto Method, typename... As>
  auto ask(As&&... arguments) const {
    using Entry = detail::EntryOf<C, Method>;
    using R = typename Entry::Reply;
    Promise<R> promise;
    Future<R> future = promise.future();
    if constexpr (Entry::template require_fitting<As...>()) {
      const std::uint32_t reply =
          detail::expect_reply(require_core(), detail::waiting_for(std::move(promise)), target_, Entry::get());
      send<Method>(reply, std::forward<As>(arguments)...);
    }
    return future;
  }

  /// The object itself if it lives in this process, else null. For reading neighbours cheaply: mind that it may be
  /// deleted at the next message.
  [[nodiscard]] C* local() const noexcept {
    return core_ == nullptr ? nullptr : static_cast<C*>(detail::local(*core_, target_));
  }

  /// Deletes it, after the messages sent to it before from here. Its coroutines end, and whoever awaits an answer of
  /// one gets not_found. Later messages to it are errors: an `ask` fails with not_found, others end the job with an
  /// error that names it. (Of the elements of a sparse array, which may be inserted again, the last 4096 that were
  /// deleted are known on each rank; a message to an older one waits for the element to be inserted.)
  void destroy() const { detail::post_destroy(require_core(), target_); }

  bool operator==(const Element& other) const noexcept {
    return target_.collection == other.target_.collection && target_.key == other.target_.key;
  }

  /// For the templates of this folder.
  [[nodiscard]] const detail::Target& target() const noexcept { return target_; }
  [[nodiscard]] detail::Core& core() const { return require_core(); }

  void serialize(auto& archive) {
    archive(target_.collection, target_.key);
    if constexpr (std::remove_reference_t<decltype(archive)>::reading) core_ = &archive.chares()->core();
  }

 private:
  detail::Core& require_core() const {
    if (core_ == nullptr) {
      throw Error(Status::invalid_argument,
                  "a proxy that was never assigned: take it from an array or from create_chare");
    }
    return *core_;
  }

  template <auto Method, typename... As>
  void send(std::uint32_t reply, As&&... arguments) const {
    using Entry = detail::EntryOf<C, Method>;
    detail::Core& core = require_core();
    const auto open = [&](std::size_t bytes) {
      return detail::open_call(core, target_, Entry::get(), options_, reply, bytes);
    };
    detail::post_call<Entry>(core, open, std::forward<As>(arguments)...);
  }

  /// Without packing: the method runs now, on the caller's own arguments (copied where it takes them by value).
  template <auto Method, typename... As>
  bool call_inline(As&... arguments) const {
    using Entry = detail::EntryOf<C, Method>;
    ChareBase* chare = detail::idle_local(require_core(), target_);
    if (chare == nullptr) return false;
    auto method = [&] {
      typename Entry::Traits::Arguments values(arguments...);
      static_cast<void>(Entry::Traits::call(static_cast<C&>(*chare), Method, values));
    };
    detail::run_inline(
        *core_, *chare, Entry::get(), [](void* body) { (*static_cast<decltype(method)*>(body))(); }, &method);
    return true;
  }

  detail::Core* core_ = nullptr;
  detail::Target target_;
  CallOptions options_;
};

/// Makes a chare that stands alone, on `rank` (or here). Asynchronous; the constructor's exception ends the job with an
/// error.
template <typename C, typename... As>
Element<C> create_chare(Chares& chares, Rank rank, As&&... arguments) {
  static_assert(std::is_same_v<typename C::IndexType, Single>,
                "brant: create_chare needs a class that derives from brant::Chare<Class, brant::Single>");
  using Constructor = detail::ConstructorOf<C, detail::Stored<As>...>;
  detail::Core& core = chares.core();
  const detail::Target target = detail::single_target(core, detail::ClassOf<C>::get(), rank.value);
  if constexpr (Constructor::kUsable) {
    const auto open = [&](std::size_t bytes) { return detail::open_insert(core, target, Constructor::get(), bytes); };
    detail::Outgoing outgoing =
        detail::PackAs<std::tuple<detail::Stored<As>...>>::pack(open, std::forward<As>(arguments)...);
    detail::post(core, outgoing);
  }
  return Element<C>(core, target);
}

template <typename Derived, ElementIndex I>
Element<Derived> Chare<Derived, I>::this_element() const noexcept {
  return Element<Derived>(chares().core(), {collection_id(), key()});
}

}  // namespace brant
