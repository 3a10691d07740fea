// Message-driven objects: a ring of chares passes a token around, and the last one answers.
//   brant run -n 4 -- ring [MEMBERS] [ROUNDS]
#include <cstdio>
#include <cstdlib>

#include "brant/chare.h"
using namespace brant;

class Member : public Chare<Member> {
 public:
  explicit Member(int members) : members_(members) {}

  void hello(std::string_view from) {
    std::printf("member %d on rank %d: hello from %.*s\n", index()[0], chares().rank().value,
                static_cast<int>(from.size()), from.data());
  }

  /// Passes the token on until it has made its way; gives the number of hops.
  Task<int> pass(int hops, int left) {
    if (left == 0) co_return hops;
    co_return co_await this_array()[(index()[0] + 1) % members_].ask<&Member::pass>(hops + 1, left - 1);
  }

 private:
  int members_;
};

Task<void> ring(Chares& chares, int members, int rounds) {
  Array<Member> all = create_array<Member>(chares, members, Placement::round_robin(), members);
  all.call<&Member::hello>("the main task");
  const int hops = co_await all[0].ask<&Member::pass>(0, members * rounds);
  std::printf("the token made %d hops over %d members on %d ranks\n", hops, members, chares.size());
}

int main(int argc, char** argv) {
  const int members = argc > 1 ? std::atoi(argv[1]) : 8;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  Runtime runtime;
  Chares chares(runtime);
  return chares.run(ring(chares, members, rounds));
}
