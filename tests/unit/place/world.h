#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ops/place/delivery.h"

namespace brant::place::test {

struct WorldOptions {
  std::size_t things = 4;
  std::size_t ways_max = 64;
  std::size_t senders_max = 64;
};

/// Five ranks with a link from each to each (and to itself), which keeps the order and delays as the test likes. It
/// knows the truth: where each thing is, and which call of which sender must come to it next.
class World {
 public:
  static constexpr std::int32_t kRanks = 5;

  explicit World(const WorldOptions& options) : options_(options), things_(options.things) {
    for (std::int32_t rank = 0; rank < kRanks; ++rank) {
      nodes_.push_back(std::make_unique<Node>(*this, rank, options));
    }
    for (std::size_t i = 0; i < options.things; ++i) {
      Thing& thing = things_[i];
      thing.rank = static_cast<std::int32_t>(i % kRanks);
      thing.id = Identity::of(thing.rank, i);
    }
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // What may happen.
  void send(std::int32_t rank, std::size_t thing) {
    TestLetter& letter = letter_with({});
    letter.number = things_[thing].sent[at(rank)]++;
    node(rank).delivery.send(things_[thing].id, letter);
  }
  /// The oldest of that link arrives. False: there is none.
  bool carry(std::int32_t from, std::int32_t to) {
    std::deque<Parcel>& link = links_[at(from)][at(to)];
    if (link.empty()) return false;
    const Parcel parcel = link.front();
    link.pop_front();
    --under_way_;
    if (parcel.letter == nullptr) {
      settle_in(to, parcel.passport);
    } else if (!node(to).delivery.receive(*parcel.letter)) {
      fail(fmt::format("rank {} refuses a letter of kind {} from rank {}, after {} hops", to,
                       static_cast<int>(parcel.letter->header.kind), from, parcel.letter->header.hops));
      release(*parcel.letter);
    }
    return true;
  }
  /// False: it is under way, there already, or has not settled.
  bool move(std::size_t number, std::int32_t to) {
    Thing& thing = things_[number];
    if (thing.rank < 0 || thing.rank == to || !node(thing.rank).delivery.may_depart(thing.id)) return false;
    put(thing.rank, to, {nullptr, node(thing.rank).delivery.depart(thing.id, to)});
    thing.rank = -1;
    ++moves;
    return true;
  }
  void give_up(std::int32_t rank, std::size_t thing) { node(rank).delivery.give_up(things_[thing].id); }

  /// Everything arrives that is under way, and what that sends.
  void drain() {
    for (std::size_t carried = 0; under_way_ != 0 && error_.empty();) {
      for (std::int32_t link = 0; link < kRanks * kRanks; ++link)
        carried += carry(link / kRanks, link % kRanks) ? 1 : 0;
      if (carried > 1'000'000) fail("the letters do not come to rest");
    }
  }
  /// After `drain`: nothing waits and nothing was lost.
  void check_rest() {
    for (const auto& node : nodes_) {
      const Delivery& delivery = node->delivery;
      if (delivery.turns() != 0 || delivery.parked() != 0 || node->directory.stubs() != 0) {
        fail(fmt::format("rank {} is left with {} turns, {} parked letters, {} stubs", node->rank, delivery.turns(),
                         delivery.parked(), node->directory.stubs()));
      }
    }
    for (const Thing& thing : things_) {
      if (thing.taken != thing.sent) fail(fmt::format("calls to thing {} were lost", thing.id.number()));
    }
  }
  /// After all things went home: nobody remembers anything.
  void check_forgotten() {
    for (const auto& node : nodes_) {
      if (node->directory.anything_moved()) fail(fmt::format("rank {} still remembers moves", node->rank));
    }
  }
  void check_bounds() {
    for (const auto& node : nodes_) {
      if (node->directory.ways() > options_.ways_max) fail("too many ways");
    }
    for (const Thing& thing : things_) {
      if (thing.rank < 0) continue;
      std::size_t stubs = 0;
      for (const auto& node : nodes_) stubs += node->directory.stub(thing.id) != nullptr ? 1 : 0;
      if (stubs > 1) fail(fmt::format("thing {} has {} stubs", thing.id.number(), stubs));
      const Guest* guest = node(thing.rank).directory.guest(thing.id);
      if (guest != nullptr && guest->senders.size() > options_.senders_max) fail("too many senders");
    }
  }

  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  [[nodiscard]] std::size_t things() const noexcept { return things_.size(); }
  [[nodiscard]] std::int32_t home_of(std::size_t thing) const noexcept { return things_[thing].id.home(); }
  [[nodiscard]] std::int32_t rank_of(std::size_t thing) const noexcept { return things_[thing].rank; }
  [[nodiscard]] Directory& directory(std::int32_t rank) noexcept { return node(rank).directory; }
  [[nodiscard]] Delivery& delivery(std::int32_t rank) noexcept { return node(rank).delivery; }
  [[nodiscard]] Identity id(std::size_t thing) const noexcept { return things_[thing].id; }
  [[nodiscard]] std::size_t under_way() const noexcept { return under_way_; }
  [[nodiscard]] std::uint32_t taken(std::size_t thing, std::int32_t sender) const {
    return things_[thing].taken[at(sender)];
  }

  // What has happened, so that a test knows that it got there.
  std::uint64_t moves = 0;
  std::uint64_t delivered = 0;
  std::uint64_t direct = 0;           ///< Of those: without a hop, to another rank than the home.
  std::uint64_t twice_passed_on = 0;  ///< Of those: by the home and by a stub.
  std::uint64_t parked_at_home = 0;   ///< Of others.

 private:
  struct TestLetter : Letter {
    std::uint32_t number = 0;
  };
  struct Parcel {
    TestLetter* letter = nullptr;
    Passport passport;  ///< Without a letter: a thing.
  };
  struct Thing {
    Identity id;
    std::int32_t rank = -1;  ///< -1: under way.
    std::array<std::uint32_t, kRanks> sent{}, taken{};
  };
  struct Node : Carrier {
    Node(World& all, std::int32_t self, const WorldOptions& options)
        : world(all), rank(self), directory(self, options.ways_max), delivery(directory, *this, options.senders_max) {}
    Letter& make(const Header& header) override { return world.letter_with(header); }
    void send(std::int32_t to, Letter& letter) noexcept override {
      world.put(rank, to, {static_cast<TestLetter*>(&letter), {}});
    }
    void deliver(Letter& letter) noexcept override { world.take(rank, static_cast<TestLetter&>(letter)); }
    void release(Letter& letter) noexcept override { world.release(letter); }
    void parked(Letter& letter) noexcept override {
      if (letter.header.origin == rank) world.fail("a sender's own letter waits as if it were of others");
      ++world.parked_at_home;
    }

    World& world;
    std::int32_t rank;
    Directory directory;
    Delivery delivery;
  };

  static std::size_t at(std::int32_t rank) noexcept { return static_cast<std::size_t>(rank); }
  Node& node(std::int32_t rank) noexcept { return *nodes_[at(rank)]; }

  TestLetter& letter_with(const Header& header) {
    TestLetter* letter = nullptr;
    if (free_.empty()) {
      letter = &letters_.emplace_back();
    } else {
      letter = free_.back();
      free_.pop_back();
    }
    letter->header = header;
    return *letter;
  }
  void release(Letter& letter) { free_.push_back(static_cast<TestLetter*>(&letter)); }
  void put(std::int32_t from, std::int32_t to, Parcel parcel) {
    links_[at(from)][at(to)].push_back(std::move(parcel));
    ++under_way_;
  }
  void settle_in(std::int32_t to, const Passport& passport) {
    Thing& thing = things_[passport.id.number()];
    thing.rank = to;
    if (!node(to).delivery.arrive(passport)) fail(fmt::format("rank {} refuses a thing", to));
  }
  void take(std::int32_t rank, TestLetter& letter) {
    const Header& header = letter.header;
    Thing& thing = things_[header.id.number()];
    std::uint32_t& next = thing.taken[at(header.origin)];
    if (thing.rank != rank) fail(fmt::format("rank {} takes a call for a thing of rank {}", rank, thing.rank));
    if (letter.number != next) {
      fail(fmt::format("call {} of rank {} comes to thing {} where {} is next", letter.number, header.origin,
                       header.id.number(), next));
    }
    next = letter.number + 1;
    ++delivered;
    if (header.hops == 0 && rank != header.id.home()) ++direct;
    if (header.hops == 2) ++twice_passed_on;
    release(letter);
  }
  void fail(const std::string& what) {
    if (error_.empty()) error_ = what;
  }

  const WorldOptions options_;
  std::vector<Thing> things_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::array<std::array<std::deque<Parcel>, kRanks>, kRanks> links_;
  std::size_t under_way_ = 0;
  std::deque<TestLetter> letters_;
  std::vector<TestLetter*> free_;
  std::string error_;
};

}  // namespace brant::place::test
