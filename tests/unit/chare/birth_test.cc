// Elements that take part in reductions from their constructors on, and sections of elements still to come.
#include "unit/chare/program.h"

namespace brant {
namespace {

using test::Program;

class Eager : public Chare<Eager> {
 public:
  explicit Eager(Callback<int> to) { contribute<reduce::Sum>(1, to); }
  void again(Callback<int> to) { contribute<reduce::Sum>(1, to); }
  void in_section(Section<Eager> section, Callback<int> to) { contribute<reduce::Sum>(section, index()[0], to); }
  void ping() {}
};

Task<void> born_contributing(Chares& chares) {
  auto [to, count] = future_callback<int>(chares);
  const auto all = create_array<Eager>(chares, 23, Placement::round_robin(), to);
  const int born = co_await count;
  EXPECT_EQ(born, 23) << "none ends it before all are made";
  auto again = future_callback<int>(chares);
  all.call<&Eager::again>(again.to);
  const int twice = co_await again.future;
  EXPECT_EQ(twice, 23);
}
TEST(Birth, elements_contribute_in_their_constructors) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Program program(test::reordering(seed, 1 + static_cast<int>(seed % 6)));
    EXPECT_EQ(program.run(born_contributing), 0) << "seed " << seed << ": " << program.failure();
  }
}

Task<void> section_to_come(Chares& chares) {
  const auto all = create_sparse<Eager>(chares, Placement::round_robin());
  const std::vector<Index<1>> members{Index<1>(2), Index<1>(5), Index<1>(11)};
  const auto section = make_section(chares, all, members);
  auto [to, sum] = future_callback<int>(chares);
  section.call<&Eager::in_section>(section, to);  // waits for its members
  for (const Index<1>& index : members) all.insert(index, Callback<int>());
  const int total = co_await sum;
  EXPECT_EQ(total, 18);
  all[5].destroy();  // a member leaves
  auto rest = future_callback<int>(chares);
  all[2].call<&Eager::in_section>(section, rest.to);
  all[11].call<&Eager::in_section>(section, rest.to);
  const int left = co_await rest.future;
  EXPECT_EQ(left, 13);
}
TEST(Birth, a_section_may_name_elements_to_come) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Program program(test::reordering(seed, 1 + static_cast<int>(seed % 6)));
    EXPECT_EQ(program.run(section_to_come), 0) << "seed " << seed << ": " << program.failure();
  }
}

}  // namespace
}  // namespace brant
