#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "brant/chare/open_channel.h"
#include "models/chare/collections.h"
#include "models/chare/envelope.h"
#include "models/chare/program_context.h"

namespace brant::detail {

/// Where the chares of one process ask for channels to others. Each of the two ends sends the other a *hello* with its
/// rank; that of the end with the smaller name brings the id. Who has asked and has the other's hello, opens.
class ChannelDesk {
 public:
  ChannelDesk(const ProgramContext& context, Collections& collections) noexcept
      : context_(context), collections_(collections) {}

  Future<Channel> open(const Target& mine, const Target& theirs, const ChareChannelOptions& options);
  /// A hello to a chare of this process.
  void on_hello(const am::Message& message, const Envelope& envelope);
  /// It says instead that the other end is gone. Whoever it is for may be gone too.
  [[nodiscard]] bool is_refusal(const am::Message& message, const Envelope& envelope) const;
  void on_refusal(const am::Message& message, const Envelope& envelope);

  /// A chare that will never be made again, or all of a collection: nobody meets them any more. Who waits for one of
  /// them is told.
  void forget(const Target& gone) { forget(gone.collection, &gone.key); }
  void forget(std::uint32_t collection, const ElementKey* key = nullptr);

  /// Who holds an end, and who the other.
  struct Names {
    Target mine, theirs;
  };
  /// Null if the channel was not opened here.
  [[nodiscard]] const Names* names(std::uint32_t channel, std::uint32_t side) const noexcept;
  /// Chares here that asked and have not been met.
  struct Unmet {
    Names names;
    std::uint32_t number = 0;
    std::int64_t since = 0;
  };
  [[nodiscard]] std::vector<Unmet> unmet() const;
  /// Whether a chare here has asked for an end, was asked for one, or holds one.
  [[nodiscard]] bool holds_end_of(const Target& chare) const noexcept;
  /// Of how many ends it knows who holds them: of those that are open, and of as many that were.
  [[nodiscard]] std::size_t named() const noexcept { return names_.size(); }

 private:
  /// One end's view.
  struct Key {
    std::uint32_t my_collection = 0;
    ElementKey my_key;
    std::uint32_t their_collection = 0;
    ElementKey their_key;
    std::uint32_t number = 0;
    bool operator<(const Key& other) const noexcept;
    /// This end brings the id.
    [[nodiscard]] bool brings_id() const noexcept;
  };
  struct Hello {
    std::uint32_t collection = 0;  ///< Of the end that sends it.
    std::uint32_t number = 0;
    ElementKey key;
    std::int32_t rank = kGone;
    std::uint32_t id = 0;

    static constexpr std::int32_t kGone = -1;  ///< It will never open.
  };
  struct Meeting {
    std::optional<Promise<Channel>> asked;
    Path path = Path::automatic;
    std::int32_t rank = -1;  ///< Of the other; -1 until its hello came.
    std::uint32_t id = 0;
    std::int64_t since = 0;
    bool greeted = false;  ///< Our hello is on its way.
  };

  Hello hello_in(const am::Message& message, const Envelope& envelope) const;
  static Key key_for(const am::Message& message, const Envelope& envelope, const Hello& hello);
  void greet(const Key& key, std::int32_t rank, std::uint32_t id);
  std::uint32_t new_id();
  void open_if_met(const Key& key);
  void note_names(const Channel& channel, const Names& names);

  const ProgramContext& context_;
  Collections& collections_;
  std::map<Key, Meeting> meetings_;
  std::unordered_map<std::uint64_t, Names> names_;  ///< By channel and side: for reports.
  std::size_t names_max_ = 64;                      ///< Then those of closed ends go.
};

}  // namespace brant::detail
