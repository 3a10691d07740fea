#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <span>
#include <string>

#include "brant/base/shape.h"
#include "brant/core/runtime.h"
#include "brant/core/wait_place.h"
#include "brant/ops/channel.h"
#include "models/halo/layout.h"

namespace brant::halo {

class Transfers;

/// One end of one message of an exchange, posted once in each.
struct Transfer {
  std::span<const Link> links;  ///< What travels in it.
  std::size_t bytes = 0;
  int rank = 0;
  bool is_send = false;
  Channel* channel = nullptr;
  Completion then;  ///< Told when it has ended, instead of who waits in `ended`.
  Op op;
  Transfers* owner = nullptr;
};

/// The channels of an exchange, one to each process and a pair of ends with this process itself, and what is under way
/// in them. It ends at the first failure: the others may wait for a process that has given up as well. Of the worker's
/// thread.
class Transfers {
 public:
  Transfers(Runtime& runtime, const Layout& layout) noexcept : runtime_(runtime), layout_(layout) {}
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;
  ~Transfers() { give_up(); }

  /// A message of so many bytes; opens the channel. Both ends add in the same order. Throws what Channel::open does.
  Transfer& add(std::span<const Link> links, std::size_t bytes, bool is_send);

  /// One more exchange may begin. Throws canceled after `give_up`.
  void require_open() const;
  void post(Transfer& transfer, Buffer buffer) noexcept;
  void post(Transfer& transfer, Buffer buffer, const Shape& shape) noexcept;
  /// Until all that was posted has ended. Throws the first failure.
  Task<void> ended();
  /// Throws the first failure, if there was one.
  void throw_if_failed() const {
    if (failed_ != nullptr) throw_failure();
  }
  /// Lets go of all that is under way, and closes the channels: from here on nobody uses the buffers any more.
  void give_up() noexcept;

 private:
  Channel& channel_to(int rank, bool is_send);
  [[nodiscard]] Completion sink_of(Transfer& transfer) noexcept;
  template <typename... As>
  void post_as(Transfer& transfer, const As&... as) noexcept;
  void posted(Transfer& transfer, Status status) noexcept;
  void note(Transfer& transfer, const OpResult& outcome) noexcept;
  [[noreturn]] void throw_failure() const;

  Runtime& runtime_;
  const Layout& layout_;
  std::map<int, Channel> channels_;  ///< By rank; with this process itself the end that sends.
  Channel own_landing_;              ///< The end with this process itself that receives.
  std::deque<Transfer> all_;
  std::size_t pending_ = 0;
  bool given_up_ = false;
  const Transfer* failed_ = nullptr;  ///< The first that failed, with `why_`.
  Status why_ = Status::ok;
  detail::WaitPlace waiter_;
};

}  // namespace brant::halo
