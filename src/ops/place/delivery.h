#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ops/place/directory.h"
#include "ops/place/letter.h"

namespace brant::place {

/// What goes along with a thing that moves. It travels in the message that carries the thing.
struct Passport {
  Identity id;
  std::int32_t from = -1;
  std::uint32_t epoch = 0;         ///< Of the stay that begins.
  std::uint32_t epoch_before = 0;  ///< Of the one that ends.
  std::uint32_t awaited = 0;
  std::vector<std::int32_t> senders;  ///< Those that sent to the place directly.
};

/// Brings letters to things that move: each once, and those of one sender (one rank) in their order. One per rank and
/// kind of things; a state machine that knows no network, no clock and no thread.
///
/// A sender goes by one way at a time: by way of the home, which knows where the thing is, or, once it was told the
/// place, directly. Before it changes its way it sends an *end* behind its last letter, and parks what it has to send
/// until the place has answered that the end arrived. So nothing overtakes anything, however long the ways. The home is
/// a sender like the others: while it changes its way, what others send by way of it is parked there.
///
/// A thing that moves leaves a stub, which passes on what still comes. The senders that go the old way are known: they
/// and the home are told of the new place by that place, and end their ways. When all have, the stub goes, and only
/// then may the thing move on. Hence at most one stub of a thing exists, and a letter is passed on twice at most: by
/// the home and by the stub.
///
/// Belongs to one thread. Functions throw bad_alloc, and nothing else that is not named.
class Delivery {
 public:
  static constexpr std::uint8_t kHopsMax = 2;

  /// `senders_max`: how many ranks send directly to one thing; more than that go by way of its home.
  Delivery(Directory& directory, Carrier& carrier, std::size_t senders_max = 64) noexcept
      : directory_(directory), carrier_(carrier), senders_max_(senders_max) {}
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  /// A call of this rank to `id`. Takes the letter over and fills in its header.
  void send(Identity id, Letter& letter);
  /// Of the carrier: a letter that another rank, or this one, sent here. False: it contradicts what was sent before,
  /// and is still the caller's; whoever sent it is not to be trusted.
  [[nodiscard]] bool receive(Letter& letter);

  /// Whether `id` lives here and everything that its last move stirred up has settled. If not yet, it will by itself.
  [[nodiscard]] bool may_depart(Identity id) const noexcept;
  /// From here on `id` lives at `to`. The caller sends the passport, and the thing itself, to `to` before anything
  /// else, in the same order as letters. Throws brant::Error (invalid_argument) unless `may_depart`, or if `to` is this
  /// rank.
  [[nodiscard]] Passport depart(Identity id, std::int32_t to);
  /// The thing is here: calls may be delivered to it. False: the passport contradicts what is known here.
  [[nodiscard]] bool arrive(const Passport& passport);
  /// This rank sends to `id` by way of its home again: nothing here need remember it.
  void give_up(Identity id);

  /// Things to which this rank changes its way.
  [[nodiscard]] std::size_t turns() const noexcept { return turns_.size(); }
  [[nodiscard]] bool turning(Identity id) const noexcept { return !turns_.empty() && turns_.contains(id); }
  /// At the end: one of the letters that wait; null if none does.
  [[nodiscard]] Letter* take_parked() noexcept;
  /// Letters that wait for that.
  [[nodiscard]] std::size_t parked() const noexcept { return parked_; }

 private:
  /// A change of way, from the end until the answer.
  struct Turn {
    bool leaves = false;
    std::uint32_t news = 0;  ///< The newest place that was heard of meanwhile.
    LetterList parked;
  };
  using Turns = std::unordered_map<Identity, Turn, Identity::Hash>;

  [[nodiscard]] std::int32_t self() const noexcept { return directory_.self(); }
  [[nodiscard]] bool park(Letter& letter) noexcept;
  void pass_on(std::int32_t rank, Letter& letter) noexcept;
  bool pass_home(Letter& letter);
  bool go_on(Letter& letter);
  bool go_through(Stub& stub, Letter& letter) noexcept;

  void take_call(Guest* guest, Letter& letter);
  void take_end(Guest* guest, const Header& end);
  void invite(Guest& guest, Identity id, std::int32_t rank);
  void tell(std::int32_t rank, Header::Kind kind, Identity id, Place place);

  void on_here(Identity id, Place place);
  [[nodiscard]] bool on_opened(Identity id, Place place);
  void accept(Identity id);
  void start_turn(Way& way, bool leaves);
  void send_end(Identity id, Place ended, bool leaves);
  void finish_turn(Turns::iterator turn);

  Directory& directory_;
  Carrier& carrier_;
  const std::size_t senders_max_;
  Turns turns_;
  std::size_t parked_ = 0;
};

}  // namespace brant::place
