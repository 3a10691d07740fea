#include "models/mpi/checks/message_labels.h"

#include <cstring>

#include <fmt/format.h>

#include "models/mpi/calls.h"
#include "models/mpi/types/signature.h"

namespace brant::mpi {

namespace {

bool is_packed(const Datatype& type) noexcept {
  return type.element() != nullptr && type.element()->handle() == MPI_PACKED;
}

}  // namespace

MessageLabel MessageLabel::of(const TypedBuffer& source) {
  MessageLabel label;
  if (source.bytes() == 0) return label;
  const Signature signature = signature_of(source.type(), source.count());
  label.elements = signature.elements;
  label.hash = signature.hash;
  label.any = is_packed(source.type()) ? 1 : 0;
  const std::string text = signature_text(source.type(), source.count(), sizeof label.text - 1);
  std::memcpy(label.text, text.c_str(), text.size() + 1);
  return label;
}

bool MessageLabels::label(std::uint32_t context) noexcept { return context < Communicator::kContexts; }

void MessageLabels::add(std::uint16_t slot, const MatchKey& key, const MessageLabel& label) noexcept {
  waiting_[{slot, key.context, key.source, key.tag}].push_back(label);
}

std::optional<MessageLabel> MessageLabels::take(std::uint16_t slot, const MatchKey& key) noexcept {
  const auto found = waiting_.find({slot, key.context, key.source, key.tag});
  if (found == waiting_.end()) return std::nullopt;
  const MessageLabel first = found->second.front();
  found->second.pop_front();
  if (found->second.empty()) waiting_.erase(found);
  return first;
}

void MessageLabels::pin(const am::Message& message, std::uint16_t slot, const MatchKey& key) noexcept {
  if (const auto label = take(slot, key)) pinned_[&message] = *label;
}

std::optional<MessageLabel> MessageLabels::take_pinned(const am::Message& message) noexcept {
  const auto found = pinned_.extract(&message);
  return found.empty() ? std::nullopt : std::optional(found.mapped());
}

bool MessageLabels::fits(const std::optional<MessageLabel>& label, const ReceiveRequest& request) noexcept {
  const TypedBuffer& landing = request.landing;
  if (!label || label->elements == 0 || label->any != 0) return true;
  const bool has_room = landing.bytes() != 0;
  if (has_room && is_packed(landing.type())) return true;
  const Signature room = has_room ? signature_of(landing.type(), landing.count()) : Signature{};
  // More elements than there is room for are MPI_ERR_TRUNCATE, which is found without a label, if they are longer too.
  if (label->elements > room.elements) {
    if (request.outcome.error == MPI_ERR_TRUNCATE) return true;
  } else if (signature_of_first(landing.type(), landing.count(), label->elements).hash == label->hash) {
    return true;
  }
  faults_[&request] = fmt::format(
      "a message from rank {} to rank {} of {} with tag {} has other data than its receive describes: it was sent as "
      "{}, and is received as {}. Both have to name the same basic types in the same order",
      request.outcome.source, request.communicator->rank, name_of(*request.communicator), request.outcome.tag,
      label->text, signature_text(landing.type(), landing.count()));
  return false;
}

std::string MessageLabels::fault_of(const ReceiveRequest& request) const {
  const auto found = faults_.find(&request);
  return found != faults_.end() ? found->second : std::string();
}

}  // namespace brant::mpi
