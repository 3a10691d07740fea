#include "bench/runner/link.h"

#include <cstdint>

#include <fmt/format.h>

namespace brant::bench {
namespace {

constexpr std::uint64_t kBlockBytesMax = std::uint64_t{1} << 30;

}  // namespace

void Link::finish(Status posted, Op& op, Flag& flag, std::size_t bytes, const char* what) {
  if (posted == Status::in_progress) {
    auto done = [&] {
      if (rival_ != nullptr) rival_->progress();
      return flag.done;
    };
    while (awake_ && !done()) static_cast<void>(runtime_.worker().progress());
    static_cast<void>(runtime_.worker().wait_until(done));
    posted = flag.result.status;
  }
  if (posted != Status::ok || op.result.bytes != bytes) {
    throw Error(posted == Status::ok ? Status::internal : posted,
                fmt::format("{} {} bytes with rank {}: {}", what, bytes, channel_.peer().value, status_text(posted)));
  }
}

void Link::send(std::span<const std::byte> bytes) {
  Op op;
  Flag flag;
  op.source_free = flag.sink();
  const Status posted = channel_.post_send({bytes.data(), bytes.size(), MemoryKind::host}, op);
  finish(posted, op, flag, bytes.size(), "sending");
}

void Link::receive(std::span<std::byte> bytes) {
  Op op;
  Flag flag;
  op.delivered = flag.sink();
  const Status posted = channel_.post_recv({bytes.data(), bytes.size(), MemoryKind::host}, op);
  finish(posted, op, flag, bytes.size(), "receiving");
}

void Link::send_block(std::span<const std::byte> bytes) {
  const std::uint64_t length = bytes.size();
  send(std::as_bytes(std::span(&length, 1)));
  if (length != 0) send(bytes);
}

std::vector<std::byte> Link::receive_block() {
  std::uint64_t length = 0;
  receive(std::as_writable_bytes(std::span(&length, 1)));
  if (length > kBlockBytesMax)
    throw Error(Status::internal, fmt::format("rank {} announced {} bytes", channel_.peer().value, length));
  std::vector<std::byte> block(static_cast<std::size_t>(length));
  if (length != 0) receive(block);
  return block;
}

}  // namespace brant::bench
