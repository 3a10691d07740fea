// One-sided transfers: every rank writes a line on the blackboard of every other, whose program takes no part, and
// reads one back.
//   brant run -n 4 -- blackboard
#include <cstdio>
#include <cstring>
#include <vector>

#include "brant/brant.h"
using namespace brant;

constexpr std::size_t kLine = 64;

/// Sends one's own ticket to all others and gives everybody's. Also the barrier of this program: nobody has all tickets
/// before all have sent theirs.
Task<std::vector<SegmentTicket>> exchange(Runtime& runtime, std::vector<Channel>& channels, const SegmentTicket& own) {
  std::vector<SegmentTicket> tickets(channels.size(), own);
  for (std::size_t rank = 0; rank < channels.size(); ++rank) {
    if (static_cast<int>(rank) == runtime.rank().value) continue;
    Operation incoming = channels[rank].recv(Buffer(&tickets[rank], sizeof(SegmentTicket)));
    Operation outgoing = channels[rank].send(ConstBuffer(&own, sizeof(own)));
    if (!(co_await incoming).ok() || !(co_await outgoing).ok()) throw Error(Status::peer_lost, "a rank is gone");
  }
  co_return tickets;
}

Task<int> program(Runtime& runtime) {
  const int self = runtime.rank().value, ranks = runtime.size();
  std::vector<Channel> channels(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == self) continue;
    const auto id = static_cast<std::uint32_t>(rank < self ? rank * ranks + self : self * ranks + rank);
    channels[static_cast<std::size_t>(rank)] = Channel::open(runtime, Rank{rank}, ChannelId{id});
  }
  // At least 16 KB: smaller host memory is not shared with other processes, and goes over the network.
  const Memory board = runtime.allocate(MemoryKind::host, 1 << 16);
  const Segment segment = expose(runtime, board);
  const std::vector<SegmentTicket> tickets = co_await exchange(runtime, channels, segment.ticket());
  for (int rank = 0; rank < ranks; ++rank) {
    RemoteSegment there(runtime, Rank{rank}, tickets[static_cast<std::size_t>(rank)]);
    char line[kLine] = {}, back[kLine] = {};
    std::snprintf(line, kLine, "rank %d was at rank %d", self, rank);
    const auto place = static_cast<std::uint64_t>(self) * kLine;
    const OpResult put = co_await there.put(place, ConstBuffer(line, kLine));  // there when this resumes
    const OpResult got = co_await there.get(place, Buffer(back, kLine));
    if (!put.ok() || !got.ok() || std::strcmp(line, back) != 0) co_return 1;
  }
  co_await exchange(runtime, channels, segment.ticket());  // all have written
  for (int rank = 0; rank < ranks; ++rank) {
    std::printf("%s\n", board.as<char>() + static_cast<std::size_t>(rank) * kLine);
  }
  co_return 0;
}

int main() {
  Runtime runtime;
  return runtime.run(program(runtime));
}
