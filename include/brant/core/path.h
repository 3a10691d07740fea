#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "brant/base/api.h"
#include "brant/base/buffer.h"

namespace brant {

/// The way one transfer goes. The names are the same in code, options, JSON rows, tests and prose.
enum class Path : std::uint8_t {
  automatic = 0,  ///< Let brant choose; never reported as the path taken.
  ucx = 1,        ///< The network library moves the bytes from where they are to where they shall be.
  shm = 2,        ///< Copied by the CPUs through memory that both processes of one host map.
  staged = 3,  ///< Device to pinned host memory, host send, host to device: what a program does without GPU-awareness.
  copy_engine = 4,  ///< The sender's device copies into the receiver's device memory, which it has mapped.
  courier = 5,      ///< The same by a kernel that stays on the sender's device while there is work.
  kernel = 6,       ///< The same by a kernel on the user's stream, which agrees with the receiver's by itself.
};

inline constexpr int kPathCount = 7;

/// What a process has sent so far, by path: messages, puts and gets of all models, each counted once it has gone.
struct PathUse {
  std::array<std::uint64_t, kPathCount> messages{};
  std::array<std::uint64_t, kPathCount> bytes{};
};

/// "auto", "ucx", "shm", "staged", "copy_engine", "courier", "kernel".
BRANT_API std::string_view path_name(Path path) noexcept;
BRANT_API bool path_from_name(std::string_view name, Path& path) noexcept;

/// The names one may ask for, with BRANT_PATH or an option: all but "kernel", which transfers of streams take by
/// themselves.
BRANT_API std::vector<std::string> requestable_paths();
/// The same for an error message: "auto, ucx, ... or courier".
BRANT_API std::string requestable_path_list();

}  // namespace brant
