// What the global space does not move, and pointers that do not convert.
#include <string>
#include <vector>

#include "brant/pgas.h"

using namespace brant;

struct Large {
  double values[3];
};

Operation use(GlobalSpace& space, GlobalPtr<const double> read_only, GlobalPtr<double> row, GlobalPtr<Large> large,
              GlobalPtr<std::string> words, GlobalPtr<short> small) {
  static_cast<void>(large);
  static_cast<void>(words);
  static_cast<void>(small);
#if CASE == 0
  const GlobalPtr<const double> converted = row;
  static_cast<void>(converted);
  std::vector<double> items(8);
  if (!space.get(read_only, items).result().ok()) return space.put_value(row, 1.0);
  if (!space.copy<double>(read_only, row, 8).result().ok()) return space.put(large, ConstBuffer{});
  return space.put(row, items);
#elif CASE == 1
  const std::vector<std::string> items(8);
  return space.put(words, items);
#elif CASE == 2
  return space.put_value(large, Large{});
#elif CASE == 3
  static_cast<void>(space.get_value(large));
#elif CASE == 4
  row = read_only;
#elif CASE == 5
  static_cast<void>(space.fetch_add(small, 1));
#elif CASE == 6
  std::vector<std::string> items(8);
  return space.get(words, items);
#elif CASE == 7
  space.fence(Rank{0});
#elif CASE == 8
  return space.put(row, {}, {.at_target = AtTarget::add(small)});
#endif
  return space.fence(row.where());
}
