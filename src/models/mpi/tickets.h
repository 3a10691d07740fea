#pragma once

#include <cstdint>
#include <vector>

namespace brant::mpi {

class Request;

/// Numbers by which another process names a request of this rank. A number is used once: one that is stale or was never
/// given out finds nothing.
class Tickets {
 public:
  /// Never 0. Throws bad_alloc.
  std::uint64_t give(Request& request);
  /// Null: nobody has it.
  [[nodiscard]] Request* find(std::uint64_t ticket) const noexcept;
  void take_back(std::uint64_t ticket) noexcept;

 private:
  struct Place {
    Request* request = nullptr;
    std::uint32_t uses = 0;
  };
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;  ///< With room for all places, so that taking back needs no memory.
};

}  // namespace brant::mpi
