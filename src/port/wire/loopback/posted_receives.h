#pragma once

#include <cstddef>
#include <cstdint>

#include "port/wire/loopback/pool.h"
#include "port/wire/loopback/records.h"

namespace brant::port::loopback {

/// The tagged receives of a wire that nothing has matched yet, in the order in which they were posted.
class PostedReceives {
 public:
  explicit PostedReceives(std::size_t receives_max) noexcept : pool_(receives_max) {}
  PostedReceives(const PostedReceives&) = delete;
  PostedReceives& operator=(const PostedReceives&) = delete;

  /// Null when memory is exhausted.
  Receive* add(std::uint64_t tag, std::uint64_t mask, Buffer landing, WireOp& op) noexcept {
    Receive* receive = pool_.take();
    if (receive == nullptr) return nullptr;
    receive->kind = RecordKind::receive;
    receive->op = &op;
    receive->tag = tag;
    receive->mask = mask;
    receive->landing = landing;
    posted_.push_back(*receive);
    return receive;
  }
  /// The first that this tag matches, taken out, for the caller to give back; or null.
  Receive* take_match(std::uint64_t tag) noexcept {
    for (Receive* receive = posted_.front(); receive != nullptr; receive = Receives::next(*receive)) {
      if (((receive->tag ^ tag) & receive->mask) != 0) continue;
      posted_.remove(*receive);
      return receive;
    }
    return nullptr;
  }
  void give(Receive& receive) noexcept { pool_.give(receive); }
  void withdraw(Receive& receive) noexcept {
    posted_.remove(receive);
    pool_.give(receive);
  }
  void withdraw_all() noexcept {
    while (Receive* receive = posted_.pop_front()) pool_.give(*receive);
  }

 private:
  Receives posted_;
  Pool<Receive, &Receive::place, 64> pool_;
};

}  // namespace brant::port::loopback
