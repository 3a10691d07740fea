#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "brant/base/ids.h"
#include "models/mpi/rank_placement.h"

namespace brant::mpi {

class Request;

/// The objects that the ranks of this process have handles of, and in which call each was made.
class Census {
 public:
  enum class Kind : std::uint8_t { request, communicator, datatype, window };

  /// By the rank that runs, in its present call. Of a datatype the program may get several handles.
  void add(Kind kind, const void* object) noexcept;
  /// One handle goes; of any object.
  void remove(const void* object) noexcept;

  /// The call that has made it; null: it is none of these.
  [[nodiscard]] const char* maker_of(const void* object) const noexcept;
  [[nodiscard]] std::vector<const Request*> requests_of(RankId rank) const;
  /// What the program of a rank has not freed, for people, with kinds, numbers and calls; empty if there is nothing.
  [[nodiscard]] std::string left_by(RankId rank) const;

 private:
  struct Entry {
    Kind kind;
    RankId rank;
    const char* call;
    std::size_t handles;
  };
  std::unordered_map<const void*, Entry> entries_;
};

}  // namespace brant::mpi
