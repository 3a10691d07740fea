#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/base/ids.h"
#include "brant/base/shape.h"
#include "brant/core/future.h"
#include "brant/core/op.h"
#include "brant/ops/lane/data.h"

/// Arguments that travel as data apart from the message of a call, to a chare or to a remote function: GPU memory, and
/// large host buffers. They go the way a channel's messages go, from any kind of memory to any kind.
namespace brant {

class DeviceArgument;
template <typename T>
class HostArgument;

namespace detail {

/// Data arguments that one call may have.
inline constexpr std::size_t kDataMax = 8;

using lane::DataMeta;

/// One data argument as the caller gave it.
struct DataSource {
  ConstBuffer buffer;
  Completion free;
  std::optional<Promise<ConstBuffer>> promise;
  std::optional<Shape> shape;  ///< How it lies in the buffer, if not in one run.
};

/// What stands in front of the other arguments in the message: how many there are, how large, and where they come from.
/// What `DataHeader::place` means.
enum class DataState : std::uint32_t {
  numbers,  ///< The number of the first in the hidden channel from the sender: as it travels.
  origins,  ///< DataOrigin*: the sources lie in this process.
  staging,  ///< The model's record: they are coming into memory of the runtime, since their landing is not known yet.
  landing,  ///< The model's record: they are coming where they belong.
  landed,   ///< The model's record: all is here.
  none,     ///< Handed over.
};
struct DataHeader {
  std::uint64_t place = 0;
  DataState state = DataState::origins;
  std::uint32_t count = 0;
};
template <std::size_t N>
struct DataBlock {
  DataHeader header;
  DataMeta meta[N];
};

}  // namespace detail

/// What a post entry is told of one data argument.
struct DeviceMeta {
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::host;  ///< Of the source.
  Rank source;                         ///< Who sent it.
  int argument = 0;                    ///< Its place among the data arguments of the call.
};

/// Parameter type of an entry method or a remote function: bytes that landed before it runs. Take it by value or by
/// const reference; in an entry that a `when` awaits by const reference, since the waiter keeps it. There the landing
/// of a post entry is in use until a `when` has taken the call.
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

  /// For the templates of the models: takes over what landed, or only shows it to a predicate. The model's function
  /// `landed_data` is found by its invocation.
  template <typename Invocation>
  void land(const Invocation& invocation, std::size_t index) noexcept {
    lane::LandingBlock* block = nullptr;
    const Buffer view = landed_data(invocation, index, &block);
    *this = DeviceData(view, block);
  }
  template <typename Invocation>
  void look(const Invocation& invocation, std::size_t index) noexcept {
    *this = DeviceData(landed_data(invocation, index, nullptr), nullptr);
  }

 private:
  DeviceData(Buffer view, lane::LandingBlock* block) noexcept : view_(view), block_(block) {}

  Buffer view_;
  lane::LandingBlock* block_ = nullptr;
};

/// The same for a large host buffer that was passed by `no_copy`: items the CPU reads.
template <typename T>
class HostData {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                "brant: HostData<T> needs a trivially copyable T that is no pointer");

 public:
  [[nodiscard]] std::span<const T> items() const noexcept { return {data_.as<const T>(), data_.bytes() / sizeof(T)}; }
  [[nodiscard]] bool owned() const noexcept { return data_.owned(); }

  template <typename Invocation>
  void land(const Invocation& invocation, std::size_t index) noexcept {
    data_.land(invocation, index);
  }
  template <typename Invocation>
  void look(const Invocation& invocation, std::size_t index) noexcept {
    data_.look(invocation, index);
  }

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

}  // namespace detail
}  // namespace brant
