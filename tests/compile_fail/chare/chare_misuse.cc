// Each case is one mistake in a program with chares; the compiler must refuse it with a sentence of ours. Without a
// case the file compiles: the mistake is the only thing wrong.
#include <thread>
#include <vector>

#include "brant/chare.h"

struct NoWay {
  std::thread worker;
};

class Block : public brant::Chare<Block, brant::Index<2>> {
 public:
  void fine(int, std::span<const double>) {}
  void takes_thread(NoWay) {}
  void takes_pointer(const double*) {}
  void takes_reference(int&) {}
  void takes_mutable_span(std::span<double>) {}
  void takes_strings(std::span<const std::string>) {}
  brant::Task<void> dangling(const std::vector<int>&) { co_return; }
  brant::Task<void> coroutine(int) { co_return; }
  int not_a_method = 0;
};
class Stranger : public brant::Chare<Stranger> {
 public:
  void method() {}
};
struct Pod {
  int value = 0;
};
struct Plain {
  using IndexType = brant::Index<1>;
  void method() {}
};

void use(brant::Chares& chares, brant::Array<Block> blocks, NoWay& no_way, int& number, std::span<double> span) {
  static_cast<void>(chares);
  static_cast<void>(no_way);
  static_cast<void>(number);
  static_cast<void>(span);
#if CASE == 0
  blocks[{1, 2}].call<&Block::fine>(1, span);
  static_cast<void>(blocks[{1, 2}].local()->when<&Block::fine>(1));
  blocks[{1, 2}].local()->contribute<brant::reduce::Sum>(1, brant::Callback<int>());
#elif CASE == 1
  blocks[{1, 2}].call<&Block::takes_thread>(std::move(no_way));
#elif CASE == 2
  blocks[{1, 2}].call<&Block::takes_pointer>(span.data());
#elif CASE == 3
  blocks[{1, 2}].call<&Block::takes_reference>(number);
#elif CASE == 4
  blocks[{1, 2}].call<&Block::takes_mutable_span>(span);
#elif CASE == 5
  blocks[{1, 2}].call<&Block::takes_strings>(std::span<const std::string>());
#elif CASE == 6
  blocks[{1, 2}].call<&Block::dangling>(std::vector<int>());
#elif CASE == 7
  blocks[{1, 2}].call<&Stranger::method>();
#elif CASE == 8
  blocks[{1, 2}].call<&Block::fine>(1);
#elif CASE == 9
  blocks[{1, 2}].call<&Block::fine>("one", span);
#elif CASE == 10
  static_cast<void>(brant::create_array<Block>(chares, {2, 2}, brant::Placement::block(), 1, 2));
#elif CASE == 11
  static_cast<void>(brant::create_group<Block>(chares));
#elif CASE == 12
  static_cast<void>(brant::create_array<Plain>(chares, 4, brant::Placement::block()));
#elif CASE == 13
  static_cast<void>(blocks[{1, 2}].local()->when<&Block::coroutine>(1));
#elif CASE == 14
  static_cast<void>(blocks[{1, 2}].local()->when<&Block::fine>(1, 2, 3));
#elif CASE == 15
  blocks[{1, 2}].local()->contribute<brant::reduce::Sum>(Pod{}, brant::Callback<Pod>());
#elif CASE == 16
  blocks[{1, 2}].local()->all_reduce<brant::reduce::Each<brant::reduce::Sum>>(std::pair(1, 2));
#endif
}
