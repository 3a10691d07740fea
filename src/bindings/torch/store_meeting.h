#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "bindings/torch/job.h"

namespace brant::distributed {

/// Processes meet at the store that PyTorch has for them: any of its kinds.
class StoreMeeting final : public Meeting {
 public:
  StoreMeeting(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, std::chrono::milliseconds timeout)
      : store_(own(store)), rank_(rank), size_(size), timeout_(timeout), prefix_("brant/" + round() + "/") {}

  int rank() override { return rank_; }
  int size() override { return size_; }

  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override {
    const std::string round = prefix_ + "gather/" + std::to_string(gathers_++) + "/";
    const auto* first = reinterpret_cast<const std::uint8_t*>(mine.data());
    store_->set(round + std::to_string(rank_), std::vector<std::uint8_t>(first, first + mine.size()));
    std::vector<std::string> keys;
    for (int member = 0; member < size_; ++member) keys.push_back(round + std::to_string(member));
    store_->wait(keys, timeout_);
    std::vector<std::vector<std::byte>> all;
    for (const std::string& key : keys) {
      const std::vector<std::uint8_t> value = store_->get(key);
      const auto* data = reinterpret_cast<const std::byte*>(value.data());
      all.emplace_back(data, data + value.size());
    }
    return all;
  }

  void start_barrier() override {
    barrier_ = prefix_ + "barrier/" + std::to_string(barriers_++);
    came_ = count(1) >= size_;
  }

  bool barrier_done() override { return came_ || (came_ = count(0) >= size_); }

 private:
  /// A connection of its own, where a store has one: calls of the program may block in the other.
  static c10::intrusive_ptr<c10d::Store> own(const c10::intrusive_ptr<c10d::Store>& store) {
    return [](const auto& any) -> c10::intrusive_ptr<c10d::Store> {
      if constexpr (requires { any->clone(); }) {
        return any->clone();
      } else {
        return any;
      }
    }(store);
  }

  /// The same at all members, and another one each time: a store may outlive a group of the same name, and what stands
  /// in it then is of processes' former addresses.
  std::string round() { return std::to_string((store_->add("brant/members", 1) - 1) / size_); }

  int count(int more) {
    try {
      return static_cast<int>(store_->add(barrier_, more));
    } catch (const std::exception&) {
      // The process that has the store may be through already, and gone.
      if (!is_parting()) throw;
      return size_;
    }
  }

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  int size_;
  std::chrono::milliseconds timeout_;
  std::string prefix_;
  std::uint64_t gathers_ = 0;
  std::uint64_t barriers_ = 0;
  std::string barrier_;
  bool came_ = false;
};

}  // namespace brant::distributed
