#include "bench/runner/nccl_contender.h"

#include <chrono>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;

nccl::UniqueId meet(Session& session) {
  nccl::UniqueId id{};
  if (session.leads()) {
    id = nccl::make_unique_id();
    session.partner().send_block(std::as_bytes(std::span(id.bytes)));
    return id;
  }
  const std::vector<std::byte> block = session.partner().receive_block();
  if (block.size() != sizeof(id.bytes)) {
    throw Error(Status::version_mismatch,
                fmt::format("rank {} got {} bytes instead of NCCL's id of {}: another version of brant?",
                            session.runtime().rank().value, block.size(), sizeof(id.bytes)));
  }
  std::memcpy(id.bytes, block.data(), sizeof(id.bytes));
  return id;
}

/// Each sample from the end of the one before.
template <typename OneSample>
void time_each(std::span<double> samples, OneSample&& one) {
  Clock::time_point last = Clock::now();
  for (double& sample : samples) {
    one();
    const Clock::time_point now = Clock::now();
    sample = std::chrono::duration<double, std::micro>(now - last).count();
    last = now;
  }
}

}  // namespace

NcclContender::NcclContender(Session& session, const Options& options)
    : session_(session),
      trigger_(options.trigger),
      other_(session.leads() ? 1 : 0),
      graphs_(session),
      nccl_(graphs_.streams(), graphs_.stream(), {.rank = 1 - other_, .size = 2, .id = meet(session)}) {}

void NcclContender::ping_pong(std::size_t bytes, std::span<double> round_trip_us) {
  const auto one = [&] {
    if (session_.leads()) {
      send(bytes);
      recv(bytes);
    } else {
      recv(bytes);
      if (trigger_ == Trigger::host) nccl_.wait();  // the program has the message before it answers
      send(bytes);                                  // and need not wait for it: the next receive comes behind
    }
  };
  if (trigger_ == Trigger::host) {
    time_each(round_trip_us, [&] {
      one();
      if (session_.leads()) nccl_.wait();
    });
    nccl_.wait();
    return;
  }
  one();  // NCCL connects two sides when they first send this much, which is better not captured
  nccl_.wait();
  graphs_.run(round_trip_us, kRoundTripsTogether, [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) one();
  });
}

void NcclContender::window_of(std::size_t bytes, std::size_t window) {
  nccl_.together([&] {
    for (std::size_t i = 0; i < window; ++i) session_.leads() ? send(bytes) : recv(bytes);
  });
  if (session_.leads()) {
    recv(kReplyBytes);
  } else {
    if (trigger_ == Trigger::host) nccl_.wait();  // see ping_pong
    send(kReplyBytes);
  }
}

void NcclContender::windows(std::size_t bytes, std::size_t window, std::span<double> window_us) {
  if (trigger_ == Trigger::host) {
    time_each(window_us, [&] {
      window_of(bytes, window);
      if (session_.leads()) nccl_.wait();
    });
    nccl_.wait();
    return;
  }
  window_of(bytes, window);  // see ping_pong
  nccl_.wait();
  graphs_.run(window_us, kWindowsTogether, [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) window_of(bytes, window);
  });
}

}  // namespace brant::bench
