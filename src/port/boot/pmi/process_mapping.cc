#include "port/boot/pmi/process_mapping.h"

#include <array>
#include <charconv>
#include <cstddef>

namespace brant::port::pmi {

namespace {

struct Block {
  int first = 0;
  int hosts = 0;
  int each = 0;
};

/// Takes "(0,2,4)" off the text.
bool take_block(std::string_view& text, Block& block) {
  std::array<int, 3> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (text.empty() || text.front() != (i == 0 ? '(' : ',')) return false;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), numbers[i]);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  if (text.empty() || text.front() != ')') return false;
  text.remove_prefix(1);
  block = {numbers[0], numbers[1], numbers[2]};
  return block.first >= 0 && block.hosts > 0 && block.each > 0;
}

}  // namespace

std::vector<int> hosts_of_ranks(std::string_view text, int size) {
  constexpr std::string_view kHead = "(vector";
  if (!text.starts_with(kHead) || !text.ends_with(')')) return {};
  text = text.substr(kHead.size(), text.size() - kHead.size() - 1);
  std::vector<Block> blocks;
  while (!text.empty()) {
    Block block;
    if (text.front() != ',') return {};
    text.remove_prefix(1);
    if (!take_block(text, block)) return {};
    blocks.push_back(block);
  }
  std::vector<int> hosts;
  const auto all = static_cast<std::size_t>(size);
  while (!blocks.empty() && hosts.size() < all) {
    for (const Block& block : blocks)
      for (int host = 0; host < block.hosts && hosts.size() < all; ++host)
        for (int i = 0; i < block.each && hosts.size() < all; ++i) hosts.push_back(block.first + host);
  }
  return hosts;
}

}  // namespace brant::port::pmi
