#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/archive.h"
#include "brant/base/ids.h"
#include "brant/base/type_names.h"
#include "brant/core/future.h"
#include "brant/ops/rpc.h"

namespace brant {

template <typename T>
class Distributed;

namespace remote {

/// One process's part of a distributed object, as its service knows it.
struct DistributedPart {
  void* value = nullptr;
  std::uint64_t type = 0;  ///< A hash of its name.
  std::uint64_t id = 0;    ///< Set by `add_part`: the first is 1, the same in all processes.
};

BRANT_API void add_part(RpcService& service, DistributedPart& part);
BRANT_API void remove_part(RpcService& service, DistributedPart& part) noexcept;
/// For an argument that arrives. Throws invalid_argument (of another type), not_found (it has gone); what is thrown for
/// one that is yet to be made keeps the call back until then.
BRANT_API void* arrived_part(RpcService& service, std::uint64_t id, std::uint64_t type);

template <typename T>
constexpr std::uint64_t type_hash() noexcept {
  return detail::name_hash("distributed", detail::type_name<T>());
}

}  // namespace remote

/// Parameter type of a remote function: a distributed object, of which it sees the part of the process in which it
/// runs. The caller passes the `Distributed<T>` itself. A call that comes before its target has made its part waits for
/// it, and those behind it may pass. Valid while the part lives: keep it no longer than that.
template <typename T>
class DistributedRef {
 public:
  DistributedRef() noexcept = default;  ///< Of nothing.

  [[nodiscard]] T& operator*() const noexcept { return *value_; }
  [[nodiscard]] T* operator->() const noexcept { return value_; }

  /// For the templates of remote calls.
  void arrive(ReadArchive& archive, const remote::Invocation& invocation) {
    archive(id_);
    *invocation.begun = true;  // what fails now is no fault of the message
    value_ = static_cast<T*>(remote::arrived_part(*invocation.service, id_, remote::type_hash<T>()));
    *invocation.begun = false;
  }
  void serialize(auto& archive) {
    constexpr bool kReading = std::remove_reference_t<decltype(archive)>::reading;
    static_assert(!kReading, "brant: a DistributedRef is a parameter of its own, not a part of another value");
    archive(id_);
  }

 private:
  friend class Distributed<T>;
  DistributedRef(std::uint64_t id, T* value) noexcept : id_(id), value_(value) {}

  std::uint64_t id_ = 0;
  T* value_ = nullptr;
};

/// One object with a part in every process of the job: all make it, in the same order among those that they make, at
/// any time; nobody waits for the others. Remote functions that take a `DistributedRef<T>` see the part of their own
/// process.
///
///     using Table = std::unordered_map<std::string, int>;
///     void insert(DistributedRef<Table> table, std::string key, int value) { table->emplace(std::move(key), value); }
///
///     Distributed<Table> table(rpc);
///     rpc.tell<&insert>(owner_of(key), table, key, 7);
///
/// Stays where it is (not movable). Calls that come after its end fail with not_found, so let all processes agree that
/// nobody calls any more before they destroy it. The worker's thread; it goes before the Runtime.
template <typename T>
class Distributed {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>, "brant: Distributed<T> holds an object that may change");

 public:
  /// Makes this process's part of what follows `rpc`. Throws what T throws, bad_alloc.
  template <typename... Args>
  explicit Distributed(const Rpc& rpc, Args&&... args) : rpc_(rpc), value_(std::forward<Args>(args)...) {
    part_.value = &value_;
    part_.type = remote::type_hash<T>();
    remote::add_part(rpc_.service(), part_);
  }
  Distributed(const Distributed&) = delete;
  Distributed& operator=(const Distributed&) = delete;
  ~Distributed() { remote::remove_part(rpc_.service(), part_); }

  /// The part of this process.
  [[nodiscard]] T& operator*() noexcept { return value_; }
  [[nodiscard]] const T& operator*() const noexcept { return value_; }
  [[nodiscard]] T* operator->() noexcept { return &value_; }
  [[nodiscard]] const T* operator->() const noexcept { return &value_; }

  operator DistributedRef<T>() noexcept { return {part_.id, &value_}; }  // NOLINT(google-explicit-constructor)

  /// A copy of the part of another rank, as soon as that is made. T travels. Fails and throws as `Rpc::call` does.
  Future<T> fetch(Rank rank) { return rpc_.call<&copy_of>(rank, *this); }

 private:
  static T copy_of(DistributedRef<T> part) { return *part; }

  Rpc rpc_;
  T value_;
  remote::DistributedPart part_;
};

}  // namespace brant
