#include "cli/explain/place.h"

#include <charconv>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::cli::explain {
namespace {

[[noreturn]] void refuse(const std::string& text) {
  throw Error(Status::invalid_argument, fmt::format("'{}' is no place for a buffer: use host (of Runtime::allocate), "
                                                    "heap (of malloc), pinned, cuda, cuda-managed or emulated; devices "
                                                    "with their number, as cuda:1",
                                                    text));
}

}  // namespace

Place parse_place(const std::string& text) {
  Place place;
  if (text == "heap") return {.kind = MemoryKind::host, .is_heap = true};
  const std::size_t colon = text.find(':');
  if (!memory_kind_from_name(text.substr(0, colon), place.kind) || place.kind == MemoryKind::detect) refuse(text);
  if (colon == std::string::npos) return place;
  if (host_accessible(place.kind)) refuse(text);
  const char* const end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data() + colon + 1, end, place.ordinal);
  if (fault != std::errc{} || rest != end || place.ordinal < 0) refuse(text);
  return place;
}

std::string place_name(const Place& place) {
  const std::string_view kind = place.is_heap ? "heap" : memory_kind_name(place.kind);
  return place.ordinal < 0 ? std::string(kind) : fmt::format("{}:{}", kind, place.ordinal);
}

}  // namespace brant::cli::explain
