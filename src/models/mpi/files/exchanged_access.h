#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/mpi/call_error.h"
#include "models/mpi/files/exchange_plan.h"
#include "models/mpi/files/file.h"
#include "models/mpi/files/memory_pieces.h"

namespace brant::mpi {

/// A collective access in which members exchange data: each reads or writes a stretch of the file in each round, and
/// hands on what others have there. All members carry it out together; where one fails, all do, after the last round.
class ExchangedAccess {
 public:
  /// `position`: of this rank's first byte in the stream of its view. `parts`: what all have said.
  ExchangedAccess(File& file, std::uint64_t position, const MemoryPieces& memory, std::span<const AccessPart> parts);

  /// How many bytes this rank has written, and read.
  std::size_t write();
  std::size_t read();

 private:
  /// Bytes of a stretch that lie together in it.
  struct Run {
    std::uint32_t offset;
    std::uint32_t bytes;
  };
  /// This rank's bytes in a stretch: positions in the stream of its view.
  struct Share {
    std::uint64_t begin;
    std::uint64_t end;
  };
  /// What goes to each member, or comes from each, one behind the other.
  struct Blocks {
    std::vector<std::byte> bytes;
    std::vector<std::uint64_t> sizes;
  };

  [[nodiscard]] Share share_of(std::uint64_t round, std::size_t member) const noexcept;
  /// The number of runs, and the runs: how data of this rank lies in a stretch.
  void append_runs(Blocks& blocks, const Share& share, std::int64_t stretch) const;
  /// Blocks have whole words, so that runs in them are aligned: data behind them is filled up.
  [[nodiscard]] static std::span<const Run> runs_in(std::span<const std::byte> block) noexcept;
  void exchange(const Blocks& given, Blocks& taken);
  void exchange_sized(const Blocks& given, Blocks& taken);

  [[nodiscard]] Blocks blocks_to_write(std::uint64_t round);
  void write_stretch(std::int64_t stretch, const Blocks& taken);
  [[nodiscard]] Blocks answers_from_stretch(std::int64_t stretch, const Blocks& asked);
  void store_answers(std::uint64_t round, const Blocks& answers);
  /// Keeps the first error: the other members need this one until the last round.
  template <typename Body>
  void attempt(const Body& body);

  File& file_;
  const std::uint64_t position_;
  const MemoryPieces& memory_;
  const Stretches stretches_;
  const std::int64_t file_bytes_;
  std::vector<std::byte> stretch_;
  std::vector<std::byte> covered_;  ///< 1 for each byte of the stretch that somebody writes.
  std::optional<CallError> error_;
};

}  // namespace brant::mpi
