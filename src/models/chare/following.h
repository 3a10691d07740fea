#pragma once

#include <span>

#include "base/object_pool.h"
#include "models/chare/collections.h"
#include "models/chare/data_landings.h"
#include "models/chare/latecomers.h"

namespace brant::detail {

class Enrolment;

/// Messages to elements that may have moved: they follow, each once, and those of one sender in their order, by the
/// rules of `ops/place`. Carries the letters of all arrays; each array that knows of a move has a `Delivery`.
///
/// A call with data arguments is in no order. One that meets no element here takes its data into memory of the runtime
/// first, and goes on as a new letter of this rank.
class Following final : private place::Carrier {
 public:
  Following(const ProgramContext& context, Collections& collections, Messages& messages, Sending& sending,
            ReadyQueue& queue, DataLandings& landings, Latecomers& latecomers, Ending& ending,
            Enrolment& enrolment) noexcept;

  /// The array's places, made if it has none.
  ArrayPlaces& places_of(Collection& collection);
  /// False, at the price of a comparison: no message that comes can be for what moved.
  [[nodiscard]] bool may_concern(const Envelope& envelope) const noexcept { return arrays_ != 0 || envelope.follows(); }

  /// From this rank to an element of an array that has places.
  void send(Collection& collection, am::Message& message, const Envelope& envelope, const ElementKey& key);
  /// A message that came. True: it was taken over.
  [[nodiscard]] bool take(am::Message& message, const Envelope& envelope);
  /// To where an element has gone, before anything else: what was here for it.
  void send_after(std::int32_t to, Collection& collection, place::Identity id, am::MessageList& mail);
  /// A call whose element is not here: it is on its way here, or the call goes after it. False: nothing here knows of a
  /// move.
  [[nodiscard]] bool find(Collection& collection, am::Message& message, const Envelope& envelope,
                          const ElementKey& key);

  /// Elements of this home that a broadcast does not find here.
  template <typename Visit>
  void for_each_absent(Collection& collection, Visit&& visit) const {
    std::vector<ElementKey> absent;
    const auto note = [&](place::Identity id) {
      const ElementKey key = collection.rule().key_at(id.number());
      if (collection.find(key) == nullptr) absent.push_back(key);
    };
    const ArrayPlaces& places = *collection.places();
    places.directory.for_each_away(note);
    for (const auto& [id, message] : places.arriving) {
      if (id.home() == context_.rank && places.directory.way(id) == nullptr) note(id);
    }
    for (const ElementKey& key : absent) visit(key);
  }
  /// Lives here, but what goes to all elements comes to it from its home.
  [[nodiscard]] bool is_guest(const Collection& collection, const ChareBase& chare) const {
    return collection.places() != nullptr && collection.home_of(Collection::key_of(chare)) != context_.rank;
  }

  /// Of an array that goes, or at the end of the program: what still waits.
  am::MessageList take_all(Collection& collection) noexcept;

 private:
  struct ChareLetter : place::Letter {
    Collection* collection = nullptr;
    am::Message* message = nullptr;  ///< Null: it has a header alone.
    std::int32_t from = -1;          ///< Who is to blame.
  };

  // place::Carrier
  place::Letter& make(const place::Header& header) override;
  void send(std::int32_t rank, place::Letter& letter) noexcept override;
  void deliver(place::Letter& letter) noexcept override;
  void release(place::Letter& letter) noexcept override;
  void parked(place::Letter& letter) noexcept override;

  ChareLetter& letter_of(Collection& collection, am::Message* message);
  void receive(ChareLetter& letter);
  /// What this rank has sent to itself, now that nobody is inside a `Delivery`.
  void receive_own();
  [[nodiscard]] bool take_letter(Collection& collection, am::Message& message);
  void take_arrival(Collection& collection, am::Message& message, const Envelope& envelope);
  /// False: it contradicts itself, or what is known here.
  [[nodiscard]] bool admit(Collection& collection, const am::Message& message, const Envelope& envelope,
                           place::Identity id);
  /// A call that cannot run here. True: it has to wait for its data, and goes on with that as a letter of this rank.
  [[nodiscard]] bool awaits_data(am::Message& message, const Envelope& envelope);
  /// Gives a block back to whoever lent it: the copy is this rank's own, with room behind it.
  am::Message& own(am::Message& message, std::size_t room);
  void carry(std::int32_t rank, ChareLetter& letter);
  void drop_damaged(am::Message* message, std::int32_t from) noexcept;

  const ProgramContext& context_;
  Collections& collections_;
  Messages& messages_;
  Sending& sending_;
  ReadyQueue& queue_;
  DataLandings& landings_;
  Latecomers& latecomers_;
  Ending& ending_;
  Enrolment& enrolment_;
  std::size_t arrays_ = 0;  ///< That have places.
  /// The array of which a letter is being handled: its `Delivery` makes letters of its own.
  Collection* at_work_ = nullptr;
  ObjectPool<ChareLetter> letters_{std::size_t{1} << 20};
  place::LetterList own_;
};

}  // namespace brant::detail
