#include <fmt/format.h>

#include "brant/base/status.h"
#include "brant/chare/archive.h"
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

void throw_short_message(std::size_t wanted, std::size_t left) {
  throw Error(Status::invalid_argument,
              fmt::format("a message ends too early: {} more bytes wanted, {} left. Does a serialize member read other "
                          "values than it writes?",
                          wanted, left));
}

void throw_damaged_message(const char* what) {
  throw Error(Status::invalid_argument, fmt::format("a message holds {}: it was written by another program", what));
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
