#include "base/random_bytes.h"

#include <sys/random.h>
#include <sys/types.h>

#include <string>

#include "brant/base/status.h"

namespace brant {

void fill_with_random_bytes(std::span<std::byte> bytes, const char* what) {
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error(Status::io_error, std::string("the kernel gave no random bytes for ") + what);
}

}  // namespace brant
