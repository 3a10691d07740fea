#pragma once

#include <deque>
#include <map>
#include <vector>

#include "brant/halo/halo_exchange.h"
#include "brant/ops/channel.h"
#include "models/halo/plan.h"

namespace brant::halo {

/// One end of one message: from or into the field of a block of this process, over a channel.
struct Part {
  Message message;
  bool is_send = false;
  std::size_t field = 0;  ///< Which of this process's.
  Channel* channel = nullptr;
  std::vector<ByteRun> runs;  ///< Of an indexed shape.
  Shape shape;
  Op op;
  Exchange* owner = nullptr;
};

/// What is behind a HaloExchange: its parts in the order in which both ends post them, and what is under way.
class Exchange {
 public:
  Exchange(Runtime& runtime, const HaloOptions& options);

  [[nodiscard]] int first_block() const noexcept { return first_; }
  [[nodiscard]] int blocks() const noexcept { return count_; }
  [[nodiscard]] std::size_t field_bytes(int i) const;
  [[nodiscard]] Cells array_of(int i) const;
  [[nodiscard]] std::size_t messages() const noexcept { return sends_.size(); }
  [[nodiscard]] std::size_t message_bytes() const noexcept;
  Task<void> run(std::span<const Buffer> fields);

 private:
  struct Ended;

  [[nodiscard]] int rank_of(int block) const noexcept { return block / count_; }
  void add(std::deque<Part>& parts, std::vector<Message> messages, bool is_send);
  [[nodiscard]] Shape shape_of(Part& part) const;
  Channel& channel_to(int rank, bool is_send);
  void require_fields(std::span<const Buffer> fields) const;
  void post(Part& part, Buffer field) noexcept;
  void ended(Part& part, const OpResult& outcome) noexcept;
  /// Lets go of all that is under way.
  void give_up() noexcept;
  [[noreturn]] void throw_failure() const;

  Runtime& runtime_;
  HaloOptions options_;
  Decomposition cut_;
  int first_ = 0;
  int count_ = 0;
  std::map<int, Channel> channels_;  ///< By rank; with this process itself the end that sends.
  Channel own_landing_;              ///< The end with this process itself that receives.
  std::deque<Part> receives_;
  std::deque<Part> sends_;
  bool running_ = false;
  std::size_t pending_ = 0;
  const Part* failed_ = nullptr;  ///< The first part that failed, with `why_`.
  Status why_ = Status::ok;
  detail::WaitPlace waiter_;
};

}  // namespace brant::halo
