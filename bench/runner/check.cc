#include "bench/runner/check.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "bench/runner/contender.h"
#include "bench/runner/pattern.h"

namespace brant::bench {
namespace {

constexpr std::size_t kWindowBytesMax = std::size_t{64} << 20;  // every message of a window needs a place of its own

/// One side of the pass: memory with room for a window, and the messages by number.
class Checker {
 public:
  Checker(Session& session, const Options& options, std::size_t bytes, std::size_t places, const CheckedPosts& posts)
      : session_(session),
        posts_(posts),
        kind_(options.memory),
        bytes_(bytes),
        window_(places),
        memory_(session.scratch(scratch_bytes(options))) {}

  /// Both sides count the same messages in the same order.
  void send(std::size_t count, std::size_t bytes) { transfer(true, count, bytes); }
  void receive(std::size_t count, std::size_t bytes) { transfer(false, count, bytes); }

 private:
  [[nodiscard]] Buffer place(std::size_t index, std::size_t bytes) const {
    return memory_.part(index * std::max(bytes_, kReplyBytes), bytes);
  }
  [[nodiscard]] std::uint64_t message(std::size_t index) const noexcept {
    return (static_cast<std::uint64_t>(session_.pair()) << 40) + first_ + index;
  }

  void transfer(bool sends, std::size_t count, std::size_t bytes) {
    std::vector<std::byte> image(bytes);
    for (std::size_t i = 0; i < count; ++i) {
      sends ? fill_pattern(image, message(i)) : fill_poison(image, message(i));
      session_.runtime().copy(place(i, bytes), ConstBuffer(image.data(), bytes, MemoryKind::host));
    }
    for (std::size_t i = 0; i < count; ++i) {
      window_.add(sends ? Moment::source_free : Moment::delivered, [&](Op& op) noexcept {
        return sends ? posts_.send(place(i, bytes), op) : posts_.recv(place(i, bytes), op);
      });
    }
    static_cast<void>(session_.runtime().worker().wait_until(
        [&]() noexcept { return window_.pending() == 0 || !window_.result().ok(); }));
    const OpResult total = window_.result().ok() ? session_.runtime().wait(window_.drain()) : window_.result();
    window_.withdraw();
    if (!total.ok() || total.bytes != bytes * count) {
      throw Error(total.ok() ? Status::internal : total.status,
                  fmt::format("check: rank {} {} {} messages of {} bytes of {} memory: {} ({} bytes moved)",
                              session_.runtime().rank().value, sends ? "sent" : "received", count, bytes,
                              memory_kind_name(kind_), status_text(total.status), total.bytes));
    }
    for (std::size_t i = 0; !sends && i < count; ++i) verify(i, image);
    first_ += count;
  }

  void verify(std::size_t index, std::vector<std::byte>& image) const {
    session_.runtime().copy(Buffer(image.data(), image.size(), MemoryKind::host), place(index, image.size()));
    const std::optional<std::size_t> wrong = first_wrong_byte(image, message(index));
    if (!wrong) return;
    throw wrong_byte({message(index), *wrong, image[*wrong]}, image.size(), kind_, session_.runtime().rank().value);
  }

  Session& session_;
  const CheckedPosts& posts_;
  const MemoryKind kind_;
  const std::size_t bytes_;
  Window window_;
  const Space& memory_;
  std::uint64_t first_ = 0;
};

}  // namespace

std::size_t places_for(const Options& options, std::size_t bytes) noexcept {
  if (options.kind == Kind::latency) return 1;
  return std::clamp<std::size_t>(kWindowBytesMax / std::max<std::size_t>(bytes, 1), 1, options.window);
}

std::size_t scratch_bytes(const Options& options) noexcept {
  std::size_t most = 1;
  for (const std::size_t bytes : options.sizes) {
    most = std::max(most, std::max(bytes, kReplyBytes) * places_for(options, bytes));
  }
  return most;
}

Error wrong_byte(const WrongByte& wrong, std::size_t bytes, MemoryKind kind, int rank) {
  return {Status::internal,
          fmt::format("check: message {} of {} bytes of {} memory is wrong at rank {}: byte {} is {:#04x}, expected "
                      "{:#04x}",
                      wrong.message, bytes, memory_kind_name(kind), rank, wrong.index,
                      std::to_integer<unsigned>(wrong.found),
                      std::to_integer<unsigned>(pattern_byte(wrong.message, wrong.index)))};
}

void check_transfers(Session& session, const Options& options, std::size_t bytes, std::size_t times,
                     const CheckedPosts& posts) {
  const bool latency = options.kind == Kind::latency;
  const std::size_t window = places_for(options, bytes);
  Checker checker(session, options, bytes, window, posts);
  for (std::size_t time = 0; time < times; ++time) {
    if (session.leads()) {
      checker.send(window, bytes);
      checker.receive(1, latency ? bytes : kReplyBytes);
    } else {
      checker.receive(window, bytes);
      checker.send(1, latency ? bytes : kReplyBytes);
    }
  }
}

}  // namespace brant::bench
