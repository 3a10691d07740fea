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

void Sending::check_raw() const {
  if (parcel_.contents().size() != 1 || parcel_.contents().front().header.type == ItemType::object)
    throw Failure(Status::invalid_argument, end_.name() + " is raw: it sends one array, or bytes, at a time",
                  end_.name(), end_.peer());
}

void Sending::post() {
  if (!end_.is_raw()) post_part({frame_.get(), frame_bytes_, MemoryKind::host});
  if (!apart_.empty()) post_part({apart_.data(), apart_.size(), MemoryKind::host});
  for (const Parcel::Content& item : parcel_.contents()) {
    if (within_) break;
    if (item.header.bytes != 0 || end_.is_raw()) post_part(item.memory(), item.shape);
  }
  if (within_) parcel_.clear();  // it has been copied
}

void Sending::start(double timeout) {
  end_.is_raw() ? check_raw() : static_cast<void>(within_ = write_frame());
  if (!producers_.are_idle() || end_.has_line()) {
    producers_.start(*this);
    end_.stand_in_line(*this);
    stage_ = Stage::in_line;
  } else {
    post();
    // Whoever sends so much waits for none of it, and would not hear of it there.
    if (outcome_.status == Status::limit_reached && pending_ == 0)
      throw failure(outcome_.status, end_.name(), end_.peer(), "a message was not sent, so many are under way");
    if (pending_ == 0) {
      let_go();
      return answer();
    }
  }
  hold();
  if (timeout >= 0) set_deadline(timeout);
}

void Sending::leave() {
  stage_ = Stage::left;
  outcome_.join({end_.is_out_of_order() ? Status::peer_rejected : producers_.status(), 0});
  if (outcome_.ok()) post();
  if (outcome_.status == Status::limit_reached && pending_ == 0) end_.give_up_order();  // nobody may be waiting for it
  if (pending_ == 0) Process::get().ended(*this);
}

void Sending::let_go() noexcept {
  parcel_.clear();
  FramePool::get().give_back(std::move(frame_));
  apart_ = {};
  ops_.clear();
  producers_.drop();
}

void Sending::advance() {
  if (stage_ == Stage::in_line) {
    if (is_overdue()) return give_up(Status::timed_out);
    return end_.move_line();
  }
  if (pending_ != 0) {
    if (is_overdue()) give_up(Status::timed_out);
    return;
  }
  const nb::object keeps = nb::borrow(self());
  answer();
  let_go();
  release();
}

/// What the network has goes on, and the arrays stay held. What has not left yet does not leave.
void Sending::give_up(Status status) {
  if (has_answer()) return;
  given_up_ = status;
  if (stage_ == Stage::in_line) {
    stage_ = Stage::withdrawn;
    producers_.drop();
    end_.step_out(*this);
    Process::get().ended(*this);  // which lets it go
  }
  answer();
}

PyObject* Sending::take() {
  const Status status = given_up_ != Status::ok ? given_up_ : outcome_.status;
  if (status == Status::ok) return Py_NewRef(Py_None);
  set_python_error(failure(status, end_.name(), end_.peer(), "a message was not sent"));
  return nullptr;
}

}  // namespace brant::python
