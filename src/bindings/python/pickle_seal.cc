#include "bindings/python/pickle_seal.h"

#include <optional>
#include <span>

#include "brant/core/job_seal.h"

namespace brant::python {
namespace {

/// Never destroyed, as Process. Empty until the Runtime has started.
std::optional<JobSeal>& seal() {
  static auto* const only = new std::optional<JobSeal>;
  return *only;
}

}  // namespace

void make_pickle_seal(Runtime& runtime) { seal().emplace(runtime, "pickles"); }

std::string_view pickle_seal() {
  if (!seal()) return {};
  const std::span<const std::byte> bytes = seal()->bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool may_be_read(const Item& item) {
  if (item.header.type != ItemType::object) return true;
  return seal() && seal()->fits(std::as_bytes(std::span(item.format)));
}

}  // namespace brant::python
