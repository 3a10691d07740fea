#pragma once

#include <cstdint>

#include "brant/chare/chares.h"
#include "models/chare/envelope.h"
#include "models/chare/registry.h"
#include "ops/am/messenger.h"
#include "ops/channel/table.h"
#include "ops/lane/data_lanes.h"

namespace brant::detail {

class Core;

/// Who one program of chares is, and what it stands on. All parts of its core read it; nothing in it changes.
struct ProgramContext {
  ProgramContext(Core& core_of_it, Chares& of, Engine& on, const ChareOptions& with, std::uint16_t number);

  Core& core;  ///< What handles and invocations carry: the parts pass it on, and know nothing of it.
  Chares& chares;
  Engine& engine;
  am::Messenger& messenger;
  lane::DataLanes& lanes;
  ChannelTable& channels;
  Registry& registry;
  const ChareOptions options;
  const std::int32_t rank;
  const std::int32_t ranks;
  const std::uint16_t session;  ///< Messages of earlier programs of the runtime have another.

  /// Who sent a message; those of this process do not say.
  [[nodiscard]] std::int32_t source_of(const am::Message& message) const noexcept {
    return detail::source_of(message, rank);
  }
};

}  // namespace brant::detail
