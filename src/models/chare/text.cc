#include <fmt/format.h>

#include "brant/chare/index.h"

namespace brant::detail {

std::string index_text(const ElementKey& key, int dimensions, std::size_t bytes) {
  if (dimensions > 0) {
    std::string text = fmt::format("[{}", key.coordinate(0));
    for (int i = 1; i < dimensions; ++i) text += fmt::format(",{}", key.coordinate(i));
    return text + "]";
  }
  if (bytes <= sizeof(std::uint64_t)) return fmt::format("[{}]", key.word[0]);
  std::string text = "[0x";
  for (std::size_t i = 0; i < bytes; ++i) {
    text += fmt::format("{:02x}", reinterpret_cast<const unsigned char*>(key.word.data())[i]);
  }
  return text + "]";
}

}  // namespace brant::detail
