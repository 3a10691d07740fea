#include <fmt/format.h>

#include "brant/base/status.h"
#include "brant/chare/index.h"
#include "models/chare/error_text.h"

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

std::string text_of(const std::exception_ptr& error, Status& status) {
  status = Status::internal;
  try {
    std::rethrow_exception(error);
  } catch (const Error& thrown) {
    status = thrown.status();
    return thrown.what();
  } catch (const std::exception& thrown) {
    return thrown.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace brant::detail
