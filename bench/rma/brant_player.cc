#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "bench/rma/player.h"
#include "bench/rma/told_puts.h"
#include "bench/runner/images.h"
#include "bench/runner/path_counts.h"
#include "bench/runner/rma_batch.h"
#include "bench/runner/us_since.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;

class BrantPlayer final : public RmaPlayer {
 public:
  BrantPlayer(Session& session, const RmaPlaces& places, const RmaBench& bench)
      : session_(session),
        places_(places),
        options_{.path = bench.path},
        puts_(session.runtime(), &PathTally::sends),
        gets_(session.runtime(), &PathTally::receives),
        images_(session.runtime()),
        told_(session.runtime(), session.channel_partner(), bench.window) {
    for (const RmaMemory memory : {RmaMemory::device, RmaMemory::shared}) exchange(memory);
    for (End& end : ends_) end.batch.emplace(session.runtime(), end.there, bench.window, bench.path);
  }

  [[nodiscard]] std::string peer() const override { return {}; }
  [[nodiscard]] bool plays(const RmaCase&) const override { return true; }
  [[nodiscard]] std::string path() const override { return path_; }

  void use(RmaPattern pattern) override {
    mine_ = places_.mine(pattern);
    end_ = &end_of(pattern.remote);
  }

  void measure(const RmaCase& which, std::span<double> us) override {
    if (!session_.leads()) {
      for (std::size_t i = 0; which.sync == RmaSync::notify && i < us.size(); ++i) {
        told_.take(which.window);
        told_.acknowledge();
      }
      return;
    }
    const PathCounts::Sends before = counts(which).now();
    for (double& sample : us) sample = which.sync == RmaSync::inject ? inject(which) : complete(which);
    path_ = which.sync == RmaSync::notify ? path_of_one(which) : counts(which).since(before);
  }

  /// Each transfer of a window has a place and a pattern of its own, as far as the memory goes.
  void check(const RmaCase& which, std::size_t times) override {
    const std::size_t places = std::min(which.window, places_.bytes() / which.bytes);
    const bool notified = which.sync == RmaSync::notify;
    for (std::uint64_t time = 0; time < times; ++time) {
      const std::uint64_t first = time * which.window;
      // Whose bytes are moved has the patterns, the other one poison.
      for (std::size_t i = 0; i < places; ++i) {
        const Buffer part = slice(i * which.bytes, which.bytes);
        session_.leads() == which.puts() ? images_.fill(part, first + i) : images_.poison(part, first + i);
      }
      session_.barrier();
      if (session_.leads()) {
        move(which, places, which.bytes);
        if (!which.puts()) expect_images(which, places, first);
      } else if (notified) {  // being told is all the target waits for
        told_.take(places);
        expect_images(which, places, first);
        told_.acknowledge();
      }
      session_.barrier();
      if (!session_.leads() && which.puts()) expect_images(which, places, first);
    }
  }

 private:
  /// What this process has exposed of one memory, or reaches of it.
  struct End {
    Segment segment;
    RemoteSegment there;
    std::optional<RmaBatch> batch;
  };

  [[nodiscard]] const PathCounts& counts(const RmaCase& which) const noexcept { return which.puts() ? puts_ : gets_; }

  /// Of one more: what tells of puts is counted as they are.
  std::string path_of_one(const RmaCase& which) {
    const PathCounts::Sends before = counts(which).now();
    end_->batch->add(which.direction, 0, slice(0, which.bytes));
    end_->batch->finish();
    return counts(which).since(before);
  }

  [[nodiscard]] End& end_of(RmaMemory memory) noexcept { return ends_[memory == RmaMemory::device ? 0 : 1]; }

  /// The target exposes this memory, if the patterns need it.
  void exchange(RmaMemory memory) {
    End& end = end_of(memory);
    if (!session_.leads()) {
      if (places_.has(memory)) end.segment = expose(session_.runtime(), places_.of(memory));
      session_.partner().send_block(places_.has(memory) ? end.segment.ticket().bytes() : std::span<const std::byte>());
      return;
    }
    const std::vector<std::byte> ticket = session_.partner().receive_block();
    if (!ticket.empty())
      end.there = RemoteSegment(session_.runtime(), session_.channel_partner(), SegmentTicket(ticket));
  }

  [[nodiscard]] Buffer slice(std::size_t offset, std::size_t bytes) const noexcept {
    return {static_cast<std::byte*>(mine_.data) + offset, bytes, mine_.kind};
  }

  /// Posts `count` transfers, one every `stride` bytes at both ends.
  void post(const RmaCase& which, std::size_t count, std::size_t stride) {
    for (std::size_t i = 0; i < count; ++i) {
      const Buffer local = slice(i * stride, which.bytes);
      if (which.sync == RmaSync::notify) {
        told_.put(end_->there, i * stride, local, options_);
      } else {
        end_->batch->add(which.direction, i * stride, local);
      }
    }
  }
  void move(const RmaCase& which, std::size_t count, std::size_t stride) {
    post(which, count, stride);
    which.sync == RmaSync::notify ? told_.finish() : end_->batch->finish();
  }

  double complete(const RmaCase& which) {
    const Clock::time_point begin = Clock::now();
    move(which, which.window, 0);
    return us_since(begin);
  }
  double inject(const RmaCase& which) {
    const Clock::time_point begin = Clock::now();
    post(which, which.window, 0);
    const double us = us_since(begin);
    end_->batch->finish();
    return us / static_cast<double>(which.window);
  }

  void expect_images(const RmaCase& which, std::size_t places, std::uint64_t first) {
    for (std::size_t i = 0; i < places; ++i) {
      const auto wrong = images_.first_wrong(slice(i * which.bytes, which.bytes), first + i);
      if (!wrong) continue;
      throw Error(
          Status::internal,
          fmt::format("check: {} {} of {}, {}, {} bytes of {} memory is wrong at rank {}: byte {}",
                      direction_name(which.direction), first + i, pattern_name(which.pattern), sync_name(which.sync),
                      which.bytes, memory_kind_name(mine_.kind), session_.runtime().rank().value, *wrong));
    }
  }

  Session& session_;
  const RmaPlaces& places_;
  const RmaOptions options_;
  const PathCounts puts_;
  const PathCounts gets_;
  Images images_;
  ToldPuts told_;
  std::array<End, 2> ends_;
  End* end_ = nullptr;
  Buffer mine_;
  std::string path_ = "auto";
};

}  // namespace

std::unique_ptr<RmaPlayer> make_brant_player(Session& session, const RmaPlaces& places, const RmaBench& bench) {
  return std::make_unique<BrantPlayer>(session, places, bench);
}

RmaPlaces::RmaPlaces(Session& session, const std::vector<RmaPattern>& patterns, std::size_t bytes)
    : leads_(session.leads()), bytes_(bytes) {
  Runtime& runtime = session.runtime();
  for (const RmaPattern& pattern : patterns) {
    const RmaMemory memory = leads_ ? pattern.local : pattern.remote;
    if (has(memory)) continue;
    const bool device = memory == RmaMemory::device;
    spaces_[static_cast<std::size_t>(memory)] =
        Space::make(runtime, device ? runtime.device_kind() : MemoryKind::host, bytes,
                    memory == RmaMemory::private_ ? Alloc::malloc : Alloc::library);
  }
}

Buffer RmaPlaces::of(RmaMemory memory) const { return space(memory).part(0, bytes_); }

Buffer RmaPlaces::mine(RmaPattern pattern) const { return of(leads_ ? pattern.local : pattern.remote); }

}  // namespace brant::bench
