#pragma once

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "brant/chare/array.h"
#include "brant/chare/callback.h"
#include "brant/chare/reduce.h"
#include "brant/chare/section.h"
#include "brant/core/stream_done.h"

/// The reductions of `Chare`; what they mean is said there.
namespace brant {

namespace detail {

template <typename Operation, typename I, typename T>
void contribute_value(Core& core, ChareBase& chare, const GatheringId& gathering, const T& value,
                      const CallbackTarget& target, const Waiting* waiting) {
  using Kept = ContributedType<T>;
  Contribution contribution{&chare, gathering, &ReducerOf<Operation, Kept, I>::get(), nullptr, &target, waiting};
  if constexpr (std::is_same_v<Kept, std::decay_t<T>>) {
    contribution.value = &value;
    contribute(core, contribution);
  } else {
    const Kept kept(value.begin(), value.end());
    contribution.value = &kept;
    contribute(core, contribution);
  }
}

/// With the result to every contributor.
template <typename Operation, typename I, typename R, typename T>
Future<R> contribute_for_all(Core& core, ChareBase& chare, const GatheringId& gathering, const T& value) {
  Promise<R> promise;
  Future<R> future = promise.future();
  CallbackTarget target;
  target.kind = CallbackKind::everyone;
  Waiting waiting = waiting_for(std::move(promise));
  try {
    contribute_value<Operation, I>(core, chare, gathering, value, target, &waiting);
  } catch (...) {
    waiting.deliver(waiting.storage, nullptr, std::current_exception());
    throw;
  }
  return future;
}

}  // namespace detail

template <typename Derived, ElementIndex I>
template <typename Operation, typename T>
void Chare<Derived, I>::contribute(const T& value,
                                   const std::type_identity_t<Callback<ReductionResult<Operation, T>>>& to) {
  detail::contribute_value<Operation, I>(chares().core(), *this, {0, collection_id(), 0}, value, to.target(), nullptr);
}
template <typename Derived, ElementIndex I>
template <typename Operation, typename T>
void Chare<Derived, I>::contribute(const Section<Derived>& section, const T& value,
                                   const std::type_identity_t<Callback<ReductionResult<Operation, T>>>& to) {
  detail::contribute_value<Operation, I>(section.core(), *this, section.gathering(), value, to.target(), nullptr);
}

template <typename Derived, ElementIndex I>
template <typename Operation, typename T>
auto Chare<Derived, I>::all_reduce(const T& value) {
  return detail::contribute_for_all<Operation, I, ReductionResult<Operation, T>>(chares().core(), *this,
                                                                                 {0, collection_id(), 0}, value);
}
template <typename Derived, ElementIndex I>
template <typename Operation, typename T>
auto Chare<Derived, I>::all_reduce(const Section<Derived>& section, const T& value) {
  return detail::contribute_for_all<Operation, I, ReductionResult<Operation, T>>(section.core(), *this,
                                                                                 section.gathering(), value);
}

template <typename Derived, ElementIndex I>
Future<> Chare<Derived, I>::barrier() {
  return detail::contribute_for_all<reduce::Nothing, I, void>(chares().core(), *this, {0, collection_id(), 0},
                                                              std::tuple<>{});
}
template <typename Derived, ElementIndex I>
Future<> Chare<Derived, I>::barrier(const Section<Derived>& section) {
  return detail::contribute_for_all<reduce::Nothing, I, void>(section.core(), *this, section.gathering(),
                                                              std::tuple<>{});
}

template <typename Derived, ElementIndex I>
template <typename Operation, typename T>
Task<void> Chare<Derived, I>::all_reduce_device(Buffer values) {
  Runtime& runtime = chares().runtime();
  std::vector<T> host(values.bytes / sizeof(T));
  co_await copy_done(runtime, std::span<T>(host), values);
  Future<std::vector<T>> reduced = all_reduce<Operation>(host);
  host = co_await reduced;
  co_await copy_done(runtime, values, std::span<T>(host));
}
template <typename Derived, ElementIndex I>
template <typename Operation, typename T>
Task<void> Chare<Derived, I>::contribute_device(ConstBuffer values, Callback<std::vector<T>> to) {
  std::vector<T> host(values.bytes / sizeof(T));
  co_await copy_done(chares().runtime(), std::span<T>(host), values);
  contribute<Operation>(host, to);
}

}  // namespace brant
