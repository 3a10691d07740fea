#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "ops/am/messenger.h"
#include "support/in_process_job.h"

namespace brant::am {

using test::InProcessJob;
using test::JobOptions;

struct Header {
  std::uint32_t number = 0;
  std::uint32_t check = 0;
};

/// One rank's end: what came, in order; released at once or kept.
class End {
 public:
  explicit End(Runtime& runtime) : messenger_(runtime.worker().engine().service<Messenger>()) {
    messenger_.claim(
        ServiceId::test, [](void* self, Message& message) noexcept { static_cast<End*>(self)->take(message); },
        [](void* self, Rank peer, Status status) noexcept {
          static_cast<End*>(self)->troubles.emplace_back(peer, status);
        },
        this);
  }
  ~End() {
    messenger_.claim(ServiceId::test, nullptr, nullptr, nullptr);
    release_all();
  }

  Status send(int to, std::uint32_t number, std::size_t bytes, Flow flow = Flow::credit) {
    Message* message = messenger_.make(bytes);
    message->set_header(Header{number, ~number});
    std::memset(message->data, static_cast<int>(number & 0xff), bytes);
    const Status status = messenger_.send(Rank{to}, ServiceId::test, *message, flow);
    if (status != Status::ok) messenger_.release(*message);
    return status;
  }
  void release_all() {
    for (Message* message : kept_) messenger_.release(*message);
    kept_.clear();
  }
  /// Releases the last message that is kept; false if it is not what was sent (any more).
  bool release_last() {
    Message* message = kept_.back();
    kept_.pop_back();
    const bool whole = is_intact(*message);
    messenger_.release(*message);
    return whole;
  }
  [[nodiscard]] std::size_t kept() const { return kept_.size(); }
  [[nodiscard]] Messenger& messenger() { return messenger_; }

  bool keep = false;
  std::vector<std::uint32_t> numbers;
  std::vector<int> sources;
  bool intact = true;
  std::vector<std::pair<Rank, Status>> troubles;

 private:
  void take(Message& message) noexcept {
    const auto header = message.header<Header>();
    numbers.push_back(header.number);
    sources.push_back(message.wire.source);
    intact = intact && is_intact(message);
    if (keep) return kept_.push_back(&message);
    messenger_.release(message);
  }
  static bool is_intact(const Message& message) noexcept {
    const auto header = message.header<Header>();
    const auto value = static_cast<std::byte>(header.number & 0xff);
    return header.check == ~header.number &&
           std::ranges::count(message.payload(), value) == std::ssize(message.payload());
  }

  Messenger& messenger_;
  std::vector<Message*> kept_;
};

inline std::vector<std::uint32_t> count_to(std::uint32_t end) {
  std::vector<std::uint32_t> numbers(end);
  std::iota(numbers.begin(), numbers.end(), 0u);
  return numbers;
}

}  // namespace brant::am
