#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "bench/nccl/nccl_library.h"
#include "port/memory.h"

namespace brant::bench::nccl {

/// Makes the id by which processes meet; one of them calls it. Throws Error like `library`, and io_error with
/// NCCL's own words.
UniqueId make_unique_id();

/// One of several processes that NCCL connects. One thread. A call that failed, or a wait that did not end, names
/// itself, the rank, the size and what NCCL says; from then on the member is given up, and its end does not wait for
/// the others.
///
/// What is queued on the stream, the others must queue too. Memory is of GPUs; it is free when the stream has come
/// past. All calls can be captured.
class Member {
 public:
  struct Place {
    int rank = 0;
    int size = 2;
    UniqueId id;                                                    ///< The same at all.
    std::chrono::milliseconds patience = std::chrono::seconds(60);  ///< For each wait.
  };

  /// All processes at the same time: waits for the others, at most `patience` (then timed_out). `streams` are of the
  /// device of this process, whose context NCCL uses; they must outlive this.
  Member(port::Streams& streams, port::Stream* stream, const Place& place);
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  /// Graphs that were captured with the member must be gone.
  ~Member();

  /// NCCL has no empty messages: of 0 bytes, 1 goes.
  void send(const void* data, std::size_t bytes, int peer);
  void recv(void* data, std::size_t bytes, int peer);
  /// What `transfers` queues goes together, as one kernel.
  void together(const std::function<void()>& transfers);

  /// Floats; those of blocks count the floats of one block. Sums are of all members.
  void allreduce(const float* in, float* out, std::size_t floats);
  void broadcast(float* data, std::size_t floats);  ///< Of rank 0, in place.
  void allgather(const float* in, float* out, std::size_t block);
  void reduce_scatter(const float* in, float* out, std::size_t block);
  /// As sends and receives that go together where NCCL has no call for it.
  void alltoall(const float* in, float* out, std::size_t block);

  /// Spins until the stream is drained.
  void wait();

 private:
  void open(const Place& place);
  [[nodiscard]] std::string who() const;
  void check(Outcome outcome, const char* call, std::size_t bytes);

  const Library& nccl_;
  port::Streams& streams_;
  port::Stream* const stream_;
  const int rank_;
  const int size_;
  const std::chrono::milliseconds patience_;
  Communicator* comm_ = nullptr;
  bool given_up_ = false;
};

}  // namespace brant::bench::nccl
