#include "models/mpi/files/data_representation.h"

#include <cstring>

#include "models/mpi/call_error.h"
#include "models/mpi/types/constructors.h"
#include "models/mpi/types/external.h"
#include "models/mpi/types/pack.h"

namespace brant::mpi {

namespace {

DatatypeRef taken(Made made) {
  require(made.ok(), static_cast<int>(made.fault.error), "a datatype has no form in the file: {}", made.fault.text);
  return std::move(made.type);
}

/// The same type made of elements of other sizes: `bytes_of(element)` in the file. Displacements that are counted in
/// bytes stay, as those of types that the standard calls not portable.
template <typename BytesOf>
DatatypeRef with_elements(Datatype& type, const BytesOf& bytes_of) {
  if (type.predefined()) {
    const Count bytes = bytes_of(type);
    if (bytes == type.size() && bytes == type.extent()) return DatatypeRef(&type);
    return taken(contiguous_type(bytes, find_datatype(MPI_BYTE)));
  }
  Construction construction = type.construction();
  for (DatatypeRef& part : construction.types) part = with_elements(*part, bytes_of);
  return taken(rebuilt_type(construction));
}

class External32 final : public DataRepresentation {
 public:
  External32() : DataRepresentation("external32") {}

  [[nodiscard]] bool converts() const noexcept override { return true; }
  [[nodiscard]] DatatypeRef in_file(Datatype& type) const override {
    return with_elements(type, [](const Datatype& element) { return external_bytes(element, 1); });
  }
  void to_file(const void* user, Count count, Datatype& type, std::span<std::byte> to) const override {
    require(pack_external(user, count, type, to), MPI_ERR_CONVERSION,
            "a number among {} elements of the datatype {} is too large for its size in external32", count,
            type.name());
  }
  void from_file(std::span<const std::byte> from, void* user, Count count, Datatype& type) const override {
    unpack_external(from, user, count, type);
  }
};

class ProgramRepresentation final : public DataRepresentation {
 public:
  ProgramRepresentation(std::string name, const ProgramConversions& how)
      : DataRepresentation(std::move(name)), how_(how) {}

  [[nodiscard]] bool converts() const noexcept override { return true; }
  [[nodiscard]] DatatypeRef in_file(Datatype& type) const override {
    return with_elements(type, [this](const Datatype& element) { return bytes_of(element); });
  }
  void to_file(const void* user, Count count, Datatype& type, std::span<std::byte> to) const override {
    if (how_.write == nullptr && how_.write_large == nullptr)
      return pack(user, count, type, 0, to.first(native_bytes(type, count, to.size())));
    const Conversion conversion{how_.write, how_.write_large, "written"};
    convert(conversion, const_cast<void*>(user), count, type, to.data());
  }
  void from_file(std::span<const std::byte> from, void* user, Count count, Datatype& type) const override {
    if (how_.read == nullptr && how_.read_large == nullptr)
      return unpack(from.first(native_bytes(type, count, from.size())), 0, user, count, type);
    const Conversion conversion{how_.read, how_.read_large, "read"};
    convert(conversion, user, count, type, const_cast<std::byte*>(from.data()));
  }

 private:
  struct Conversion {
    MPI_Datarep_conversion_function* small;
    MPI_Datarep_conversion_function_c* large;
    const char* done;
  };

  [[nodiscard]] Count bytes_of(const Datatype& element) const {
    MPI_Aint bytes = 0;
    const int error = how_.extent(element.handle(), &bytes, how_.extra_state);
    require(error == MPI_SUCCESS && bytes >= 0, MPI_ERR_CONVERSION,
            "the program's function of the data representation '{}' gave the error {} and the extent {} for {}", name(),
            error, bytes, element.name());
    return bytes;
  }
  /// Without a conversion data is as in memory, so elements must have the same size in the file.
  [[nodiscard]] std::size_t native_bytes(const Datatype& type, Count count, std::size_t in_file) const {
    const auto bytes = static_cast<std::size_t>(type.bytes_of(count));
    require(bytes == in_file, MPI_ERR_CONVERSION,
            "the data representation '{}' has no conversion, and {} bytes in the file for {} in memory", name(),
            in_file, bytes);
    return bytes;
  }
  void convert(const Conversion& conversion, void* user, Count count, const Datatype& type, std::byte* file) const {
    const int error = conversion.large != nullptr
                          ? conversion.large(user, type.handle(), count, file, 0, how_.extra_state)
                          : conversion.small(user, type.handle(), static_cast<int>(count), file, 0, how_.extra_state);
    require(error == MPI_SUCCESS, MPI_ERR_CONVERSION,
            "the program's function that converts what is {} in the data representation '{}' gave the error {}",
            conversion.done, name(), error);
  }

  const ProgramConversions how_;
};

}  // namespace

DataRepresentationRef make_program_representation(std::string name, const ProgramConversions& how) {
  return std::make_shared<ProgramRepresentation>(std::move(name), how);
}

DataRepresentationRef standard_representation(const std::string& name) {
  static const auto native = std::make_shared<const DataRepresentation>("native");
  static const auto internal = std::make_shared<const DataRepresentation>("internal");
  static const auto external = std::make_shared<const External32>();
  if (name == "native") return native;
  if (name == "internal") return internal;
  if (name == "external32") return external;
  return nullptr;
}

}  // namespace brant::mpi
