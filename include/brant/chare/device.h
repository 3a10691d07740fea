#pragma once

#include <optional>

#include "brant/base/buffer.h"
#include "brant/base/shape.h"
#include "brant/chare/detail/data.h"
#include "brant/ops/lane/data_arguments.h"

/// Arguments that travel as data apart from the message of a call: GPU memory, and large host buffers. They go the way
/// a channel's messages go, from any kind of memory to any kind, and never through the message.
///
///     class Block : public brant::Chare<Block> {
///      public:
///       void halo(brant::DeviceData face, int step);                       // runs when the data is there
///       brant::Buffer post(brant::Post<&Block::halo>, const brant::DeviceMeta& face, int step) {
///         return ghost_[step % 2];                                         // optional: where it lands
///       }
///     };
///     blocks[i].call<&Block::halo>(brant::device(face_buffer), step);
///
/// Source: "GPU Messaging API", section 3.1 of "Accelerating communication for parallel programming models on GPU
/// systems" (2022).
namespace brant {

/// Where one data argument lands: memory, and how the data lies in it if not in one run. Made of a Buffer as it is.
///
///     Landing post(Post<&Block::halo>, const DeviceMeta&, int) { return {field_, ghost_column_}; }
struct Landing {
  Landing() noexcept = default;
  Landing(Buffer memory_in) noexcept : memory(memory_in) {}  // NOLINT(google-explicit-constructor)
  /// `shape` is laid on `memory`, and has as many bytes as come. The runs of an indexed one stay valid until the method
  /// runs.
  Landing(Buffer memory_in, const Shape& shape_in) noexcept : memory(memory_in), shape(shape_in) {}

  Buffer memory;
  std::optional<Shape> shape;
};

/// Tells the post entries of a class apart. The *post entry* of a method is a public member, static or not, that
/// overload resolution finds as `post(Post<&Class::method>{}, ...)`: after the tag come the method's parameters, with
/// `const DeviceMeta&` in place of each data parameter. It returns the landing, a `Buffer` of at least `bytes`, or a
/// `Landing` of exactly as many (std::array<Buffer, N>, std::array<Landing, N> for N data parameters); an empty Buffer
/// leaves that one to the runtime.
///
/// It runs from the scheduler when the message arrives, before the data, once per call; never beside a method of the
/// same chare. The landing belongs to the runtime until the method runs. A landing that is too small, or of another
/// kind than declared, fails the call. Declare it after the method: names are looked up in order.
template <auto Method>
struct Post {};

namespace detail {

/// Fits every parameter, to find out whether a name exists whatever it takes.
struct Anything {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

}  // namespace detail
}  // namespace brant
