#pragma once

#include <memory>
#include <unordered_map>

#include "base/object_pool.h"
#include "ops/channel/endpoint.h"

namespace brant {

/// All channel ends of one runtime, and what they share: records, stage buffers, the control message handler.
class ChannelTable final : public Service {
 public:
  static constexpr std::size_t kTransfersMax = 65536;

  explicit ChannelTable(Engine& engine);

  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  [[nodiscard]] Stager& stager() noexcept { return stager_; }
  [[nodiscard]] ObjectPool<Transfer>& transfers() noexcept { return transfers_; }

  /// Throws invalid_argument, peer_lost.
  ChannelEndpoint& open(Rank peer, ChannelId id, Path forced);

  void send_control(Peer& peer, const ChannelControl& control) noexcept;

 private:
  struct ControlSend : port::WireOp {
    ChannelTable* table = nullptr;
    ChannelControl control;
  };

  static std::uint64_t key(ChannelId id, unsigned side) noexcept { return std::uint64_t{id.value} << 1 | side; }
  static void on_control(void* table, port::AmMessage& message) noexcept;
  void check_opened(const ChannelControl& control) noexcept;

  Engine& engine_;
  ObjectPool<Transfer> transfers_{kTransfersMax};
  ObjectPool<ControlSend> control_sends_{kTransfersMax};
  Stager stager_;  // after the records: its last copies lie in them
  std::unordered_map<std::uint64_t, std::unique_ptr<ChannelEndpoint>> endpoints_;
  std::unordered_map<std::uint64_t, std::int32_t>
      opened_by_;  ///< Which rank announced that end, before ours was opened.
};

}  // namespace brant
