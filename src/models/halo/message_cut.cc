#include "models/halo/message_cut.h"

#include <algorithm>
#include <utility>

namespace brant::halo {
namespace {

constexpr std::size_t kGroupsMax = 4;

using Links = std::span<const Link>;

std::size_t bytes_of(Links links) noexcept {
  std::size_t sum = 0;
  for (const Link& link : links) sum += link.bytes;
  return sum;
}

/// A group ends when it has so many bytes, and as many are left for the others: none of them is a small rest.
std::vector<Links> groups_of(Links links, std::size_t bytes_min) {
  std::vector<Links> groups;
  std::size_t rest = bytes_of(links);
  const std::size_t enough = std::max(bytes_min, rest / kGroupsMax);
  std::size_t first = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < links.size(); ++i) {
    bytes += links[i].bytes;
    rest -= links[i].bytes;
    if (i + 1 != links.size() && (bytes < enough || rest < enough)) continue;
    groups.push_back(links.subspan(first, i + 1 - first));
    first = i + 1;
    bytes = 0;
  }
  return groups;
}

}  // namespace

std::vector<Links> cut_into_messages(const std::vector<Link>& links, const MessageCut& cut) {
  std::vector<std::pair<std::size_t, Links>> numbered;  // by which of its rank's it is
  for (auto first = links.begin(); first != links.end();) {
    const auto last = cut.per == HaloMessages::per_process
                          ? std::find_if(first, links.end(), [&](const Link& link) { return link.rank != first->rank; })
                          : first + 1;
    std::size_t number = 0;
    for (const Links& group : groups_of(Links(first, last), cut.group_bytes)) numbered.emplace_back(number++, group);
    first = last;
  }
  std::ranges::stable_sort(numbered, {}, &std::pair<std::size_t, Links>::first);
  std::vector<Links> messages;
  for (const auto& [number, message] : numbered) messages.push_back(message);
  return messages;
}

}  // namespace brant::halo
