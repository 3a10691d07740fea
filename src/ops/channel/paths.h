#pragma once

#include "brant/base/buffer.h"
#include "brant/base/shape.h"
#include "core/paths/path_choice.h"

namespace brant {

class ChannelEndpoint;

/// By which path the messages of one end go.
class ChannelPaths {
 public:
  explicit ChannelPaths(ChannelEndpoint& end) noexcept : end_(end) {}

  /// `path`, or automatic, from now on.
  void force(Path path) noexcept {
    forced_ = path;
    last_choice_ = {};
  }
  [[nodiscard]] Path forced() const noexcept { return forced_; }
  /// The path that a buffer would take; not_supported as in the posts. `mapped`: host memory that the peer can map,
  /// which a post finds out later.
  Status choose(MemoryKind kind, std::size_t bytes, Path& path, bool mapped = false) noexcept;
  /// The same for a post: messages of a channel are mostly alike.
  Status choose_again(MemoryKind kind, std::size_t bytes, Path& path) noexcept {
    const bool alike = kind == last_query_.kind && bytes == last_query_.bytes && !last_query_.mapped_source &&
                       host_accessible(kind) && last_choice_.status == Status::ok;
    path = last_choice_.path;
    return alike && path != Path::automatic ? Status::ok : choose(kind, bytes, path);
  }
  /// The same where the bytes do not lie in one run: the courier takes none such, and the network what was packed.
  Status choose_for_shape(MemoryKind kind, std::size_t bytes, Path& path) noexcept;
  /// The same of a buffer to be sent, of any memory.
  Status of(ConstBuffer source, Path& path) noexcept;
  Status of(ConstBuffer source, const Shape& shape, Path& path) noexcept;

 private:
  ChannelEndpoint& end_;
  Path forced_ = Path::automatic;
  PathQuery last_query_;
  PathChoice last_choice_;
};

}  // namespace brant
