#include "models/chare/enrolment.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "models/chare/arrivals.h"

namespace brant::detail {
namespace {

/// The class of single chares is in their collection's number.
std::uint16_t class_of_single(std::uint32_t collection) noexcept {
  return (collection & kSinglesBit) != 0 ? static_cast<std::uint16_t>(collection & 0xffff) : std::uint16_t{0};
}

}  // namespace

void Enrolment::begin(const Callback<>& to) {
  const std::vector<LateName> names = context_.registry.without_number();
  if (names.empty()) return to();
  asked_.push_back(to);
  if (context_.rank == 0) return answer(0, names);
  sending_.send_value(0, MessageKind::numbers_asked, 0, names);
}

void Enrolment::answer(std::int32_t to, const std::vector<LateName>& names) {
  std::vector<LateNumber> numbers;
  numbers.reserve(names.size());
  for (const LateName& name : names) numbers.push_back({name.kind, name.hash, context_.registry.give_number(name)});
  if (to == context_.rank) return take_answer(numbers);
  sending_.send_value(to, MessageKind::numbers_given, 0, numbers);
}

void Enrolment::take_answer(const std::vector<LateNumber>& numbers) {
  for (const LateNumber& given : numbers) context_.registry.admit(given);
  release();
  if (asked_.empty()) return;
  const Callback<> to = asked_.front();
  asked_.pop_front();
  to();
}

bool Enrolment::must_wait(const am::Message& message, const Envelope& envelope) const noexcept {
  const Registry& registry = context_.registry;
  const std::uint16_t named = std::max(envelope.number, class_of_single(envelope.collection));
  if (named >= registry.size() && registry.is_awaited(named)) [[unlikely]]
    return true;
  if (envelope.kind != MessageKind::create) return false;
  std::uint16_t numbers[2];  // class and constructor; `is_sound` has checked that they are there
  std::memcpy(numbers, message.data + sizeof(PlacementRule), sizeof(numbers));
  PlacementRule rule;
  std::memcpy(static_cast<void*>(&rule), message.data, sizeof(rule));
  return registry.is_awaited(numbers[0]) || registry.is_awaited(numbers[1]) || registry.is_awaited(rule.function);
}

void Enrolment::park(am::Message& message) {
  set_notes(message, {});
  if (parked_count_ >= kParkedMax || message.bytes > kParkedBytesMax - parked_bytes_) {
    messages_.drop(message);
    throw Error(Status::limit_reached,
                fmt::format("{} messages ({} bytes) wait already for chare classes and entry methods that nobody has "
                            "enrolled here: open the library that has them on this rank too, and co_await "
                            "Chares::enroll_late()",
                            parked_count_, parked_bytes_));
  }
  parked_.push_back(message);
  ++parked_count_;
  parked_bytes_ += message.bytes;
}

std::string Enrolment::describe() const {
  if (parked_.empty()) return {};
  return fmt::format(
      "{} messages on rank {} (the first from rank {}) wait for chare classes and entry methods that nobody has "
      "enrolled here: open the library that has them on this rank too, and co_await Chares::enroll_late()",
      parked_count_, context_.rank, parked_.front()->wire.source);
}

void Enrolment::let_all_go() noexcept {
  while (am::Message* message = parked_.pop_front()) messages_.let_go(*message);
}

/// What still names something that is not here waits on, in its order.
void Enrolment::release() {
  am::MessageList came = std::exchange(parked_, {});
  parked_count_ = parked_bytes_ = 0;
  while (am::Message* message = came.pop_front()) {
    if (!arrivals_.drop_if_damaged(*message)) arrivals_.take_in(*message);
  }
}

}  // namespace brant::detail
