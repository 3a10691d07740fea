#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "port/boot/key_values.h"

namespace brant::port::tcp_store {

/// What a process puts for one fence, as one run of bytes in pieces of at most `longest`. The first says how many
/// follow, so that whoever has it knows what else to fetch; there is always a first.
std::vector<std::vector<std::byte>> pack(const KeyValues& values, std::size_t longest);

/// How many pieces follow this first one. False if it is none.
bool pieces_after(std::span<const std::byte> first, std::size_t& count);

/// Adds what the pieces of one parcel hold to `values`. False if they are damaged.
bool unpack(std::span<const std::vector<std::byte>> pieces, KeyValues& values);

}  // namespace brant::port::tcp_store
