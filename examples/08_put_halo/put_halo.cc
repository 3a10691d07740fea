// A halo exchange by put: every rank has a piece of a rod and writes its outer cells straight into its neighbours'
// ghost cells. Every cell becomes the mean of its two neighbours; the ends of the rod are held at 0 and 100 degrees.
//   brant run -n 4 -- put_halo [CELLS] [STEPS]
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "brant/brant.h"
using namespace brant;

// At least 16 KB: smaller host memory is not shared with other processes, and goes over the network.
constexpr std::size_t kSharedFrom = 16384;

/// The neighbour on one side: the channel to it, and its ghosts, into which this rank puts.
struct Neighbour {
  Channel channel;
  RemoteSegment ghosts;
};

class Rod {
 public:
  Rod(Runtime& runtime, int cells)
      : runtime_(runtime),
        row_(static_cast<std::size_t>(cells) + 2, 0.0),
        ghosts_(runtime.allocate(MemoryKind::host, kSharedFrom)),
        segment_(expose(runtime, ghosts_)) {
    if (!has(1)) row_.back() = 100.0;
  }

  /// Opens the channels, and trades tickets over them.
  Task<void> meet() {
    const SegmentTicket own = segment_.ticket();
    for (const int side : {0, 1}) {
      if (!has(side)) continue;
      const int rank = runtime_.rank().value, peer = side == 0 ? rank - 1 : rank + 1;
      const auto id = static_cast<std::uint32_t>(side == 0 ? peer : rank);
      Neighbour& there = neighbours_[static_cast<std::size_t>(side)];
      there.channel = Channel::open(runtime_, Rank{peer}, ChannelId{id});
      SegmentTicket ticket;
      Operation incoming = there.channel.recv(Buffer(&ticket, sizeof(ticket)));
      Operation outgoing = there.channel.send(ConstBuffer(&own, sizeof(own)));
      (co_await when_all(incoming, outgoing)).or_throw("tickets were not traded with a neighbour");
      there.ghosts = RemoteSegment(runtime_, Rank{peer}, ticket);
    }
  }

  Task<void> run(int steps) {
    for (int step = 0; step < steps; ++step) {
      for (const int side : {0, 1}) {
        if (has(side)) co_await put_face(side, step);
      }
      for (const int side : {0, 1}) {
        if (has(side)) co_await take_face(side, step);
      }
      compute();
    }
  }

  [[nodiscard]] double middle() const { return row_[row_.size() / 2]; }

 private:
  [[nodiscard]] bool has(int side) const {
    const int rank = runtime_.rank().value;
    return side == 0 ? rank > 0 : rank + 1 < runtime_.size();
  }
  /// Which double of the segment is the ghost of a side. A neighbour may be one step ahead: two ghosts take turns.
  static std::size_t ghost(int side, int step) {
    return 2 * static_cast<std::size_t>(step % 2) + static_cast<std::size_t>(side);
  }

  /// The put first, and the word that it is there when the put is `delivered`.
  Task<void> put_face(int side, int step) {
    Neighbour& there = neighbours_[static_cast<std::size_t>(side)];
    const double face = side == 0 ? row_[1] : row_[row_.size() - 2];
    const std::size_t place = ghost(1 - side, step) * sizeof(double);
    (co_await there.ghosts.put(place, ConstBuffer(&face, sizeof(face)))).or_throw("a put failed");
    (co_await there.channel.send(ConstBuffer(&step, sizeof(step)))).or_throw("a neighbour took no word of a put");
  }

  Task<void> take_face(int side, int step) {
    int told = 0;
    Neighbour& there = neighbours_[static_cast<std::size_t>(side)];
    (co_await there.channel.recv(Buffer(&told, sizeof(told)))).or_throw("a neighbour told of no put");
    (side == 0 ? row_.front() : row_.back()) = ghosts_.as<double>()[ghost(side, step)];
  }

  void compute() {
    const std::vector<double> old = row_;
    for (std::size_t i = 1; i + 1 < row_.size(); ++i) row_[i] = 0.5 * (old[i - 1] + old[i + 1]);
  }

  Runtime& runtime_;
  std::vector<double> row_;  ///< The cells, and the ghost of each side around them.
  Memory ghosts_;            ///< Freed last: after the segment, and after the neighbours have ended with it.
  Segment segment_;
  std::array<Neighbour, 2> neighbours_;
};

int main(int argc, char** argv) {
  const int cells = argc > 1 ? std::stoi(argv[1]) : 4;
  const int steps = argc > 2 ? std::stoi(argv[2]) : 2000;
  Runtime runtime;
  Rod rod(runtime, cells);
  runtime.run(rod.meet());
  runtime.run(rod.run(steps));
  std::printf("rank %d: %.2f degrees in the middle after %d steps\n", runtime.rank().value, rod.middle(), steps);
}
