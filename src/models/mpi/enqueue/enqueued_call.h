#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/mpi/call_error.h"
#include "models/mpi/composite_request.h"
#include "models/mpi/enqueue/status_place.h"

namespace brant::mpi {

class StreamDoor;

/// A call that is carried out when a stream comes to it: requests that begin then, or whose ends it waits for. The
/// program has a handle of it where it waits for it later; else it is freed from the start, and the stream waits.
class EnqueuedCall final : public CompositeRequest {
 public:
  EnqueuedCall(RankState& rank_in, Communicator& communicator_in, const char* function) noexcept
      : CompositeRequest(rank_in, &communicator_in), function_(function) {}
  /// What is still under way goes when it has ended.
  ~EnqueuedCall() override;

  /// Before it is queued. What has begun already is only waited for.
  void add(std::unique_ptr<Request> part, const StatusPlace& status = {});
  /// It is being queued.
  void start() noexcept override { begin_parts(parts_.size()); }
  /// The stream has come. It may go within this call.
  void arrive() noexcept;
  /// It is not carried out. It goes within this call, or is there for who waits for it.
  void drop(const CallError& why) noexcept;

  /// That the program has called.
  [[nodiscard]] const char* function() const noexcept { return function_; }
  [[nodiscard]] std::string text() const override;
  [[nodiscard]] std::string fault() const override { return fault_; }
  [[nodiscard]] bool uses(const std::byte* base, std::size_t bytes) const noexcept override;

  // Of the door that it is queued at.
  StreamDoor* door = nullptr;
  std::uint64_t epoch = 0;  ///< Of the bell that the stream waits for; 0: it does not wait.
  bool arrived = false;

 protected:
  int conclude() noexcept override;

 private:
  struct Part {
    std::unique_ptr<Request> request;
    StatusPlace status;
  };
  [[nodiscard]] std::optional<CallError> finish_parts() noexcept;
  int conclude_with(const std::optional<CallError>& error) noexcept;

  const char* const function_;
  std::vector<Part> parts_;
  std::string fault_;
};

/// What an enqueued call of this communicator ended with is told by the next call of the program, or ends the job at
/// once where the communicator's handler does so.
void note_late_error(Communicator& communicator, const char* function, const CallError& error) noexcept;

}  // namespace brant::mpi
