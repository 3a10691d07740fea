#pragma once

#include <vector>

#include "models/mpi/object.h"

namespace brant::mpi {

struct Communicator;
class StreamDoor;

/// What a handle of a stream points to. It is freed when no communicator has it either, and of no use before.
struct MpiStream final : Object {
  static constexpr ObjectKind kKind = ObjectKind::stream;
  explicit MpiStream(StreamDoor* door_in) noexcept : Object(kKind), door(door_in) {}

  /// The program's handle goes.
  void retire() noexcept {
    kind = ObjectKind::freed;
    door = nullptr;
  }
  [[nodiscard]] bool retired() const noexcept { return kind != kKind; }

  StreamDoor* door;                          ///< Null: it is none of a device.
  std::vector<Communicator*> communicators;  ///< That have it and are not freed.
};

}  // namespace brant::mpi
