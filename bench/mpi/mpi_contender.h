#pragma once

#include <cstdint>
#include <vector>

#include "bench/mpi/mpi_memory.h"
#include "bench/mpi/mpi_pairs.h"
#include "bench/runner/contender.h"

namespace brant::bench::mpi {

/// Requests of a window, in the form of the library.
class Requests {
 public:
  Requests(const Library& mpi, std::size_t most) : mpi_(mpi), requests_(most * mpi.request_bytes), statuses_(most) {}

  void send(const std::byte* data, std::size_t bytes, int to);
  void receive(std::byte* data, std::size_t bytes, int from);
  /// For all since the last time.
  void wait();

 private:
  [[nodiscard]] void* next() noexcept { return requests_.data() + count_++ * mpi_.request_bytes; }

  const Library& mpi_;
  std::vector<std::byte> requests_;
  std::vector<StatusRoom> statuses_;
  std::size_t count_ = 0;
};

/// Messages of MPI, by the functions that OSU's programs call: MPI_Send and MPI_Recv for round trips, MPI_Isend,
/// MPI_Irecv and MPI_Waitall for windows, all of one from the same bytes into the same bytes.
class MpiContender final : public Contender {
 public:
  /// `peer`: as rows name a rival, empty for brant's own. Collective. Throws Error.
  MpiContender(Pairs& pairs, const Options& options, std::string peer);

  [[nodiscard]] std::string peer() const override { return peer_; }
  [[nodiscard]] std::string peer_version() const override { return peer_.empty() ? "" : mpi_.version; }
  [[nodiscard]] std::string path() const override { return "mpi"; }

  void check(std::size_t bytes, std::size_t times) override;
  void ping_pong(std::size_t bytes, std::span<double> round_trip_us) override;
  void windows(std::size_t bytes, std::size_t window, std::span<double> window_us) override;

 private:
  /// Where the messages of a window that is looked at lie.
  struct Places {
    std::size_t count = 1;
    std::size_t bytes = 0;
    std::size_t stride = 0;
    std::uint64_t first = 0;  ///< Number of the first message.
  };

  void send(std::size_t bytes);
  void receive(std::size_t bytes);
  void send_window(std::size_t bytes, std::size_t window);
  void receive_window(std::size_t bytes, std::size_t window);
  void exchange_windows(std::size_t bytes, std::size_t window);

  [[nodiscard]] std::uint64_t message(bool of_leader, std::uint64_t number) const noexcept;
  void fill(const Places& places);
  void transfer(const Places& places, bool sends, bool receives);
  void verify(const Places& places);
  /// Between the CPU and memory of any kind: MPI copies what the CPU does not reach.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);

  Pairs& pairs_;
  const Library& mpi_;
  const Options& options_;
  const std::string peer_;
  const std::size_t room_;
  const MpiMemory source_;
  const MpiMemory landing_;
  Requests sends_;
  Requests receives_;
};

}  // namespace brant::bench::mpi
