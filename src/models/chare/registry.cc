#include "models/chare/registry.h"

#include <algorithm>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::detail {
namespace {

constinit Registered* g_enrolled = nullptr;

std::string described(const Registered& line) {
  return line.name.empty() ? std::string(line.owner) : fmt::format("{}::{} ({})", line.owner, line.name, line.detail);
}

void refuse_equal(const Registered& first, const Registered& second) {
  if (first.kind == RegisteredKind::chare_class && first.owner == second.owner) {
    throw Error(
        Status::invalid_argument,
        fmt::format("two chare classes have the name {}: messages could not tell them apart. Rename one, or put "
                    "one into a namespace with a name",
                    first.owner));
  }
  throw Error(Status::invalid_argument, fmt::format("{} and {} have the same hash {:#x}: rename one", described(first),
                                                    described(second), first.hash));
}

}  // namespace

bool enroll(Registered& line) noexcept {
  line.following = g_enrolled;
  g_enrolled = &line;
  return true;
}

Registry::Registry(std::vector<Registered*> lines) : lines_(std::move(lines)) {
  // Classes first: two of one name also have entries of one name, and the class is the thing to be told.
  std::sort(lines_.begin(), lines_.end(), [](const Registered* left, const Registered* right) {
    return left->kind != right->kind ? left->kind < right->kind : left->hash < right->hash;
  });
  fingerprint_ = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (i > 0 && lines_[i]->kind == lines_[i - 1]->kind && lines_[i]->hash == lines_[i - 1]->hash) {
      refuse_equal(*lines_[i - 1], *lines_[i]);
    }
    lines_[i]->number = static_cast<std::uint16_t>(i);
    fingerprint_ = (fingerprint_ ^ lines_[i]->hash) * 0x100000001b3u;
  }
  if (lines_.size() > 0xffff) {
    throw Error(
        Status::limit_reached,
        fmt::format("{} chare classes, constructors and entry methods in one program: at most 65535", lines_.size()));
  }
}

const Registry& Registry::of_program() {
  static const Registry registry = [] {
    std::vector<Registered*> lines;
    for (Registered* line = g_enrolled; line != nullptr; line = line->following) lines.push_back(line);
    return Registry(std::move(lines));
  }();
  return registry;
}

}  // namespace brant::detail
