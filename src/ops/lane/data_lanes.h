#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/object_pool.h"
#include "brant/base/intrusive_list.h"
#include "brant/core/future.h"
#include "brant/ops/lane/data.h"
#include "core/per_peer.h"
#include "ops/channel/endpoint.h"
#include "ops/lane/landing_pool.h"
#include "ops/mover/mover.h"

namespace brant::lane {

class DataLanes;

/// The source of one data argument: whoever still needs it counts (messages, sends, copies). When the last one lets go,
/// the sender is told that the buffer is free.
struct DataOrigin {
  ConstBuffer buffer;
  AskedMemory memory;            ///< What is known of the buffer when it is sent.
  const Shape* shape = nullptr;  ///< How it lies in the buffer, if not in one run: of `DataLanes::keep`.
  Completion free;
  std::optional<Promise<ConstBuffer>> promise;
  Op told;  ///< Fired when the last user has let go.
  DataLanes* lanes = nullptr;
  LandingBlock* block = nullptr;    ///< Memory of the runtime: data of a broadcast, or for an element that came late.
  DataOrigin* following = nullptr;  ///< The next argument of its call.
  Status status = Status::ok;
  std::uint32_t users = 1;
};

/// One argument on its way into this process or within it.
struct DataPart {
  static constexpr std::uint64_t kNoNumber = ~std::uint64_t{0};
  /// From progress, when the landing is filled or never will be: the record is whose `owner` is.
  using Ended = void (*)(DataPart& part, Status status) noexcept;
  explicit DataPart(DataLanes& of) noexcept : lanes(of) {}

  DataLanes& lanes;
  Op op;
  Ended ended = nullptr;         ///< Null: nobody wants it any more, and the record goes back when it has come.
  void* owner = nullptr;         ///< For `ended`.
  DataOrigin* origin = nullptr;  ///< Within this process: where from.
  LandingBlock* block = nullptr;
  Buffer landing;                ///< Of exactly the size that was announced; with a shape, what that is laid on.
  AskedMemory memory;            ///< What is known of that when it is received.
  const Shape* shape = nullptr;  ///< How it will lie there, if not in one run: of `DataLanes::keep`.
  DataPart* following = nullptr;
  [[nodiscard]] std::size_t bytes() const noexcept { return shape != nullptr ? shape->bytes() : landing.bytes; }

  bool under_way = false;
  Status status = Status::ok;
  std::int32_t from = -1;
  std::uint64_t number = kNoNumber;  ///< In the channel from there.
};

/// The copy of one argument within this process.
struct PartMove final : Move {
  PartMove(DataPart& part_in, const MoveEvents& events_in) noexcept : Move(events_in), part(part_in) {}
  DataPart& part;
  TransferShapes* kept = nullptr;  ///< What `shapes` points to.
};

/// What carries data arguments between the ranks: one hidden channel per pair, opened on first use, and kept from one
/// program to the next, so that its numbering goes on. The host-side message of a call carries the number of its first
/// argument in that channel; those of one call are numbered in a row.
///
/// The rule that keeps the channel from locking up: every number that a message announces is received in finite time,
/// whatever happens to the call. Who knows the landing receives there; where it is not known (the element or its array
/// does not exist yet, a broadcast), the data comes into memory of the runtime at once; what nobody wants any more is
/// received and dropped (`swallow`). Else the channel's window (256 messages, 64 MiB) would fill with data for an
/// element that is inserted only after something behind that data has been received.
///
/// The worker's thread. Nothing here calls users except `Completion`s and promises of sources, where the engine fires
/// completions.
class DataLanes final : public Service, private Poller {
 public:
  explicit DataLanes(Engine& engine);
  ~DataLanes() override;

  /// A joined process is gone: its lane goes once nothing of it is under way.
  bool forget(Peer& peer) noexcept override;

  [[nodiscard]] LandingPool& landings() noexcept { return landings_; }
  [[nodiscard]] Engine& engine() noexcept { return engine_; }

  /// A copy of a shape, for a source or a landing, whose record gives it back. Null: see `shape_refusal`.
  [[nodiscard]] const Shape* keep(const Shape& shape) noexcept;
  /// Why there was none of them: a million are lent (limit_reached), or no_memory.
  [[nodiscard]] Status shape_refusal() const noexcept { return shapes_.refusal(); }
  [[nodiscard]] Status origin_refusal() const noexcept { return origins_.refusal(); }
  [[nodiscard]] Status part_refusal() const noexcept { return parts_.refusal(); }

  // --- sources
  /// Null: see `origin_refusal`.
  DataOrigin* take_origin() noexcept { return origins_.take(); }
  static void share(DataOrigin* first) noexcept {
    for (; first != nullptr; first = first->following) ++first->users;
  }
  /// One user less of each.
  void release(DataOrigin* first, Status status) noexcept;
  void release_one(DataOrigin& origin, Status status) noexcept;

  // --- sending
  /// The number that the first of the arguments sent next to `to` will have. Throws what opening the lane throws.
  std::uint64_t next_number(std::int32_t to);
  /// Sends the arguments of a call whose message has left. Takes over one use of each origin.
  void send(std::int32_t to, DataOrigin* first) noexcept;
  /// A number that will never arrive, or never be received: what follows it in the channel waits for ever.
  struct Break {
    Status status = Status::ok;
    std::int32_t rank = -1;  ///< At the other end.
    bool receiving = false;
  };
  /// The first one, if there is one: the job cannot go on.
  [[nodiscard]] const Break& broken() const noexcept { return broken_; }
  /// Sends not ended yet.
  [[nodiscard]] std::size_t sending() const noexcept { return sends_.lent(); }
  /// The same of those to ranks that can be waited for.
  [[nodiscard]] bool sending_to_others() const noexcept;
  /// In another process, which may make progress while this one waits.
  [[nodiscard]] bool runs_elsewhere(std::int32_t rank) const noexcept;
  /// No source is in use by a send, nor free without its owner's knowing.
  [[nodiscard]] bool sources_idle() const noexcept { return sending() == 0 && untold_ == 0; }

  // --- receiving
  /// Null: see `part_refusal`.
  DataPart* take_part() noexcept { return parts_.take(*this); }
  void give_back(DataPart& part) noexcept;
  /// Starts to fill `part.landing`; in_progress: `part.ended` will tell. Any other status is the outcome.
  Status receive(DataPart& part, std::int32_t from, std::uint64_t number) noexcept;
  Status copy(DataPart& part) noexcept;
  /// Receives what nobody wants. Where that fails, the lane is broken.
  void swallow(std::int32_t from, std::uint64_t number, const DataMeta* metas, std::size_t count) noexcept;

 private:
  struct Lane;
  struct Send {
    Op op;
    Lane* lane = nullptr;
    DataOrigin* origin = nullptr;
    ListHook<Send> unposted_hook;
  };
  struct Lane {
    DataLanes* lanes = nullptr;
    std::int32_t rank = -1;
    ChannelEndpoint* end = nullptr;
    std::size_t sending = 0;
    /// The network took no more: tried again in the next progress.
    IntrusiveList<Send, &Send::unposted_hook> unposted;
    std::size_t unposted_count = 0;
  };

  Lane& lane(std::int32_t rank);
  Status post(Send& send, AskedMemory answer) noexcept;
  void sent(Send& send, Status status) noexcept;
  void note_broken(const Break& broken) noexcept {
    if (broken_.status == Status::ok) broken_ = broken;
  }
  void tell(DataOrigin& origin) noexcept;
  void drop(const Shape*& shape) noexcept;
  void give_back(PartMove& move) noexcept;
  static void filled(DataPart& part, Status status) noexcept;
  static void copied(Move& move, Status status) noexcept;
  unsigned poll() noexcept override;

  Engine& engine_;
  ChannelTable& table_;
  Mover& mover_;
  LandingPool landings_;
  ObjectPool<DataOrigin> origins_{std::size_t{1} << 20};
  ObjectPool<Send> sends_{std::size_t{1} << 20};
  ObjectPool<DataPart> parts_{std::size_t{1} << 20};
  ObjectPool<PartMove> moves_{std::size_t{1} << 20};
  ObjectPool<Shape> shapes_{std::size_t{1} << 20};
  ObjectPool<TransferShapes> move_shapes_{std::size_t{1} << 20};
  PerPeer<Lane> lanes_;
  std::size_t untold_ = 0;  ///< Sources that nobody uses any more, whose owners will be told.
  std::size_t unposted_ = 0;
  Break broken_;
};

}  // namespace brant::lane
