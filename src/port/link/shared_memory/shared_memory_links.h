#pragma once

#include <array>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "port/link.h"
#include "port/link/shared_memory/inbox.h"

namespace brant::port::peer {

class SharedMemoryLinks;

/// Records of one peer for services that nobody has claimed yet: copied out of the ring, so that they stop nobody
/// else's.
class SetAside {
 public:
  static constexpr std::size_t kRecordsMax = 4096;
  static constexpr std::size_t kBytesMax = std::size_t{16} << 20;  ///< Of payload, for all services together.

  struct Record {
    std::array<std::byte, kLinkHeaderBytes> header;
    std::vector<std::byte> payload;
  };

  [[nodiscard]] bool has(unsigned service) const noexcept { return !records_[service].empty(); }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  /// False: a bound is reached, or memory exhausted.
  bool keep(const RingRecord& record) noexcept;
  /// The oldest for a service, which has one.
  [[nodiscard]] const Record& front(unsigned service) const noexcept { return records_[service].front(); }
  void pop(unsigned service) noexcept;

 private:
  std::array<std::list<Record>, Links::kServices> records_;  // lists: empty ones take no memory
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

/// The link with one process: its inbox, into which this process writes, and the ring of this one's that it writes to.
class SharedMemoryLink final : public Link {
 public:
  /// `fenced`: see RingProducer.
  SharedMemoryLink(SharedMemoryLinks& links, int rank, Inbox inbox, std::uint32_t own_place, RingMemory& incoming,
                   bool fenced) noexcept;

  bool post(unsigned service, std::span<const std::byte> header, std::span<const std::byte> payload) noexcept override;
  bool post_control(unsigned service, std::span<const std::byte> header) noexcept override;

  unsigned poll(unsigned service) noexcept override;
  void wake() noexcept override { inbox_.ring_if_asleep_behind_words(outgoing_.fenced()); }

  [[nodiscard]] std::span<std::uint64_t> flags_there() noexcept override { return outgoing_memory_.flags; }
  [[nodiscard]] std::span<std::uint64_t> flags_here() noexcept override { return incoming_memory_.flags; }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  /// The peer has mapped this process's inbox too.
  [[nodiscard]] bool both_attached() const noexcept {
    return incoming_memory_.attached.yes.load(std::memory_order_acquire) != 0;
  }
  [[nodiscard]] RingConsumer& incoming() noexcept { return incoming_; }
  [[nodiscard]] bool has_kept() const noexcept { return !kept_.empty(); }
  void end_row() noexcept { outgoing_.end_row(); }
  /// Posts what was kept for want of room. Returns how many.
  unsigned post_kept() noexcept;

  bool dropped = false;
  bool stalled = false;  ///< Its oldest record is for a service that nobody has claimed, and no more are set aside.
  bool broken = false;   ///< It wrote a record that is none: nothing behind that can be found.
  SetAside aside;

 private:
  struct Kept {
    unsigned service = 0;
    std::uint32_t bytes = 0;
    std::array<std::byte, kLinkHeaderBytes> header{};
  };

  SharedMemoryLinks& links_;
  const int rank_;
  Inbox inbox_;
  RingMemory& outgoing_memory_;
  RingMemory& incoming_memory_;
  RingProducer outgoing_;
  RingConsumer incoming_;
  std::deque<Kept> kept_;
};

class SharedMemoryLinks final : public Links {
 public:
  SharedMemoryLinks(Inbox own, const InboxAddress& address) noexcept;

  [[nodiscard]] std::span<const std::byte> address() const noexcept override;
  Status attach(int rank, unsigned own_place, unsigned its_place, std::span<const std::byte> address) noexcept override;
  [[nodiscard]] Link* link(int rank) noexcept override;
  void drop(int rank) noexcept override;
  void set_handler(unsigned service, LinkHandler handler, void* context) noexcept override;
  void set_fault_handler(LinkFaultHandler handler, void* context) noexcept override {
    fault_handler_ = handler;
    fault_context_ = context;
  }
  unsigned poll() noexcept override;
  [[nodiscard]] int event_fd() const noexcept override { return own_.event_fd(); }
  bool arm() noexcept override;

  static constexpr unsigned kAnyService = kServices;
  /// Runs the handlers of at most `most` records of a link, as long as they are for `service`.
  unsigned drain(SharedMemoryLink& link, unsigned most, unsigned service = kAnyService) noexcept;

 private:
  /// Runs the handlers of what was set aside for services that have one now. Returns how many.
  unsigned deliver_aside(SharedMemoryLink& link) noexcept;
  [[nodiscard]] bool can_deliver_aside(const SharedMemoryLink& link) const noexcept;
  /// False: it cannot be kept, and waits in the ring.
  bool set_aside(SharedMemoryLink& link, const RingRecord& record) noexcept;
  void give_up(SharedMemoryLink& link) noexcept;

  struct Service {
    LinkHandler handler = nullptr;
    void* context = nullptr;
  };

  SharedMemoryLink* find(int rank) noexcept;
  Status attach_checked(int rank, unsigned own_place, unsigned its_place, std::span<const std::byte> address);

  Inbox own_;
  const InboxAddress address_;
  std::vector<std::unique_ptr<SharedMemoryLink>> links_;
  std::array<Service, kServices> services_{};
  LinkFaultHandler fault_handler_ = nullptr;
  void* fault_context_ = nullptr;
  bool armed_ = false;
  bool draining_ = false;
};

}  // namespace brant::port::peer
