#include "port/boot/launcher/store.h"

#include <utility>

#include <fmt/format.h>

namespace brant::port::launcher {
namespace {

/// A reply to `get` stops growing here: large enough to make round trips rare, small enough to be sent in one go.
constexpr std::size_t kReplyBytes = std::size_t{256} << 10;
constexpr std::size_t kRankListBytes = 200;

}  // namespace

std::string format_ranks(std::span<const int> ranks) {
  if (ranks.empty()) return "no rank";
  std::string text;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (text.size() > kRankListBytes) {
      text += fmt::format(" and {} more", ranks.size() - first);
      break;
    }
    text += first == last ? fmt::format("{}{}", text.empty() ? "" : ", ", ranks[first])
                          : fmt::format("{}{}-{}", text.empty() ? "" : ", ", ranks[first], ranks[last]);
    first = last + 1;
  }
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", text);
}

Store::Store(int size) : members_(static_cast<std::size_t>(size)) {}

void Store::open(int rank) {
  Member& self = member(rank);
  for (const auto& [key, value] : self.staged) self.bytes -= value.size();
  self.staged.clear();
  if (self.fence) --waiting_;
  self.fence.reset();
}

Store::Answer Store::put(int rank, const Put& put) {
  if (std::string fault = key_value_fault(put.key, put.value.size()); !fault.empty()) {
    return {Status::invalid_argument, std::move(fault)};
  }
  Member& self = member(rank);
  const auto old = self.staged.find(put.key);
  const std::size_t bytes = self.bytes + put.value.size() - (old == self.staged.end() ? 0 : old->second.size());
  if (bytes > kMaxBytesPerRank) {
    return {Status::limit_reached, fmt::format("rank {} put more than {} bytes in all", rank, kMaxBytesPerRank)};
  }
  self.staged[put.key].assign(put.value.begin(), put.value.end());
  self.bytes = bytes;
  return {};
}

void Store::enter_fence(int rank, std::uint64_t id) {
  Member& self = member(rank);
  if (!self.fence) ++waiting_;
  self.fence = id;
  settle();
}

void Store::cancel_fence(int rank, std::uint64_t id) {
  Member& self = member(rank);
  if (self.fence != id) return;
  const std::vector<int> absent = missing();
  answers_.push_back(
      {rank, id, {Status::timed_out, fmt::format("{} of {} not there", format_ranks(absent), members_.size())}});
  self.fence.reset();
  --waiting_;
}

void Store::leave(int rank, const std::string& reason) {
  Member& self = member(rank);
  if (!self.gone.empty()) return;
  self.gone = reason;
  if (self.fence) --waiting_;
  self.fence.reset();
  if (first_loss_.empty()) first_loss_ = reason;
  settle();
}

Store::Answer Store::get(const Get& get, std::vector<std::byte>& payload) const {
  if (std::string fault = key_value_fault(get.key, 0); !fault.empty())
    return {Status::invalid_argument, std::move(fault)};
  if (get.rank < 0 || static_cast<std::size_t>(get.rank) >= members_.size()) {
    return {Status::invalid_argument, fmt::format("there is no rank {} in a job of {}", get.rank, members_.size())};
  }
  for (auto rank = static_cast<std::size_t>(get.rank); rank < members_.size(); ++rank) {
    const auto found = members_[rank].visible.find(get.key);
    const bool present = found != members_[rank].visible.end();
    // The first one always fits: a value is never larger than what the frame was made for.
    if (present && !payload.empty() && payload.size() + found->second.size() > kReplyBytes) break;
    append_record(payload,
                  {.present = present,
                   .value = present ? std::span<const std::byte>(found->second) : std::span<const std::byte>()});
  }
  return {};
}

void Store::settle() {
  if (waiting_ == 0) return;
  if (!first_loss_.empty()) {
    answer_waiting({Status::peer_lost, first_loss_});
  } else if (static_cast<std::size_t>(waiting_) == members_.size()) {
    for (Member& each : members_) {
      for (auto& [key, value] : each.staged) {
        std::vector<std::byte>& visible = each.visible[key];
        each.bytes -= visible.size();
        visible = std::move(value);
      }
      each.staged.clear();
    }
    answer_waiting({});
  }
}

void Store::answer_waiting(const Answer& answer) {
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (!members_[rank].fence) continue;
    answers_.push_back({static_cast<int>(rank), *members_[rank].fence, answer});
    members_[rank].fence.reset();
  }
  waiting_ = 0;
}

std::vector<int> Store::missing() const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (!members_[rank].fence) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

}  // namespace brant::port::launcher
