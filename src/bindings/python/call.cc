#include "bindings/python/call.h"

#include <cstring>

namespace nb = nanobind;

namespace brant::python {
namespace {

const std::string& subject() {
  static const std::string text = "a call of a chare";
  return text;
}

bool has_arrays(nb::handle args) {
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(args.ptr()); ++at) {
    PyObject* argument = PyTuple_GET_ITEM(args.ptr(), at);
    if (PyBytes_CheckExact(argument) != 0 || is_sent_raw(argument)) return true;
  }
  return false;
}

}  // namespace

void CallPacker::add_arguments(nb::handle args, nb::handle kwargs) {
  if (PyTuple_GET_SIZE(args.ptr()) != 0) {
    if (has_arrays(args)) {
      for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(args.ptr()); ++at) add(PyTuple_GET_ITEM(args.ptr(), at));
    } else {
      header_.flags |= CallHeader::kTuple;
      parcel_.add_pickle(args, subject(), Parcel::kNoPeer);
    }
  }
  if (kwargs.is_valid() && !kwargs.is_none() && PyDict_GET_SIZE(kwargs.ptr()) != 0) {
    header_.flags |= CallHeader::kKeywords;
    parcel_.add_pickle(kwargs, subject(), Parcel::kNoPeer);
  }
}

void CallPacker::add(nb::handle object) { parcel_.add(object, subject(), Parcel::kNoPeer); }

std::size_t CallPacker::finish() {
  parcel_.bring_to_host();
  header_.items = static_cast<std::uint32_t>(parcel_.contents().size());
  header_.description_bytes = parcel_.description_bytes();
  header_.content_bytes = parcel_.content_bytes();
  return sizeof header_ + header_.description_bytes + header_.content_bytes;
}

void CallPacker::write(std::byte* to) const noexcept {
  std::memcpy(to, &header_, sizeof header_);
  parcel_.write_contents(parcel_.write_descriptions(to + sizeof header_));
}

CallContents CallContents::read(ReadArchive& archive, const TakeApart& apart) {
  CallContents contents;
  std::memcpy(&contents.header, archive.take(sizeof contents.header), sizeof contents.header);
  const CallHeader& header = contents.header;
  const auto* description = static_cast<const std::byte*>(archive.take(header.description_bytes));
  const auto* content = static_cast<const std::byte*>(archive.take(header.content_bytes));
  contents.objects =
      unpack({description, header.description_bytes}, header.items, {content, header.content_bytes}, apart);
  return contents;
}

std::pair<nb::tuple, nb::object> CallContents::arguments() const {
  nb::object keywords = nb::none();
  std::size_t positional = objects.size();
  if ((header.flags & CallHeader::kKeywords) != 0 && positional != 0) keywords = objects[--positional];
  if ((header.flags & CallHeader::kTuple) != 0 && positional == 1) return {nb::cast<nb::tuple>(objects[0]), keywords};
  nb::object args = nb::steal(PyList_GetSlice(objects.ptr(), 0, static_cast<Py_ssize_t>(positional)));
  return {nb::tuple(args), keywords};
}

}  // namespace brant::python
