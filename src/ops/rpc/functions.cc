#include "ops/rpc/functions.h"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

namespace brant::remote {
namespace {

constinit std::atomic<Function*> g_enrolled{nullptr};

[[noreturn]] void refuse_equal(const Function& first, const Function& second) {
  throw Error(
      Status::invalid_argument,
      fmt::format("remote calls cannot tell {} and {} apart: they have the same name and signature, or the same "
                  "hash {:#x}. Rename one, or put one into a namespace with a name",
                  described(first), described(second), first.hash));
}

}  // namespace

std::string described(const Function& function) { return fmt::format("{}, {}", function.name, function.signature); }

bool enroll(Function& function) noexcept {
  function.hash = detail::name_hash("rpc", function.name, function.signature, std::string_view(function.tag->name()));
  function.following = g_enrolled.load(std::memory_order_relaxed);
  while (!g_enrolled.compare_exchange_weak(function.following, &function, std::memory_order_release,
                                           std::memory_order_relaxed)) {
  }
  return true;
}

Functions::Functions() {
  take_late_ones();
  const auto twin = std::adjacent_find(sorted_.begin(), sorted_.end(), [](const Function* left, const Function* right) {
    return left->hash == right->hash;
  });
  if (twin != sorted_.end()) refuse_equal(**twin, **std::next(twin));
}

bool Functions::take_late_ones() {
  const Function* head = g_enrolled.load(std::memory_order_acquire);
  if (head == newest_) return false;
  for (const Function* each = head; each != newest_; each = each->following) sorted_.push_back(each);
  newest_ = head;
  std::sort(sorted_.begin(), sorted_.end(),
            [](const Function* left, const Function* right) { return left->hash < right->hash; });
  return true;
}

const Function* Functions::look_up(std::uint64_t hash) const {
  const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), hash,
                                      [](const Function* each, std::uint64_t wanted) { return each->hash < wanted; });
  if (found == sorted_.end() || (*found)->hash != hash) return nullptr;
  if (const auto twin = std::next(found); twin != sorted_.end() && (*twin)->hash == hash) [[unlikely]]
    refuse_equal(**found, **twin);
  return *found;
}

const Function* Functions::find(std::uint64_t hash) {
  const Function* found = look_up(hash);
  return found == nullptr && take_late_ones() ? look_up(hash) : found;
}

}  // namespace brant::remote
