// The program of the README: two processes swap a megabyte, in GPU memory where there are GPUs.
#include <cstdio>

#include "brant/brant.h"
using namespace brant;

Task<void> swap_with_partner(Channel& channel, Memory& mine, Memory& theirs) {
  Operation incoming = channel.recv(theirs);  // both are under way
  Operation outgoing = channel.send(mine);
  (co_await when_all(incoming, outgoing)).or_throw("the swap failed");  // ends the program with its text
}

int main() {
  Runtime runtime;  // started by brant run, mpirun, srun --mpi=pmix or torchrun
  const int rank = runtime.rank().value, partner = rank ^ 1;
  if (runtime.size() % 2 != 0) {
    std::fprintf(stderr, "swap takes an even number of processes, not %d: brant run -n 2 -- swap\n", runtime.size());
    return 2;
  }
  const MemoryKind kind = runtime.device_kind();  // the GPU of this process, or host memory
  Memory mine = runtime.allocate(kind, 1 << 20), theirs = runtime.allocate(kind, 1 << 20);
  Channel channel = Channel::open(runtime, Rank{partner}, ChannelId{7});
  runtime.run(swap_with_partner(channel, mine, theirs));
  std::printf("rank %d has the %zu bytes of rank %d\n", rank, theirs.bytes(), partner);
}
