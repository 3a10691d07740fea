#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/object_pool.h"
#include "core/engine.h"
#include "core/observe/published_pages.h"
#include "core/paths/collective_bands.h"
#include "ops/am/messenger.h"
#include "ops/coll/call_record.h"
#include "ops/coll/device/retired_streams.h"

namespace brant {

class TeamState;

/// The teams of one runtime.
class TeamTable final : public Service {
 public:
  static constexpr std::size_t kCallsMax = 1 << 18;

  /// The messenger and the mover are made first, so they go first, and take along what is kept here of theirs.
  explicit TeamTable(Engine& engine);

  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  [[nodiscard]] am::Messenger& messenger() noexcept { return messenger_; }
  [[nodiscard]] ObjectPool<coll::CallRecord>& calls() noexcept { return calls_; }
  /// Where teams note their calls.
  [[nodiscard]] PublishedPages& pages() noexcept { return pages_; }
  /// As this machine was measured; empty: it was not.
  [[nodiscard]] const std::vector<CollectiveBand>& bands() const noexcept { return bands_; }
  /// The CPU does not reach memory of a device: a call with such memory is carried out elsewhere. no_memory, which the
  /// log says.
  Status stage(const coll::Members& members, const coll::Sides& sides, const std::string& team,
               coll::CallRecord& record) noexcept;
  /// Gives back what a record was lent, without having been posted.
  void drop(coll::CallRecord& record) noexcept;
  /// Whoever waits for the call hears of its end, once no copy of it is under way.
  void end(coll::CallRecord& record) noexcept;

  /// How many teams of this list of members, given by its hash, this process has made before.
  std::uint64_t count_of(std::uint64_t list) noexcept { return made_[list]++; }
  /// The next number of those that this process is the lowest member of.
  std::uint32_t next_led() noexcept { return ++led_; }

  /// Loaded on first use: ask for them before kernels run that end late.
  Result<const coll::StreamKernels*> stream_kernels() noexcept;
  [[nodiscard]] coll::RetiredStreams& retired_streams() noexcept { return retired_streams_; }

  /// Its messages go to it from now on, those that came before among them. False: there is one of this key.
  bool enter(std::uint64_t key, TeamState& team);
  void leave(std::uint64_t key) noexcept;

  void peer_ended(Peer& peer) noexcept override;
  bool stalled(std::chrono::nanoseconds idle, bool for_ever) noexcept override;
  void look_around() noexcept override;

 private:
  static constexpr std::size_t kClosedKept = 1024;

  coll::Staging* take_staging() noexcept;
  static void on_message(void* self, am::Message& message) noexcept;

  Engine& engine_;
  am::Messenger& messenger_;
  Mover& mover_;
  const std::vector<CollectiveBand> bands_;
  PublishedPages pages_;
  ObjectPool<coll::Staging, 8> stagings_{kCallsMax};
  ObjectPool<coll::CallRecord> calls_{kCallsMax};
  coll::StreamKernels stream_kernels_;
  coll::RetiredStreams retired_streams_{engine_};
  std::unordered_map<std::uint64_t, TeamState*> teams_;  ///< By key.
  std::unordered_map<std::uint64_t, std::uint64_t> made_;
  std::uint32_t led_ = 0;
  am::MessageList early_;  ///< Of teams that are not made here yet: what making one sends, so a few for each.
  std::array<std::uint64_t, kClosedKept> closed_{};  ///< Keys of those that were closed last: nobody waits for theirs.
  std::size_t next_closed_ = 0;
};

}  // namespace brant
