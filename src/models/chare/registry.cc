#include "models/chare/registry.h"

#include <algorithm>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::detail {
namespace {

constexpr std::size_t kLinesMax = kNoNumber;

constinit Registered* g_enrolled = nullptr;
constinit Registered g_absent{RegisteredKind::absent, 0, "", "", ""};  // has a number, and is not here

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

[[noreturn]] void refuse_so_many(std::size_t count) {
  throw Error(Status::limit_reached, fmt::format("{} chare classes, constructors and entry methods in one program: at "
                                                 "most {}",
                                                 count, kLinesMax));
}

}  // namespace

bool enroll(Registered& line) noexcept {
  line.following = g_enrolled;
  g_enrolled = &line;
  return true;
}

const Registered* find_enrolled(RegisteredKind kind, std::uint64_t hash) noexcept {
  for (const Registered* line = g_enrolled; line != nullptr; line = line->following) {
    if (line->kind == kind && line->hash == hash) return line;
  }
  return nullptr;
}

void throw_without_number(const Registered& line) {
  throw Error(Status::invalid_argument,
              fmt::format("{} was enrolled after Chares was made and has no number yet: co_await Chares::enroll_late() "
                          "after its library was opened, and call it then",
                          described(line)));
}

Registry::Registry(std::vector<Registered*> lines) : lines_(std::move(lines)), size_(lines_.size()) {
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
  if (size_ > kLinesMax) refuse_so_many(size_);
}

Registry& Registry::of_program() {
  static Registry registry = [] {
    std::vector<Registered*> lines;
    for (Registered* line = g_enrolled; line != nullptr; line = line->following) lines.push_back(line);
    Registry made(std::move(lines));
    made.newest_ = g_enrolled;
    return made;
  }();
  return registry;
}

Registered* Registry::line_of(RegisteredKind kind, std::uint64_t hash) const noexcept {
  const auto found =
      std::ranges::find_if(lines_, [&](const Registered* line) { return line->kind == kind && line->hash == hash; });
  return found != lines_.end() ? *found : nullptr;
}

std::vector<LateName> Registry::without_number() {
  std::vector<LateName> names;
  for (Registered* line = g_enrolled; line != newest_; line = line->following) {
    if (line->number != kNoNumber) continue;
    const std::string text = described(*line);
    if (const Registered* known = line_of(line->kind, line->hash)) {
      if (described(*known) != text) refuse_equal(*known, *line);
      line->number = known->number;
      continue;
    }
    const bool twice = std::ranges::any_of(
        names, [&](const LateName& name) { return name.kind == line->kind && name.hash == line->hash; });
    if (!twice) names.push_back({line->kind, line->hash, text});
  }
  return names;
}

std::uint16_t Registry::give_number(const LateName& name) {
  if (name.kind >= RegisteredKind::absent) throw Error(Status::invalid_argument, "a name of no kind wants a number");
  if (const Registered* known = line_of(name.kind, name.hash)) return known->number;
  if (size_ + given_.size() >= kLinesMax) refuse_so_many(size_ + given_.size() + 1);
  const auto number = static_cast<std::uint16_t>(size_ + given_.size());
  const auto [place, is_new] = given_.try_emplace({name.kind, name.hash}, Given{number, name.text});
  if (!is_new && place->second.text != name.text) {
    throw Error(Status::invalid_argument, fmt::format("{} and {} have the same hash {:#x}: rename one",
                                                      place->second.text, name.text, name.hash));
  }
  return place->second.number;
}

void Registry::admit(const LateNumber& given) {
  if (given.number < size_ || given.number == kNoNumber) return;
  for (Registered* line = g_enrolled; line != newest_; line = line->following) {
    if (line->kind != given.kind || line->hash != given.hash) continue;
    line->number = given.number;
    if (given.number >= lines_.size()) lines_.resize(given.number + std::size_t{1}, &g_absent);
    lines_[given.number] = line;
  }
}

}  // namespace brant::detail
