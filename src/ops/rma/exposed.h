#pragma once

#include <cstdint>

#include "brant/ops/rma.h"
#include "core/engine.h"

namespace brant {

/// A segment of this process. Its user and the targets of this very process share it; who comes after the close finds
/// it closed.
struct ExposedSegment {
  ExposedSegment(Engine& engine_in, Buffer memory_in) noexcept : engine(engine_in), memory(memory_in) {}
  ExposedSegment(const ExposedSegment&) = delete;
  ExposedSegment& operator=(const ExposedSegment&) = delete;

  Engine& engine;
  const Buffer memory;
  std::uint64_t id = 0;  ///< Of no other segment of this process.
  port::WireSegment* registered = nullptr;
  SegmentTicket ticket;
  bool open = true;
};

}  // namespace brant
