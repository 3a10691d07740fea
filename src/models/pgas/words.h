#pragma once

#include <cstdint>
#include <type_traits>

#include "brant/core/path.h"
#include "brant/pgas/global_ptr.h"

/// What the spaces of two processes say to each other, in messages of `am::ServiceId::pgas`.
namespace brant::pgas {

enum class SpaceWord : std::uint8_t {
  ask = 1,  ///< To an owner: how is the segment reached?
  ticket,   ///< From an owner, asked or not. `status` ok: the payload is a ticket, and who has it is remembered.
  retired,  ///< From an owner to whom it told: let go of the segment.
  let_go,   ///< To an owner: this process does not reach it any more.
  copy,     ///< To the owner of the source: a CopyRequest as payload, and behind it the shapes, if there are any.
  copied,   ///< What became of it.
  wake,     ///< A word was set there, which a program may wait for that sleeps.
};

/// The header of each message.
struct WordHeader {
  SpaceWord word{};
  std::uint8_t unused[3] = {};
  std::int32_t status = 0;
  std::uint32_t segment = 0;
  std::uint32_t unused_too = 0;
  std::uint64_t id = 0;  ///< Of a copy: the asker's.
};
static_assert(sizeof(WordHeader) == 24 && std::is_trivially_copyable_v<WordHeader>);

struct CopyRequest {
  GlobalPtr<const std::byte> from;
  GlobalPtr<std::byte> to;
  std::uint64_t bytes = 0;
  Path path = Path::automatic;  ///< Forced.
  std::uint8_t has_shapes = 0;
  std::uint8_t unused[6] = {};
};
static_assert(sizeof(CopyRequest) == 48 && std::is_trivially_copyable_v<CopyRequest>);

}  // namespace brant::pgas
