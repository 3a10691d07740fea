#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "core/engine.h"
#include "ops/mapping/mapping_message.h"

namespace brant {

/// Where memory of this process is, as a peer that was told of its allocation finds it.
struct ExportedPlace {
  std::uint64_t buffer_id = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  ///< From there to the end of the allocation.
};

/// What this process has told one peer how to map: each allocation once, known by the driver's buffer id, so that
/// memory freed and allocated again at the same address is another one. The peer is told of freed memory within
/// fractions of a second of progress (`look_for_freed`), and always before new memory in the same block of the driver.
///
/// Bounded: kMax allocations. When there are more, the one that no message has used for longest is withdrawn, and told
/// anew when it is needed again; if all were used within a second, further ones go other ways.
class Exports {
 public:
  static constexpr std::size_t kMax = 1024;

  Exports(Engine& engine, Peer& peer) noexcept : engine_(engine), peer_(peer) {}
  Exports(const Exports&) = delete;
  Exports& operator=(const Exports&) = delete;

  /// Where memory of this process is, after having told the peer how to map its allocation. `buffer_id`: of that, if
  /// the caller knows it, which saves the question. not_supported or wrong_kind: no other process can map it, ever; the
  /// device has logged why. Any other status: not now.
  Result<ExportedPlace> describe(const void* data, std::uint64_t buffer_id = 0) noexcept;
  /// How others map the allocation that `pointer` lies in: as its device lets them, or else by means of a file, for
  /// which they have to ask.
  static Result<port::ExportRecord> record_of(port::Device& device, const void* pointer) noexcept;
  /// The same, for the peer to hear of by another way than `describe`: it may ask for the file by the buffer id alone.
  Result<port::ExportRecord> lend(const void* pointer) noexcept;
  /// An allocation will be exported: the peer first hears of freed memory that shared a block with it.
  void make_way(const port::PointerInfo& info) noexcept;
  /// Whether the network may take device memory of this process, `buffer_id` its allocation, to or from the peer. While
  /// the peer has freed memory of the same block mapped, its network library cannot map this, and ends the process. A
  /// few instructions for an allocation that was asked for before; else one call of the device.
  [[nodiscard]] bool network_may_map(const void* data, std::uint64_t buffer_id) noexcept;
  /// The peer wants to hear of the end of an allocation, which may have come.
  void on_watch(std::uint64_t buffer_id, const void* address) noexcept;
  /// The peer has answered so many withdrawals of an allocation.
  void on_closed(std::uint64_t buffer_id, std::uint32_t withdrawals) noexcept;
  /// The peer asks for the file of an allocation, which it gets in its box, or not, and hears of that.
  void on_fetch(const MappingMessage& asked) noexcept;
  /// Looks at some of them, and goes on there the next time: the driver tells nobody what a program frees.
  void look_for_freed(unsigned looks) noexcept;
  /// The peer is gone.
  void forget_all() noexcept {
    exported_.clear();
    closing_.clear();
  }

  [[nodiscard]] std::size_t count() const noexcept { return exported_.size(); }

 private:
  struct Exported {
    port::PointerInfo info;
    TimePoint used_at{};
  };
  /// The peer may have it mapped still.
  struct Withdrawn {
    port::PointerInfo info;
    std::uint32_t unanswered = 0;
  };
  using Table = std::unordered_map<std::uint64_t, Exported>;

  static constexpr std::size_t kRefusedMax = 16;
  static constexpr std::size_t kClearMax = 64;
  /// What no message has used for so long makes room for others.
  static constexpr auto kIdle = std::chrono::seconds(1);
  /// Between looks for such that found none, so that a program which uses more than there is room for pays little.
  static constexpr auto kLookAgain = std::chrono::milliseconds(100);

  [[nodiscard]] ExportedPlace place_of(const void* data, Exported& exported) noexcept;
  Result<Exported*> export_once(const port::PointerInfo& info) noexcept;
  Status hand_over(const MappingMessage& asked) noexcept;
  Status tell(const port::ExportRecord& record) noexcept;
  Exported* remember(const port::PointerInfo& info) noexcept;
  [[nodiscard]] bool has_room() noexcept;
  [[nodiscard]] bool is_refused(std::uint64_t buffer_id) const noexcept;
  void remember_refused(std::uint64_t buffer_id) noexcept;
  [[nodiscard]] bool gone(const port::PointerInfo& known) noexcept;
  /// False: not now, since memory is exhausted.
  bool tell_withdrawn(std::uint64_t buffer_id) noexcept;
  void tell_watched(std::uint64_t buffer_id) noexcept;
  bool withdraw(const port::PointerInfo& info) noexcept;
  template <typename Chosen>
  void withdraw_if(Chosen&& chosen) noexcept;
  void withdraw_idlest(TimePoint now) noexcept;

  Engine& engine_;
  Peer& peer_;
  Table exported_;                                        ///< By buffer id.
  std::unordered_map<std::uint64_t, Withdrawn> closing_;  ///< Device memory, by buffer id.
  /// Buffer ids of allocations that the network may map: nothing older can be in their way any more. 0: none.
  std::array<std::uint64_t, kClearMax> clear_{};
  /// Buffer ids of the last allocations that cannot be exported, so that not every message asks again: a question
  /// costs system calls. 0: none.
  std::array<std::uint64_t, kRefusedMax> refused_{};
  std::size_t next_refused_ = 0;
  std::size_t looked_bucket_ = 0;
  TimePoint look_for_room_at_{};
  bool full_told_ = false;
};

}  // namespace brant
