#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "brant/chare/callback.h"

namespace brant::detail {

/// The functions of one process that callbacks run, by number. A number is used again; its turn says by whom.
class CallbackFunctions {
 public:
  static constexpr std::size_t kFunctionsMax = 1'000'000;
  using Function = std::function<void(ReadArchive&)>;

  /// The callback that runs it on `rank`, which is this one. Throws limit_reached.
  CallbackTarget keep(Function function, std::int32_t rank);
  /// Throws not_found if it was destroyed.
  [[nodiscard]] const Function& at(std::uint32_t number, std::uint64_t turn) { return place_of(number, turn).run; }
  /// Throws not_found if it was destroyed already.
  void destroy(std::uint32_t number, std::uint64_t turn);

 private:
  struct Place {
    Function run;
    std::uint64_t turn = 0;  ///< How many this one came after: late calls of those do not reach it.
  };

  Place& place_of(std::uint32_t number, std::uint64_t turn);

  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;
};

}  // namespace brant::detail
