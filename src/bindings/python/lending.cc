#include "bindings/python/lending.h"

#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {

void Lending::list_sources() {
  for (const Parcel::Content& item : packer_.parcel().contents()) {
    if (item.header.type != ItemType::apart) continue;
    detail::DataSource& source = sources_[count_++];
    source.buffer = item.memory();
    source.free = {[](void* self, const OpResult&) noexcept {
                     auto& lending = *static_cast<Lending*>(self);
                     if (--lending.pending_ == 0) Process::get().ended(lending);
                   },
                   this};
  }
  pending_ = count_;
}

void Lending::advance() {
  answer();
  release();
}

}  // namespace brant::python
