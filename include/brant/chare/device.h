#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "brant/base/ids.h"
#include "brant/base/shape.h"
#include "brant/chare/detail/data.h"

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

class DeviceArgument;
template <typename T>
class HostArgument;

/// What a post entry is told of one data argument.
struct DeviceMeta {
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::host;  ///< Of the source.
  Rank source;                         ///< Who sent it.
  int argument = 0;                    ///< Its place among the data arguments of the call.
};

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

/// Parameter type of an entry method: bytes that landed before it runs. Take it by value or by const reference; in an
/// entry that a `when` awaits by const reference, since the waiter keeps it. There the landing of a post entry is in
/// use until a `when` has taken the call.
///
/// With a post entry it views the landing named there. Without, it owns memory of the runtime, on this process's device
/// for data that came from a device (host memory otherwise), which returns to a pool when the owner drops it: move it
/// to keep it. Data of a broadcast or of a call of a section is shared by the elements of a process: read it only.
/// Worker's thread; must not outlive the Runtime.
class DeviceData {
 public:
  DeviceData() noexcept = default;
  DeviceData(DeviceData&& other) noexcept
      : view_(std::exchange(other.view_, {})), block_(std::exchange(other.block_, nullptr)) {}
  DeviceData& operator=(DeviceData&& other) noexcept {
    std::swap(view_, other.view_);
    std::swap(block_, other.block_);
    return *this;
  }
  ~DeviceData() {
    if (block_ != nullptr) lane::drop_landing(block_);
  }

  [[nodiscard]] void* data() const noexcept { return view_.data; }
  /// The size that was sent. Of a landing with a shape: of all the memory that the shape is laid on.
  [[nodiscard]] std::size_t bytes() const noexcept { return view_.bytes; }
  [[nodiscard]] MemoryKind kind() const noexcept { return view_.kind; }
  /// The runtime allocated it, and this object gives it back.
  [[nodiscard]] bool owned() const noexcept { return block_ != nullptr; }
  operator Buffer() const noexcept { return view_; }       // NOLINT(google-explicit-constructor)
  operator ConstBuffer() const noexcept { return view_; }  // NOLINT(google-explicit-constructor)
  template <typename T>
  [[nodiscard]] T* as() const noexcept {
    return static_cast<T*>(view_.data);
  }

  /// For the templates of this folder: takes over what landed, or only shows it to a predicate.
  void land(const detail::Invocation& invocation, std::size_t index) noexcept {
    detail::LandingBlock* block = nullptr;
    const Buffer view = detail::landed_data(invocation, index, &block);
    *this = DeviceData(view, block);
  }
  void look(const detail::Invocation& invocation, std::size_t index) noexcept {
    *this = DeviceData(detail::landed_data(invocation, index, nullptr), nullptr);
  }

 private:
  DeviceData(Buffer view, detail::LandingBlock* block) noexcept : view_(view), block_(block) {}

  Buffer view_;
  detail::LandingBlock* block_ = nullptr;
};

/// The same for a large host buffer that was passed by `no_copy`: items the CPU reads.
template <typename T>
class HostData {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                "brant: HostData<T> needs a trivially copyable T that is no pointer");

 public:
  [[nodiscard]] std::span<const T> items() const noexcept { return {data_.as<const T>(), data_.bytes() / sizeof(T)}; }
  [[nodiscard]] bool owned() const noexcept { return data_.owned(); }

  void land(const detail::Invocation& invocation, std::size_t index) noexcept { data_.land(invocation, index); }
  void look(const detail::Invocation& invocation, std::size_t index) noexcept { data_.look(invocation, index); }

 private:
  DeviceData data_;
};

/// What `device` makes: an argument for a parameter DeviceData.
class DeviceArgument {
 public:
  explicit DeviceArgument(detail::DataSource source) noexcept : source_(std::move(source)) {}
  detail::DataSource& source() noexcept { return source_; }

 private:
  detail::DataSource source_;
};

/// What `no_copy` makes: an argument for a parameter HostData<T>.
template <typename T>
class HostArgument {
 public:
  explicit HostArgument(detail::DataSource source) noexcept : source_(std::move(source)) {}
  detail::DataSource& source() noexcept { return source_; }

 private:
  detail::DataSource source_;
};

/// Passes a buffer of any kind as data apart from the message. The buffer belongs to the runtime until `free` is told
/// (from the scheduler, once: the source may be reused; never inside the call): its `self` can name the buffer. Work
/// that produces the buffer must be finished before the call. To a chare of this process the data is copied once, on a
/// stream of the device, after the receiver's post entry ran: the source is in use until then.
[[nodiscard]] inline DeviceArgument device(ConstBuffer buffer, Completion free = {}) {
  return DeviceArgument({buffer, free, std::nullopt, std::nullopt});
}
/// What lies in the buffer in a shape: a column of a matrix, a face of a block. No copy is made of it where the memory
/// of the receiver is mapped and a device carries it; elsewhere it is packed on the way, by its device or by the CPU.
/// `shape` ends within the buffer (else invalid_argument); the runs of an indexed one belong to the runtime as the
/// buffer does. Who receives it sees its bytes in one run, or gives them a shape of their own: see Landing.
[[nodiscard]] inline DeviceArgument device(ConstBuffer buffer, const Shape& shape, Completion free = {}) {
  return DeviceArgument({buffer, free, std::nullopt, shape});
}
/// The same, with a future that names the buffer which is free again (fails with the reason otherwise):
///
///     Promise<ConstBuffer> sent;
///     Future<ConstBuffer> free = sent.future();
///     blocks[i].call<&Block::halo>(device(face, std::move(sent)), step);
///     const ConstBuffer again = co_await free;
[[nodiscard]] inline DeviceArgument device(ConstBuffer buffer, Promise<ConstBuffer> free) {
  return DeviceArgument({buffer, {}, std::move(free), std::nullopt});
}
[[nodiscard]] inline DeviceArgument device(ConstBuffer buffer, const Shape& shape, Promise<ConstBuffer> free) {
  return DeviceArgument({buffer, {}, std::move(free), shape});
}

/// Passes a large host buffer without packing it into the message; for a parameter HostData<T>. Rules as for `device`.
template <typename T>
[[nodiscard]] HostArgument<T> no_copy(std::span<const T> items, Completion free = {}) {
  return HostArgument<T>({ConstBuffer(items.data(), items.size_bytes()), free, std::nullopt, std::nullopt});
}
template <typename T>
[[nodiscard]] HostArgument<T> no_copy(std::span<const T> items, Promise<ConstBuffer> free) {
  return HostArgument<T>({ConstBuffer(items.data(), items.size_bytes()), {}, std::move(free), std::nullopt});
}

namespace detail {

template <typename P>
struct DataParameter {
  static constexpr bool is_data = false;
  static constexpr bool host_only = false;
  using Sent = P;  ///< What the caller gives.
  using Meta = P;  ///< What the post entry is given.
};
template <>
struct DataParameter<DeviceData> {
  static constexpr bool is_data = true;
  static constexpr bool host_only = false;
  using Sent = DeviceArgument;
  using Meta = DeviceMeta;
};
template <typename T>
struct DataParameter<HostData<T>> {
  static constexpr bool is_data = true;
  static constexpr bool host_only = true;
  using Sent = HostArgument<T>;
  using Meta = DeviceMeta;
};

/// Fits every parameter, to find out whether a name exists whatever it takes.
struct Anything {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

}  // namespace detail
}  // namespace brant
