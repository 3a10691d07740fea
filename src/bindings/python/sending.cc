#include "bindings/python/sending.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <utility>

#include "bindings/python/channel.h"
#include "bindings/python/errors.h"
#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

constexpr std::size_t kDimsMax = 255;
constexpr std::size_t kFormatMax = 65535;

}  // namespace

Sending::~Sending() { FramePool::get().give_back(std::move(frame_)); }

ConstBuffer Sending::Content::memory() const noexcept {
  if (packed != nullptr) return {packed.get(), header.bytes, MemoryKind::host};
  return view.memory();
}

Sending::Content& Sending::add_content(ItemType type) {
  Content& content = contents_.emplace_back();
  content.header.type = type;
  return content;
}

void Sending::add(nb::handle object) {
  if (PyBytes_CheckExact(object.ptr()) != 0) {
    add_array(object, ItemType::bytes);
  } else if (!is_sent_raw(object.ptr()) || !add_array(object, ItemType::array)) {
    add_pickle(object);
  }
}

bool Sending::add_array(nb::handle object, ItemType type) {
  Content& content = add_content(type);
  View& view = content.view;
  if (!view.take(object.ptr(), View::Access::read)) {
    contents_.pop_back();
    return false;
  }
  if (view.shape().size() > kDimsMax || view.format().size() > kFormatMax)
    throw Error(Status::not_supported,
                "an array of more than 255 dimensions, or with a description of 64 KB, cannot be sent");
  content.header.order = view.order();
  content.header.kind = view.is_host()                      ? MemoryKind::host
                        : view.kind() == MemoryKind::detect ? MemoryKind::cuda
                                                            : view.kind();
  content.header.item_bytes = view.item_bytes();
  content.header.bytes = view.bytes();
  if (type == ItemType::array) {
    content.header.dims = static_cast<std::uint8_t>(view.shape().size());
    content.header.format_bytes = static_cast<std::uint16_t>(view.format().size());
  }
  if (view.order() == Order::strided) {
    content.packed = std::make_unique_for_overwrite<std::byte[]>(view.bytes());
    view.pack(content.packed.get());
    content.header.order = Order::c;
  }
  return true;
}

void Sending::add_pickle(nb::handle object) {
  const nb::tuple parts =
      nb::cast<nb::tuple>(nb::module_::import_("brant._objects").attr("flatten")(object, end_.name(), end_.peer()));
  const auto buffers = nb::cast<nb::list>(parts[1]);
  if (buffers.size() > 65535)
    throw Error(Status::not_supported, "an object with more than 65535 arrays inside cannot be sent");
  add_array(parts[0], ItemType::object);
  contents_.back().header.buffers = static_cast<std::uint16_t>(buffers.size());
  for (const nb::handle buffer : buffers) {
    if (!add_array(buffer, ItemType::buffer)) throw Error(Status::internal, "a buffer of a pickle cannot be read");
  }
}

/// True if the content is in it too.
bool Sending::write_frame() {
  FrameHeader header;
  header.items = static_cast<std::uint32_t>(contents_.size());
  std::size_t description = 0;
  std::size_t content = 0;
  bool all_host = true;
  for (const Content& item : contents_) {
    description += description_bytes(item.header);
    content += item.header.bytes;
    all_host = all_host && item.view.is_host();
  }
  if (description > UINT32_MAX) throw Error(Status::not_supported, "a message with that many objects cannot be sent");
  header.description_bytes = static_cast<std::uint32_t>(description);
  const bool apart = sizeof header + description > kFrameBytes;
  const bool within = all_host && !apart && content <= kFrameBytes - sizeof header - description;
  header.flags = static_cast<std::uint16_t>((within ? FrameHeader::kContent : 0) | (apart ? FrameHeader::kApart : 0));
  frame_ = FramePool::get().take();
  if (apart) apart_.resize(description);
  std::byte* at = apart ? apart_.data() : frame_.get() + sizeof header;
  for (const Content& item : contents_) {
    const bool is_array = item.header.type == ItemType::array;
    at = write_description(item.header, is_array ? item.view.format() : std::string_view(),
                           is_array ? item.view.shape() : std::span<const Py_ssize_t>(), at);
  }
  std::memcpy(frame_.get(), &header, sizeof header);
  frame_bytes_ = sizeof header + (apart ? 0 : description);
  if (!within) return false;
  for (const Content& item : contents_) {
    if (item.header.bytes != 0) std::memcpy(frame_.get() + frame_bytes_, item.memory().data, item.header.bytes);
    frame_bytes_ += item.header.bytes;
  }
  return true;
}

void Sending::post_part(ConstBuffer source) {
  if (!outcome_.ok()) return;
  Op& op = ops_.emplace_back();
  (until_ == Moment::delivered ? op.delivered : op.source_free) = {[](void* self, const OpResult& result) noexcept {
                                                                     auto& sending = *static_cast<Sending*>(self);
                                                                     sending.outcome_.join(result);
                                                                     if (--sending.pending_ == 0)
                                                                       Process::get().ended(sending);
                                                                   },
                                                                   this};
  const Status posted = end_.channel().post_send(source, op);
  if (posted == Status::in_progress) {
    ++pending_;
    return;
  }
  if (posted != Status::ok && ops_.size() > 1) end_.give_up_order();
  outcome_.join({posted, 0});
}

void Sending::post_raw() {
  if (contents_.size() != 1 || contents_.front().header.type == ItemType::object)
    throw Failure(Status::invalid_argument, end_.name() + " is raw: it sends one array, or bytes, at a time",
                  end_.name(), end_.peer());
  post_part(contents_.front().memory());
}

void Sending::post(double timeout) {
  const bool within = !end_.is_raw() && write_frame();
  if (end_.is_raw()) {
    post_raw();
  } else {
    post_part({frame_.get(), frame_bytes_, MemoryKind::host});
  }
  if (!apart_.empty()) post_part({apart_.data(), apart_.size(), MemoryKind::host});
  for (const Content& item : contents_) {
    if (within || end_.is_raw()) break;
    if (item.header.bytes != 0) post_part(item.memory());
  }
  if (pending_ == 0) {
    let_go();
    return answer();
  }
  if (within) contents_.clear();  // it has been copied
  hold();
  if (timeout >= 0) set_deadline(timeout);
}

void Sending::let_go() noexcept {
  contents_.clear();
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
