// Channels: a token goes round a ring of ranks, and every rank adds its number to it.
//   brant run -n 4 -- channel_ring [ROUNDS]
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "brant/brant.h"
using namespace brant;

/// The channel from `from` to the rank after it has the number of `from`; both ends open the same one.
Channel open_link(Runtime& runtime, int from, int peer) {
  return Channel::open(runtime, Rank{peer}, ChannelId{static_cast<std::uint32_t>(from)});
}

Task<std::int64_t> pass_token(Channel& from_left, Channel& to_right, int rank, int rounds) {
  std::int64_t token = 0;
  for (int round = 0; round < rounds; ++round) {
    if (rank != 0) (co_await from_left.recv(std::span(&token, 1))).or_throw("the rank to the left sent no token");
    token += rank;
    (co_await to_right.send(std::span(&token, 1))).or_throw("the rank to the right took no token");
    if (rank == 0) (co_await from_left.recv(std::span(&token, 1))).or_throw("the token did not come back");
  }
  co_return token;
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::stoi(argv[1]) : 3;
  Runtime runtime;
  const int rank = runtime.rank().value, ranks = runtime.size();
  const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  Channel to_right = open_link(runtime, rank, right);
  Channel from_left = open_link(runtime, left, left);
  const std::int64_t token = runtime.run(pass_token(from_left, to_right, rank, rounds));
  if (rank == 0)
    std::printf("after %d rounds over %d ranks the token is %lld\n", rounds, ranks, static_cast<long long>(token));
}
