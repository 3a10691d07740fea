// The program of the README: two processes swap a megabyte, in GPU memory where there are GPUs.
#include <cstdio>

#include "brant/brant.h"
using namespace brant;

Task<void> swap_with_partner(Runtime& runtime, Channel& channel, Memory& mine, Memory& theirs) {
  Operation incoming = channel.recv(theirs);  // both are under way
  Operation outgoing = channel.send(mine);
  const OpResult got = co_await incoming;
  co_await outgoing;
  std::printf("rank %d has %llu bytes\n", runtime.rank().value, static_cast<unsigned long long>(got.bytes));
}

int main() {
  Runtime runtime;                                // brant run, mpirun, srun --mpi=pmix, or alone
  const MemoryKind kind = runtime.device_kind();  // the GPU of this process, or host memory
  Memory mine = runtime.allocate(kind, 1 << 20), theirs = runtime.allocate(kind, 1 << 20);
  Channel channel = Channel::open(runtime, Rank{runtime.rank().value ^ 1}, ChannelId{7});
  runtime.run(swap_with_partner(runtime, channel, mine, theirs));
}
