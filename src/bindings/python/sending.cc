#include "bindings/python/sending.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <utility>

#include "bindings/python/channel.h"
#include "bindings/python/errors.h"
#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {
Sending::~Sending() { FramePool::get().give_back(std::move(frame_)); }

void Sending::add(nb::handle object) {
  const std::size_t before = parcel_.contents().size();
  parcel_.add(object, end_.name(), end_.peer());
  if (end_.is_joined() && parcel_.contents()[before].header.type == ItemType::object)
    throw Failure(Status::not_supported,
                  end_.name() + ": an object of type " + nb::type_name(object.type()).c_str() +
                      " would be pickled, and what is not of this job neither sends nor gets pickles: send arrays and "
                      "bytes (json.dumps(...).encode())",
                  end_.name(), end_.peer());
}

/// True if the content is in it too.
bool Sending::write_frame() {
  FrameHeader header;
  header.items = static_cast<std::uint32_t>(parcel_.contents().size());
  const std::size_t description = parcel_.description_bytes();
  if (description > UINT32_MAX) throw Error(Status::not_supported, "a message with that many objects cannot be sent");
  header.description_bytes = static_cast<std::uint32_t>(description);
  const bool apart = sizeof header + description > kFrameBytes;
  const bool within =
      parcel_.is_host() && !apart && parcel_.content_bytes() <= kFrameBytes - sizeof header - description;
  header.flags = static_cast<std::uint16_t>((within ? FrameHeader::kContent : 0) | (apart ? FrameHeader::kApart : 0));
  frame_ = FramePool::get().take();
  if (apart) apart_.resize(description);
  parcel_.write_descriptions(apart ? apart_.data() : frame_.get() + sizeof header);
  std::memcpy(frame_.get(), &header, sizeof header);
  frame_bytes_ = sizeof header + (apart ? 0 : description);
  if (!within) return false;
  frame_bytes_ = static_cast<std::size_t>(parcel_.write_contents(frame_.get() + frame_bytes_) - frame_.get());
  return true;
}

void Sending::post_part(ConstBuffer source, const std::optional<Shape>& shape) {
  if (!outcome_.ok()) return;
  Op& op = ops_.emplace_back();
  (until_ == Moment::delivered ? op.delivered : op.source_free) = {[](void* self, const OpResult& result) noexcept {
                                                                     auto& sending = *static_cast<Sending*>(self);
                                                                     sending.outcome_.join(result);
                                                                     if (--sending.pending_ == 0)
                                                                       Process::get().ended(sending);
                                                                   },
                                                                   this};
  const Status posted = shape ? end_.channel().post_send(source, *shape, op) : end_.channel().post_send(source, op);
  if (posted == Status::in_progress) {
    ++pending_;
    return;
  }
  if (posted != Status::ok && ops_.size() > 1) end_.give_up_order();
  outcome_.join({posted, 0});
}

void Sending::post_raw() {
  if (parcel_.contents().size() != 1 || parcel_.contents().front().header.type == ItemType::object)
    throw Failure(Status::invalid_argument, end_.name() + " is raw: it sends one array, or bytes, at a time",
                  end_.name(), end_.peer());
  post_part(parcel_.contents().front().memory(), parcel_.contents().front().shape);
}

void Sending::post(double timeout) {
  const bool within = !end_.is_raw() && write_frame();
  if (end_.is_raw()) {
    post_raw();
  } else {
    post_part({frame_.get(), frame_bytes_, MemoryKind::host});
  }
  // Whoever sends so much waits for none of it, and would not hear of it there.
  if (outcome_.status == Status::limit_reached && pending_ == 0)
    throw failure(outcome_.status, end_.name(), end_.peer(), "a message was not sent, so many are under way");
  if (!apart_.empty()) post_part({apart_.data(), apart_.size(), MemoryKind::host});
  for (const Parcel::Content& item : parcel_.contents()) {
    if (within || end_.is_raw()) break;
    if (item.header.bytes != 0) post_part(item.memory(), item.shape);
  }
  if (pending_ == 0) {
    let_go();
    return answer();
  }
  if (within) parcel_.clear();  // it has been copied
  hold();
  if (timeout >= 0) set_deadline(timeout);
}

void Sending::let_go() noexcept {
  parcel_.clear();
  FramePool::get().give_back(std::move(frame_));
  apart_ = {};
  ops_.clear();
}

void Sending::advance() {
  if (pending_ != 0) {
    if (is_overdue()) give_up(Status::timed_out);
    return;
  }
  const nb::object keeps = nb::borrow(self());
  answer();
  let_go();
  release();
}

/// What the network has goes on, and the arrays stay held.
void Sending::give_up(Status status) {
  if (has_answer()) return;
  given_up_ = status;
  answer();
}

PyObject* Sending::take() {
  const Status status = given_up_ != Status::ok ? given_up_ : outcome_.status;
  if (status == Status::ok) return Py_NewRef(Py_None);
  set_python_error(failure(status, end_.name(), end_.peer(), "a message was not sent"));
  return nullptr;
}

}  // namespace brant::python
