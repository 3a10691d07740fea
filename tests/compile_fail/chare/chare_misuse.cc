// Each case is one mistake in a program with chares; the compiler must refuse it with a sentence of ours. Without a
// case the file compiles: the mistake is the only thing wrong.
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "brant/chare.h"

struct NoWay {
  std::thread worker;
};

struct NeedsNumber {
  explicit NeedsNumber(int) {}
  void serialize(auto& archive) { archive(value); }
  std::string value;
};

class Block : public brant::Chare<Block, brant::Index<2>> {
 public:
  void fine(int, std::span<const double>) {}
  void takes_thread(NoWay) {}
  void takes_threads(const std::map<int, std::vector<NoWay>>&) {}
  NoWay gives_thread() { return {}; }
  void takes_needy(const NeedsNumber&) {}
  void takes_pointer(const double*) {}
  void takes_reference(int&) {}
  void takes_mutable_span(std::span<double>) {}
  void takes_strings(std::span<const std::string>) {}
  brant::Task<void> dangling(const std::vector<int>&) { co_return; }
  brant::Task<void> coroutine(int) { co_return; }
  int not_a_method = 0;

  void halo(brant::DeviceData, int) {}
  brant::Buffer post(brant::Post<&Block::halo>, const brant::DeviceMeta&, int) { return {}; }
  void bad_post(brant::DeviceData, int) {}
  brant::Buffer post(brant::Post<&Block::bad_post>, const brant::DeviceMeta&, std::string) { return {}; }
  void two(brant::DeviceData, brant::HostData<int>) {}
  brant::Buffer post(brant::Post<&Block::two>, const brant::DeviceMeta&, const brant::DeviceMeta&) { return {}; }
  void nested(const std::vector<brant::DeviceData>&) {}
};
class Lonely : public brant::Chare<Lonely, brant::Single> {
 public:
  explicit Lonely(NoWay&&) {}
  explicit Lonely(const std::vector<NoWay>&) {}
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
  blocks[{1, 2}].call<&Block::halo>(brant::device(span), 1);
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
#elif CASE == 13
  blocks[{1, 2}].call<&Block::halo>(span, 1);
#elif CASE == 14
  blocks[{1, 2}].call<&Block::bad_post>(brant::device(span), 1);
#elif CASE == 15
  blocks[{1, 2}].call<&Block::two>(brant::device(span), brant::no_copy(std::span<const int>()));
#elif CASE == 16
  blocks[{1, 2}].call<&Block::nested>(std::vector<brant::DeviceData>());
#elif CASE == 12
  static_cast<void>(brant::create_array<Plain>(chares, 4, brant::Placement::block()));
#elif CASE == 17
  static_cast<void>(blocks[{1, 2}].local()->when<&Block::coroutine>(1));
#elif CASE == 18
  static_cast<void>(blocks[{1, 2}].local()->when<&Block::fine>(1, 2, 3));
#elif CASE == 19
  blocks[{1, 2}].local()->contribute<brant::reduce::Sum>(Pod{}, brant::Callback<Pod>());
#elif CASE == 20
  blocks[{1, 2}].local()->all_reduce<brant::reduce::Each<brant::reduce::Sum>>(std::pair(1, 2));
#elif CASE == 21
  blocks[{1, 2}].call<&Block::takes_threads>(std::map<int, std::vector<NoWay>>());
#elif CASE == 22
  static_cast<void>(blocks[{1, 2}].ask<&Block::gives_thread>());
#elif CASE == 23
  static_cast<void>(brant::create_chare<Lonely>(chares, brant::Rank{0}, std::vector<NoWay>()));
#elif CASE == 24
  blocks[{1, 2}].call<&Block::takes_needy>(NeedsNumber(1));
#elif CASE == 25
  static_cast<void>(blocks[{1, 2}].local()->when<&Block::halo>(1));
#endif
}
