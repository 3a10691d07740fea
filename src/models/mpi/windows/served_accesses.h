#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "brant/core/op.h"
#include "models/mpi/types/op.h"
#include "models/mpi/windows/window.h"
#include "models/mpi/windows/window_words.h"
#include "ops/am/message.h"

namespace brant::mpi {

class Accumulation;
class WindowMessenger;

/// What an `access` says, checked.
struct ServedAccess {
  AccessHead head;
  std::span<const WindowRun> runs;
  const std::byte* data = nullptr;
  const Op* op = nullptr;  ///< Of accumulates, as `element`.
  const Datatype* element = nullptr;

  /// False: the message is damaged.
  [[nodiscard]] bool read(const am::Message& message) noexcept;
  [[nodiscard]] bool gives_back() const noexcept {
    return head.kind == AccessKind::get || head.kind >= AccessKind::get_accumulate;
  }
  /// How many bytes of memory a run is: more than it has packed where its element has a gap.
  [[nodiscard]] std::uint64_t memory_bytes(const WindowRun& run) const noexcept;
};

/// Carries out at the target what origins do not do by themselves, one after the other in the order in which it comes.
/// Memory of the host is changed at once. Memory of a device is read, changed here and written back, while what comes
/// behind waits.
class ServedAccesses {
 public:
  explicit ServedAccesses(WindowMessenger& messenger) noexcept : messenger_(messenger) {}
  ~ServedAccesses();
  ServedAccesses(const ServedAccesses&) = delete;
  ServedAccesses& operator=(const ServedAccesses&) = delete;

  /// An `access` or a `flush`. Takes it over.
  void take(am::Message& message) noexcept;

 private:
  /// One that works on memory of a device.
  struct DeviceAccess {
    am::Message* message = nullptr;
    am::Message* reply = nullptr;
    ServedAccess access;
    std::vector<OwnPlace> places;
    std::unique_ptr<std::byte[]> image;  ///< The memory of the runs, one behind the other.
    std::vector<std::uint64_t> starts;   ///< Of each run in it.
    std::unique_ptr<brant::Op[]> ops;
    std::size_t under_way = 0;
    bool writes = false;  ///< The second half.
    int error = MPI_SUCCESS;
  };

  void serve_waiting() noexcept;
  /// False: it goes on, and what waits is served when it has ended.
  bool serve(am::Message& message) noexcept;
  void serve_in_host(const ServedAccess& access, std::span<const OwnPlace> places, std::byte* back) const noexcept;
  void combine(const ServedAccess& access, const WindowRun& run, std::byte* place, const std::byte*& in,
               std::byte*& back) const noexcept;
  void start_device(am::Message& message, const ServedAccess& access, std::vector<OwnPlace> places);
  void move_device(bool writes) noexcept;
  void go_on_device() noexcept;
  void end_device() noexcept;
  void refuse(const am::Message& message, int error) noexcept;
  void release(am::Message& message) noexcept;

  WindowMessenger& messenger_;
  am::MessageList waiting_;
  std::unique_ptr<DeviceAccess> device_;
  bool serving_ = false;
};

}  // namespace brant::mpi
