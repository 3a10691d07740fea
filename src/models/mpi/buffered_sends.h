#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "brant/mpi/mpi.h"

namespace brant::mpi {

class Request;

/// The buffer that a program attached for MPI_Bsend, to the process or to a communicator. Messages lie in memory of
/// brant; what the program attached bounds how much of it they take, as the standard counts.
class BufferedSends {
 public:
  void attach(void* buffer, std::size_t size) noexcept;
  /// Nothing may be under way.
  void detach() noexcept;

  [[nodiscard]] bool attached() const noexcept { return attached_; }
  [[nodiscard]] void* buffer() const noexcept { return buffer_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// By messages that have not left.
  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  /// All messages have left.
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] bool takes(std::size_t bytes) const noexcept;

  /// The number of a message from now on.
  std::uint64_t add(std::size_t bytes) noexcept;
  /// It has left. Ends the requests that waited for it and have nothing else to wait for.
  void remove(std::size_t bytes, std::uint64_t number) noexcept;
  /// Ends the request when all messages up to now have left, which may be at once.
  void end_when_flushed(Request& request);

 private:
  /// Who waits, and for how many of the messages before `below`.
  struct Flush {
    Request* request;
    std::uint64_t below;
    std::size_t left;
  };

  void* buffer_ = nullptr;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
  std::size_t count_ = 0;
  std::uint64_t next_ = 0;
  bool attached_ = false;
  std::vector<Flush> flushes_;
};

}  // namespace brant::mpi
