#pragma once

#include <deque>
#include <vector>

#include "models/halo/copies.h"
#include "models/halo/exchange.h"
#include "models/halo/message_cut.h"
#include "models/halo/transfers.h"

namespace brant::halo {

/// Mode `fused`: one kernel packs all that is sent, and copies what stays in this process; when it has ended the
/// messages go, from one buffer into another; when all have come one kernel unpacks them. In memory of the host the CPU
/// does the same.
class FusedExchange : public Exchange {
 public:
  FusedExchange(Runtime& runtime, const HaloOptions& options) : FusedExchange(runtime, options, {options.messages}) {}

  [[nodiscard]] std::size_t messages() const noexcept override { return sends_.size(); }
  [[nodiscard]] std::size_t message_bytes() const noexcept override;

 protected:
  /// A message, where it is in the buffer, and what is copied for it.
  struct Part {
    Transfer* transfer = nullptr;
    std::size_t offset = 0;
    Phase phase;
  };

  FusedExchange(Runtime& runtime, const HaloOptions& options, const MessageCut& cut);

  /// For these fields, which may be of another kind than last time.
  void prepare(std::span<const Buffer> fields);
  [[nodiscard]] Buffer part_of(const Memory& memory, const Part& part) const;
  Task<void> exchange(std::span<const Buffer> fields) override;
  /// After `prepare`.
  Task<void> exchange_prepared();
  void give_up() noexcept override;

  Transfers transfers_;
  Copies copies_;
  std::deque<Part> receives_;
  std::deque<Part> sends_;
  Phase own_;  ///< What stays in this process.
  bool by_device_ = false;
  Memory send_buffer_;
  Memory receive_buffer_;
  std::vector<std::byte*> bases_;  ///< The fields, then the two buffers.
  Stream stream_;

 private:
  [[nodiscard]] bool travels(const Link& link) const noexcept;
  /// Those that travel, as messages; each region of them is copied from or into the buffer. Returns its bytes.
  std::size_t plan_messages(const std::vector<Link>& links, const MessageCut& cut, bool is_send);
  std::size_t plan_message(std::span<const Link> links, std::size_t offset, bool is_send);
  void make_buffers(MemoryKind kind);
  void require_ready(std::span<const Buffer>) const override { transfers_.require_open(); }

  const bool to_itself_;  ///< What stays in this process is a message as well.
  std::size_t send_bytes_ = 0;
  std::size_t receive_bytes_ = 0;
  Phase pack_;
  Phase unpack_;
  MemoryKind kind_ = MemoryKind::detect;  ///< Of the buffers; detect: there are none yet.
  bool uploaded_ = false;
};

}  // namespace brant::halo
