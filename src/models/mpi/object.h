#pragma once

#include <cstdint>

#include "brant/mpi/mpi.h"
#include "models/mpi/types/abi.h"

namespace brant::mpi {

/// What a handle of a program may point to.
enum class ObjectKind : std::uint32_t {
  freed = 0,
  communicator = 0x6d70'6901,
  group,
  request,
  message,
  info,
  error_handler,
  operation,
  window,
  session,
  file,
  stream,
};

/// The head of every object that a program has a handle of. Handles up to 4095 are the predefined ones of the ABI, all
/// others are pointers to objects; the kind finds most of those that were freed or never made.
struct Object {
  explicit Object(ObjectKind kind_in) noexcept : kind(kind_in) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object() { kind = ObjectKind::freed; }

  volatile ObjectKind kind;  ///< Volatile, so that the last store in it is made.
};

inline constexpr std::uintptr_t kPredefinedMax = 4095;

template <typename Handle>
[[nodiscard]] bool is_predefined(Handle handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle) <= kPredefinedMax;
}

/// The object of a handle that is not predefined; null if it is no such object.
template <typename T, typename Handle>
[[nodiscard]] T* object_of(Handle handle) noexcept {
  if (is_predefined(handle) || !may_point_to_object(handle_number(handle), alignof(T))) return nullptr;
  auto* object = reinterpret_cast<T*>(handle);
  return object->kind == T::kKind ? object : nullptr;
}

template <typename Handle, typename T>
[[nodiscard]] Handle handle_of(T& object) noexcept {
  return reinterpret_cast<Handle>(&object);
}

}  // namespace brant::mpi
