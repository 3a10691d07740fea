#include "bindings/python/lending.h"

#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {

void Lending::add_source(ConstBuffer memory, bool host_only) {
  metas_[count_].host_only = host_only;
  detail::DataSource& source = sources_[count_++];
  source.buffer = memory;
  source.free = {[](void* self, const OpResult&) noexcept {
                   auto& lending = *static_cast<Lending*>(self);
                   if (--lending.pending_ == 0) Process::get().ended(lending);
                 },
                 this};
}

void Lending::list_sources() {
  if (const auto* ours = std::get_if<CallPacker>(&packer_)) {
    for (const Parcel::Content& item : ours->parcel().contents()) {
      if (item.header.type == ItemType::apart) add_source(item.memory(), false);
    }
  } else {
    for (const TypedCall::Data& data : std::get<TypedCall>(packer_).data())
      add_source(data.view.memory(), data.host_only);
  }
  pending_ = count_;
}

std::size_t Lending::bytes_behind(std::size_t before) {
  if (auto* ours = std::get_if<CallPacker>(&packer_)) return before + ours->finish();
  return std::get<TypedCall>(packer_).bytes_behind(before);
}

void Lending::write_behind(std::size_t before, std::byte* message) const noexcept {
  if (const auto* ours = std::get_if<CallPacker>(&packer_)) return ours->write(message + before);
  std::get_if<TypedCall>(&packer_)->write_behind(before, message);
}

void Lending::advance() {
  answer();
  release();
}

}  // namespace brant::python
