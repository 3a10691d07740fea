#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include "bench/nccl/nccl_library.h"
#include "port/memory.h"

namespace brant::bench::nccl {

/// Makes the id by which two processes meet; one of the two calls it. Throws Error like `library`, and io_error with
/// NCCL's own words.
UniqueId make_unique_id();

/// Two processes connected by NCCL. One thread. A call that failed, or a wait that did not end, names itself, the side,
/// the size and what NCCL says; from then on the pair is given up, and its end does not wait for the other side.
class Pair {
 public:
  struct Ends {
    int side = 0;                                                   ///< 0 and 1: each process one of them.
    UniqueId id;                                                    ///< The same at both.
    std::chrono::milliseconds patience = std::chrono::seconds(60);  ///< For each wait.
  };

  /// Both processes at the same time: waits for the other one, at most `patience` (then timed_out). `streams` are of
  /// the device of this process, whose context NCCL uses; they must outlive this.
  Pair(port::Streams& streams, port::Stream* stream, const Ends& ends);
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  /// Graphs that were captured with the pair must be gone.
  ~Pair();

  /// Queues a transfer on the stream; the other side must queue its counterpart. GPU memory. The buffer is free when
  /// the stream has come past. Can be captured. NCCL has no empty messages: of 0 bytes, 1 goes.
  void send(const void* data, std::size_t bytes);
  void recv(void* data, std::size_t bytes);
  /// What `transfers` queues goes together, as one kernel.
  void together(const std::function<void()>& transfers);
  /// Spins until the stream is drained.
  void wait();

 private:
  void open(const Ends& ends);
  void check(Outcome outcome, const char* call, std::size_t bytes);

  const Library& nccl_;
  port::Streams& streams_;
  port::Stream* const stream_;
  const int side_;
  const std::chrono::milliseconds patience_;
  Communicator* comm_ = nullptr;
  bool given_up_ = false;
};

}  // namespace brant::bench::nccl
