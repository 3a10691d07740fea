// Messages whose bytes do not lie in one run, at either end, between memory of all kinds.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "core/engine.h"
#include "support/effort.h"
#include "support/grounds.h"
#include "support/in_process_job.h"
#include "support/shapes.h"

namespace brant {
namespace {

using test::Ground;
using test::InProcessJob;
using test::JobOptions;
using test::kGrounds;
using test::moved;
using test::pattern;
using test::ShapeZoo;
using test::Space;

/// How the two ends reach each other.
enum class Reach : std::uint8_t { network, network_takes_device, link, link_and_network_takes_device, itself };
constexpr Reach kReaches[] = {Reach::network, Reach::network_takes_device, Reach::link,
                              Reach::link_and_network_takes_device, Reach::itself};
constexpr const char* name_of(Reach reach) {
  constexpr const char* kNames[] = {"network", "taking_network", "link", "link_beside_taking_network", "itself"};
  return kNames[static_cast<int>(reach)];
}

struct Case {
  Reach reach;
  Ground from;
  Ground to;
};

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const Reach reach : kReaches) {
    for (const Ground& from : kGrounds) {
      for (const Ground& to : kGrounds) cases.push_back({reach, from, to});
    }
  }
  return cases;
}

std::string case_name(const testing::TestParamInfo<Case>& each) {
  return std::string(name_of(each.param.reach)) + "_" + each.param.from.name + "_to_" + each.param.to.name;
}

JobOptions options_for(Reach reach) {
  JobOptions options;
  options.gpu = GpuChoice::emulated;
  options.links = reach == Reach::link || reach == Reach::link_and_network_takes_device;
  options.network_takes_device = reach == Reach::network_takes_device || reach == Reach::link_and_network_takes_device;
  return options;
}

/// A sender of rank 0 and a receiver, with room for shapes of so much at either end.
class ShapedMessages {
 public:
  ShapedMessages(const Case& of, std::size_t scale)
      : room_(ShapeZoo::room(scale)),
        job_(options_for(of.reach)),
        receiver_(of.reach == Reach::itself ? 0 : 1),
        source_(job_.rank(0), of.from.kind, room_, of.from.of_heap),
        landing_(job_.rank(receiver_), of.to.kind, room_, of.to.of_heap) {
    source_.fill(sent_);
  }

  enum class First : std::uint8_t { receive, send };

  /// The message arrives, and nothing else of the landing is written.
  void expect_arrives(const TransferShapes& shapes, First first, Moment until = Moment::source_free) {
    landing_.fill(before_);
    std::unique_ptr<Operation> send, receive;
    const auto post_receive = [&] { receive.reset(new Operation(right.recv(landing_.whole(), shapes.to))); };
    if (first == First::receive) post_receive();
    job_.run(3);
    send.reset(new Operation(left.send(source_.whole(), shapes.from, until)));
    job_.run(3);
    if (first == First::send) post_receive();
    const OpResult got = job_.outcome(*receive), gone = job_.outcome(*send);
    EXPECT_EQ(got.status, Status::ok) << status_name(got.status);
    EXPECT_EQ(got.bytes, shapes.from.bytes());
    EXPECT_EQ(gone.status, Status::ok) << status_name(gone.status);
    EXPECT_EQ(gone.bytes, shapes.from.bytes());
    EXPECT_EQ(landing_.image(), moved(before_, 0, sent_, 0, shapes));
  }

  InProcessJob& job() { return job_; }
  [[nodiscard]] Space& source() { return source_; }
  [[nodiscard]] Space& landing() { return landing_; }
  std::uint64_t sent_by(Path path) { return job_.rank(0).worker().engine().counters().path(path).sends.read(); }

 private:
  const std::size_t room_;
  const std::vector<std::byte> sent_ = pattern(room_, 1), before_ = pattern(room_, 2);
  InProcessJob job_;
  const int receiver_;
  Space source_;
  Space landing_;

 public:
  Channel left = Channel::open(job_.rank(0), Rank{receiver_}, ChannelId{7});
  Channel right = Channel::open(job_.rank(receiver_), Rank{0}, ChannelId{7});
};

using First = ShapedMessages::First;

class ShapedChannel : public testing::TestWithParam<Case> {};

TEST_P(ShapedChannel, bytes_go_from_every_shape_into_every_other) {
  ShapedMessages messages(GetParam(), 1);
  const ShapeZoo zoo(1);
  const auto& all = zoo.shapes();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i % test::effort<std::size_t>(1, 3); j < all.size(); j += test::effort<std::size_t>(1, 3)) {
      const ShapeZoo::Named &from = all[i], &to = all[j];
      for (const First first : {First::receive, First::send}) {
        SCOPED_TRACE(from.name + " to " + to.name + (first == First::receive ? ", receive first" : ", send first"));
        messages.expect_arrives({from.shape, to.shape}, first);
      }
    }
  }
}

/// What goes in records, by offers or piece by piece, in one turn of the CPU and in several.
TEST_P(ShapedChannel, messages_of_all_sizes_arrive) {
  for (const std::size_t scale : {std::size_t{5}, std::size_t{30}, test::effort<std::size_t>(313, 100)}) {
    ShapedMessages messages(GetParam(), scale);
    const ShapeZoo zoo(scale);
    const auto& all = zoo.shapes();
    for (std::size_t i = 0; i < all.size(); i += test::effort<std::size_t>(1, 4)) {
      const ShapeZoo::Named &from = all[(i + 1) % all.size()], &to = all[(i + 5) % all.size()];
      SCOPED_TRACE(from.name + " to " + to.name + " x " + std::to_string(scale));
      messages.expect_arrives({from.shape, to.shape}, i % 2 == 0 ? First::receive : First::send, Moment::delivered);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShapedChannel, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace brant
