#include "bindings/python/parcel.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <utility>

#include "bindings/python/array.h"
#include "bindings/python/make.h"
#include "bindings/python/pickle_seal.h"
#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

constexpr std::size_t kDimsMax = 255;
constexpr std::size_t kFormatMax = 65535;

}  // namespace

ConstBuffer Parcel::Content::memory() const noexcept {
  if (packed != nullptr) return {packed.get(), header.bytes, MemoryKind::host};
  return shape ? view.extent() : view.memory();
}

Parcel::Content& Parcel::add_content(ItemType type) {
  Content& content = contents_.emplace_back();
  content.header.type = type;
  return content;
}

void Parcel::add(nb::handle object, const std::string& subject, int peer) {
  if (PyBytes_CheckExact(object.ptr()) != 0) {
    add_array(object, ItemType::bytes);
  } else if (!is_sent_raw(object.ptr()) || !add_array(object, ItemType::array)) {
    add_pickle(object, subject, peer);
  }
}

bool Parcel::add_array(nb::handle object, ItemType type) {
  Content& content = add_content(type);
  View& view = content.view;
  if (!view.take(object.ptr(), View::Access::read, on_device_, behind_)) {
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
  if (view.order() == Order::strided && !view.is_host()) {
    content.shape = view.shape_in(Order::c);
    content.header.order = Order::c;
  } else if (view.order() == Order::strided) {
    content.packed = std::make_unique_for_overwrite<std::byte[]>(view.bytes());
    view.pack(content.packed.get());
    content.header.order = Order::c;
  }
  return true;
}

void Parcel::add_pickle(nb::handle object, const std::string& subject, int peer) {
  static const nb::handle flatten = python_function("brant._objects", "flatten");
  const nb::tuple parts = nb::cast<nb::tuple>(flatten(object, subject, peer));
  const auto buffers = nb::cast<nb::list>(parts[1]);
  if (buffers.size() > 65535)
    throw Error(Status::not_supported, "an object with more than 65535 arrays inside cannot be sent");
  add_array(parts[0], ItemType::object);
  contents_.back().header.buffers = static_cast<std::uint16_t>(buffers.size());
  contents_.back().header.format_bytes = static_cast<std::uint16_t>(pickle_seal().size());
  for (const nb::handle buffer : buffers) {
    if (!add_array(buffer, ItemType::buffer)) throw Error(Status::internal, "a buffer of a pickle cannot be read");
  }
}

std::size_t Parcel::description_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const Content& item : contents_) bytes += python::description_bytes(item.header);
  return bytes;
}

std::size_t Parcel::content_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const Content& item : contents_) bytes += item.header.type != ItemType::apart ? item.header.bytes : 0;
  return bytes;
}

bool Parcel::is_host() const noexcept {
  for (const Content& item : contents_) {
    if (!item.view.is_host()) return false;
  }
  return true;
}

std::byte* Parcel::write_descriptions(std::byte* to) const noexcept {
  for (const Content& item : contents_) {
    const bool array = is_array(item.header.type);
    const bool pickle = item.header.type == ItemType::object;
    to = write_description(item.header,
                           array    ? item.view.format()
                           : pickle ? pickle_seal()
                                    : std::string_view(),
                           array ? item.view.shape() : std::span<const Py_ssize_t>(), to);
  }
  return to;
}

bool Parcel::set_apart(std::size_t most, bool all) noexcept {
  std::size_t set = 0;
  for (Content& item : contents_) {
    if (set == most) break;
    if (item.header.type != ItemType::array || (item.view.is_host() && !all) || item.header.bytes == 0) continue;
    item.header.type = ItemType::apart;
    ++set;
  }
  return set != 0;
}

void Parcel::bring_to_host() {
  for (Content& item : contents_) {
    if (item.view.is_host() || item.packed != nullptr || item.header.type == ItemType::apart) continue;
    auto copy = std::make_unique_for_overwrite<std::byte[]>(item.header.bytes);
    if (item.header.bytes != 0)
      Process::get().runtime().copy(Buffer(copy.get(), item.header.bytes, MemoryKind::host), item.memory());
    item.packed = std::move(copy);
  }
}

std::byte* Parcel::write_contents(std::byte* to) const noexcept {
  for (const Content& item : contents_) {
    if (item.header.bytes == 0 || item.header.type == ItemType::apart) continue;
    std::memcpy(to, item.memory().data, item.header.bytes);
    to += item.header.bytes;
  }
  return to;
}

Landing make_landing(const Item& item) {
  Landing landing;
  const auto bytes = static_cast<Py_ssize_t>(item.header.bytes);
  if (item.header.type == ItemType::array) {
    const bool fortran = item.header.order == Order::fortran;
    const MemoryKind kind = landing_kind(item.header.kind);
    static const nb::handle empty_like = python_function("brant._arrays", "empty_like");
    landing.made = kind == MemoryKind::host
                       ? empty_like(nb::str(item.format.data(), item.format.size()), shape_tuple(item.shape), fortran,
                                    item.header.item_bytes)
                       : new_array(item.shape, std::string(item.format), item.header.item_bytes, kind, fortran);
    landing.view = std::make_unique<View>();
    if (!landing.view->take(landing.made.ptr(), View::Access::write))
      throw Error(Status::internal, "a new array cannot be written");
    landing.memory = landing.view->memory();
    return landing;
  }
  const bool is_buffer = item.header.type == ItemType::buffer;
  landing.made =
      nb::steal(is_buffer ? PyByteArray_FromStringAndSize(nullptr, bytes) : PyBytes_FromStringAndSize(nullptr, bytes));
  if (!landing.made.is_valid()) throw nb::python_error();
  char* data = is_buffer ? PyByteArray_AsString(landing.made.ptr()) : PyBytes_AsString(landing.made.ptr());
  landing.memory = {data, item.header.bytes, MemoryKind::host};
  return landing;
}

nb::list objects_of(const std::vector<Item>& items, const std::vector<Landing>& landings) {
  static const nb::handle restore = python_function("brant._objects", "restore");
  nb::list objects;
  for (std::size_t at = 0; at < items.size(); ++at) {
    if (items[at].header.type != ItemType::object) {
      objects.append(landings[at].made);
      continue;
    }
    nb::list buffers;
    const std::size_t own = items[at].header.buffers;
    for (std::size_t next = at + 1; next <= at + own && next < landings.size(); ++next)
      buffers.append(landings[next].made);
    objects.append(restore(landings[at].made, buffers));
    at += own;
  }
  return objects;
}

nb::list unpack(std::span<const std::byte> description, std::size_t count, std::span<const std::byte> content,
                const TakeApart& apart) {
  std::vector<Item> items;
  if (!read_items(description, count, items)) throw Error(Status::invalid_argument, "a message contradicts itself");
  std::vector<Landing> landings;
  landings.reserve(items.size());
  for (const Item& item : items) {
    if (!may_be_read(item)) throw Error(Status::peer_rejected, kUnsealed);
    if (item.header.type == ItemType::apart) {
      if (!apart) throw Error(Status::invalid_argument, "a message contradicts itself");
      landings.emplace_back().made = apart(item);
      continue;
    }
    if (item.header.bytes > content.size()) throw Error(Status::invalid_argument, "a message contradicts itself");
    const Landing& landing = landings.emplace_back(make_landing(item));
    const auto part = content.first(item.header.bytes);
    content = content.subspan(part.size());
    if (part.empty()) continue;
    if (landing.view == nullptr || landing.view->is_host()) {
      std::memcpy(landing.memory.data, part.data(), part.size());
    } else {
      Process::get().runtime().copy(landing.memory, ConstBuffer(part.data(), part.size(), MemoryKind::host));
    }
  }
  return objects_of(items, landings);
}

}  // namespace brant::python
