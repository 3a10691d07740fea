#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "models/mpi/calls.h"
#include "models/mpi/export_forms.h"
#include "models/mpi/statuses.h"
#include "models/mpi/type_attributes.h"
#include "models/mpi/typed_buffer.h"
#include "models/mpi/types/constructors.h"
#include "models/mpi/types/elements.h"
#include "models/mpi/types/found_types.h"
#include "mpi_generated/api.h"

namespace brant::mpi {

TypeAttributes::~TypeAttributes() {
  if (process() != nullptr) attributes_.remove_all(process()->key_values(), as_owner(type_.handle()));
}

Attributes& TypeAttributes::of(Datatype& type) {
  if (type.attachment() == nullptr) type.attach(std::make_unique<TypeAttributes>(type));
  return static_cast<TypeAttributes&>(*type.attachment()).attributes_;
}

namespace api {

namespace {

thread_local int t_small_forms = 0;

CallForm call_form() noexcept { return t_small_forms != 0 ? CallForm::ints : CallForm::counts; }

void give_type(Made made, MPI_Datatype* place) {
  require_place(static_cast<const void*>(place), "newtype");
  require(made.ok(), static_cast<int>(made.fault.error), "{}", made.fault.text);
  Datatype* const type = made.type.release();
  *place = type->handle();
  if (checks() != nullptr && !type->predefined()) [[unlikely]]
    checks()->census.add(Census::Kind::datatype, type);
}

std::span<const Count> list(const MPI_Count* values, MPI_Count count) {
  require(count >= 0, MPI_ERR_COUNT, "the count {} is negative", count);
  require(count == 0 || values != nullptr, MPI_ERR_ARG, "a list of {} entries is null", count);
  return {values, static_cast<std::size_t>(count)};
}

std::vector<Count> widened(const int* values, int count) {
  require(count >= 0 && (count == 0 || values != nullptr), MPI_ERR_ARG, "a list of {} entries is null, or negative",
          count);
  return {values, values + count};
}

template <typename Make>
int make_type(const char* function, MPI_Datatype* place, Make&& make) noexcept {
  return call(function, [&] { give_type(make(), place); });
}

}  // namespace

SmallForm::SmallForm() noexcept { ++t_small_forms; }
SmallForm::~SmallForm() { --t_small_forms; }

int type_contiguous(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype* newtype) noexcept {
  return make_type("MPI_Type_contiguous", newtype,
                   [&] { return contiguous_type(count, find_datatype(oldtype), call_form()); });
}

int type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                MPI_Datatype* newtype) noexcept {
  return make_type("MPI_Type_vector", newtype,
                   [&] { return vector_type(count, blocklength, stride, find_datatype(oldtype), call_form()); });
}

int type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                        MPI_Datatype* newtype) noexcept {
  return make_type("MPI_Type_create_hvector", newtype,
                   [&] { return hvector_type(count, blocklength, stride, find_datatype(oldtype), call_form()); });
}

int type_indexed(MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
                 MPI_Datatype oldtype, MPI_Datatype* newtype) noexcept {
  return make_type("MPI_Type_indexed", newtype, [&] {
    return indexed_type(list(array_of_blocklengths, count), list(array_of_displacements, count), find_datatype(oldtype),
                        call_form());
  });
}

int type_create_hindexed(MPI_Count count, const MPI_Count array_of_blocklengths[],
                         const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                         MPI_Datatype* newtype) noexcept {
  return make_type("MPI_Type_create_hindexed", newtype, [&] {
    return hindexed_type(list(array_of_blocklengths, count), list(array_of_displacements, count),
                         find_datatype(oldtype), call_form());
  });
}

int type_create_indexed_block(MPI_Count count, MPI_Count blocklength, const MPI_Count array_of_displacements[],
                              MPI_Datatype oldtype, MPI_Datatype* newtype) noexcept {
  return make_type("MPI_Type_create_indexed_block", newtype, [&] {
    return indexed_block_type(blocklength, list(array_of_displacements, count), find_datatype(oldtype), call_form());
  });
}

int type_create_hindexed_block(MPI_Count count, MPI_Count blocklength, const MPI_Count array_of_displacements[],
                               MPI_Datatype oldtype, MPI_Datatype* newtype) noexcept {
  return make_type("MPI_Type_create_hindexed_block", newtype, [&] {
    return hindexed_block_type(blocklength, list(array_of_displacements, count), find_datatype(oldtype), call_form());
  });
}

int type_create_struct(MPI_Count count, const MPI_Count array_of_blocklengths[],
                       const MPI_Count array_of_displacements[], const MPI_Datatype array_of_types[],
                       MPI_Datatype* newtype) noexcept {
  return make_type("MPI_Type_create_struct", newtype, [&] {
    const auto lengths = list(array_of_blocklengths, count);
    std::vector<Datatype*> types;
    types.reserve(lengths.size());
    for (std::size_t i = 0; i < lengths.size(); ++i) types.push_back(find_datatype(array_of_types[i]));
    return struct_type(lengths, list(array_of_displacements, count), types, call_form());
  });
}

int type_create_subarray(int ndims, const MPI_Count array_of_sizes[], const MPI_Count array_of_subsizes[],
                         const MPI_Count array_of_starts[], int order, MPI_Datatype oldtype,
                         MPI_Datatype* newtype) noexcept {
  return make_type("MPI_Type_create_subarray", newtype, [&] {
    return subarray_type(list(array_of_sizes, ndims), list(array_of_subsizes, ndims), list(array_of_starts, ndims),
                         order, find_datatype(oldtype), call_form());
  });
}

int type_create_darray(int size, int rank, int ndims, const MPI_Count array_of_gsizes[], const int array_of_distribs[],
                       const int array_of_dargs[], const int array_of_psizes[], int order, MPI_Datatype oldtype,
                       MPI_Datatype* newtype) noexcept {
  return make_type("MPI_Type_create_darray", newtype, [&] {
    const std::vector<Count> kinds = widened(array_of_distribs, ndims);
    const std::vector<Count> arguments = widened(array_of_dargs, ndims);
    const std::vector<Count> grid = widened(array_of_psizes, ndims);
    const Distribution how{.processes = size,
                           .rank = rank,
                           .sizes = list(array_of_gsizes, ndims),
                           .kinds = kinds,
                           .arguments = arguments,
                           .grid = grid,
                           .order = order};
    return darray_type(how, find_datatype(oldtype), call_form());
  });
}

int type_create_resized(MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype* newtype) noexcept {
  return make_type("MPI_Type_create_resized", newtype,
                   [&] { return resized_type(find_datatype(oldtype), lb, extent, call_form()); });
}

int type_dup(MPI_Datatype oldtype, MPI_Datatype* newtype) noexcept {
  return call("MPI_Type_dup", [&] {
    Datatype& old = datatype_of(oldtype);
    give_type(dup_type(&old), newtype);
    if (old.attachment() == nullptr) return;
    Datatype& made = datatype_of(*newtype);
    const int outcome =
        TypeAttributes::of(old).copy_to(TypeAttributes::of(made), process()->key_values(), as_owner(oldtype));
    require(outcome == MPI_SUCCESS, outcome, "the program's function that copies an attribute failed");
  });
}

int type_commit(MPI_Datatype* datatype) noexcept {
  return call("MPI_Type_commit", [&] {
    require_place(static_cast<const void*>(datatype), "datatype");
    datatype_of(*datatype).commit();
  });
}

int type_free(MPI_Datatype* datatype) noexcept {
  return call("MPI_Type_free", [&] {
    require_place(static_cast<const void*>(datatype), "datatype");
    Datatype& type = datatype_of(*datatype);
    require(!type.predefined(), MPI_ERR_TYPE, "{} is there as long as MPI is", type.name());
    *datatype = MPI_DATATYPE_NULL;
    if (checks() != nullptr) [[unlikely]]
      checks()->census.remove(&type);
    type.release();
  });
}

int type_size(MPI_Datatype datatype, MPI_Count* size) noexcept {
  return call("MPI_Type_size", [&] { *size = datatype_of(datatype).size(); });
}
int type_size_x(MPI_Datatype datatype, MPI_Count* size) noexcept { return type_size(datatype, size); }

int type_get_extent(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent) noexcept {
  return call("MPI_Type_get_extent", [&] {
    const Datatype& type = datatype_of(datatype);
    *lb = type.lb();
    *extent = type.extent();
  });
}
int type_get_extent_x(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent) noexcept {
  return type_get_extent(datatype, lb, extent);
}

int type_get_true_extent(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent) noexcept {
  return call("MPI_Type_get_true_extent", [&] {
    const Datatype& type = datatype_of(datatype);
    *true_lb = type.true_lb();
    *true_extent = type.true_extent();
  });
}
int type_get_true_extent_x(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent) noexcept {
  return type_get_true_extent(datatype, true_lb, true_extent);
}

int type_set_name(MPI_Datatype datatype, const char* type_name) noexcept {
  return call("MPI_Type_set_name", [&] {
    require_place(type_name, "type_name");
    datatype_of(datatype).set_name(std::string(object_name(type_name)));
  });
}

int type_get_name(MPI_Datatype datatype, char* type_name, int* resultlen) noexcept {
  return call("MPI_Type_get_name", [&] {
    require_place(type_name, "type_name");
    if (datatype == MPI_DATATYPE_NULL)
      return store_text("MPI_DATATYPE_NULL", type_name, MPI_MAX_OBJECT_NAME, resultlen);
    store_text(datatype_of(datatype).name(), type_name, MPI_MAX_OBJECT_NAME, resultlen);
  });
}

// Predefined types by what they can hold
// -------------------------------------------------------------------------------------------------------------------

int type_create_f90_real(int p, int r, MPI_Datatype* newtype) noexcept {
  return make_type("MPI_Type_create_f90_real", newtype, [&] { return f90_real_type(p, r); });
}

int type_create_f90_complex(int p, int r, MPI_Datatype* newtype) noexcept {
  return make_type("MPI_Type_create_f90_complex", newtype, [&] { return f90_complex_type(p, r); });
}

int type_create_f90_integer(int r, MPI_Datatype* newtype) noexcept {
  return make_type("MPI_Type_create_f90_integer", newtype, [&] { return f90_integer_type(r); });
}

int type_match_size(int typeclass, int size, MPI_Datatype* datatype) noexcept {
  return make_type("MPI_Type_match_size", datatype, [&] { return matching_type(typeclass, size); });
}

int type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype* pair_type) noexcept {
  return call("MPI_Type_get_value_index", [&] {
    require_place(static_cast<const void*>(pair_type), "pair_type");
    Datatype* found = value_index_type(datatype_of(value_type), datatype_of(index_type));
    *pair_type = found != nullptr ? found->handle() : MPI_DATATYPE_NULL;
  });
}

// How types were made
// -------------------------------------------------------------------------------------------------------------------

int type_get_envelope_c(MPI_Datatype datatype, MPI_Count* num_integers, MPI_Count* num_addresses,
                        MPI_Count* num_large_counts, MPI_Count* num_datatypes, int* combiner) noexcept {
  return call("MPI_Type_get_envelope", [&] {
    const Construction& made = datatype_of(datatype).construction();
    *num_integers = static_cast<MPI_Count>(made.integers.size());
    *num_addresses = static_cast<MPI_Count>(made.addresses.size());
    *num_large_counts = static_cast<MPI_Count>(made.large_counts.size());
    *num_datatypes = static_cast<MPI_Count>(made.types.size());
    *combiner = static_cast<int>(made.combiner);
  });
}

int type_get_envelope(MPI_Datatype datatype, int* num_integers, int* num_addresses, int* num_datatypes,
                      int* combiner) noexcept {
  return call("MPI_Type_get_envelope", [&] {
    MPI_Count counts[4] = {};
    static_cast<void>(type_get_envelope_c(datatype, &counts[0], &counts[1], &counts[2], &counts[3], combiner));
    require(counts[2] == 0, MPI_ERR_TYPE, "the type was made with large counts: ask MPI_Type_get_envelope_c");
    *num_integers = static_cast<int>(counts[0]);
    *num_addresses = static_cast<int>(counts[1]);
    *num_datatypes = static_cast<int>(counts[3]);
  });
}

int type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
                        MPI_Count max_large_counts, MPI_Count max_datatypes, int array_of_integers[],
                        MPI_Aint array_of_addresses[], MPI_Count array_of_large_counts[],
                        MPI_Datatype array_of_datatypes[]) noexcept {
  return call("MPI_Type_get_contents", [&] {
    const Datatype& type = datatype_of(datatype);
    const Construction& made = type.construction();
    require(made.combiner != Combiner::named, MPI_ERR_TYPE, "{} is predefined: it was not made of anything",
            type.name());
    const auto fits = [](const auto& list, MPI_Count room) { return static_cast<MPI_Count>(list.size()) <= room; };
    require(fits(made.integers, max_integers) && fits(made.addresses, max_addresses) &&
                fits(made.large_counts, max_large_counts) && fits(made.types, max_datatypes),
            MPI_ERR_ARG, "the lists have no room for what MPI_Type_get_envelope says");
    std::ranges::copy(made.integers, array_of_integers);
    std::ranges::copy(made.addresses, array_of_addresses);
    std::ranges::copy(made.large_counts, array_of_large_counts);
    for (std::size_t i = 0; i < made.types.size(); ++i) {
      made.types[i]->retain();
      array_of_datatypes[i] = made.types[i]->handle();
      if (checks() != nullptr && !made.types[i]->predefined()) [[unlikely]]
        checks()->census.add(Census::Kind::datatype, &*made.types[i]);
    }
  });
}

int type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes,
                      int array_of_integers[], MPI_Aint array_of_addresses[],
                      MPI_Datatype array_of_datatypes[]) noexcept {
  return type_get_contents_c(datatype, max_integers, max_addresses, 0, max_datatypes, array_of_integers,
                             array_of_addresses, nullptr, array_of_datatypes);
}

// Attributes of types
// -------------------------------------------------------------------------------------------------------------------

int type_create_keyval(MPI_Type_copy_attr_function* type_copy_attr_fn,
                       MPI_Type_delete_attr_function* type_delete_attr_fn, int* type_keyval,
                       void* extra_state) noexcept {
  return call("MPI_Type_create_keyval", [&] {
    require_place(type_keyval, "type_keyval");
    *type_keyval =
        process()->key_values().create(reinterpret_cast<KeyValues::Copy>(type_copy_attr_fn),
                                       reinterpret_cast<KeyValues::Delete>(type_delete_attr_fn), extra_state);
  });
}

int type_free_keyval(int* type_keyval) noexcept { return comm_free_keyval(type_keyval); }

int type_set_attr(MPI_Datatype datatype, int type_keyval, void* attribute_val) noexcept {
  return call("MPI_Type_set_attr", [&] {
    Datatype& type = datatype_of(datatype);
    KeyValues& keys = process()->key_values();
    require(keys.find(type_keyval) != nullptr, MPI_ERR_KEYVAL, "{} is no key of the program", type_keyval);
    const int outcome = TypeAttributes::of(type).set(keys, as_owner(datatype), type_keyval, attribute_val);
    require(outcome == MPI_SUCCESS, outcome, "the program's function that deletes an attribute failed");
  });
}

int type_get_attr(MPI_Datatype datatype, int type_keyval, void* attribute_val, int* flag) noexcept {
  return call("MPI_Type_get_attr", [&] {
    Datatype& type = datatype_of(datatype);
    require(process()->key_values().find(type_keyval) != nullptr, MPI_ERR_KEYVAL, "{} is no key of the program",
            type_keyval);
    void* const* value = TypeAttributes::of(type).find(type_keyval);
    *flag = value != nullptr ? 1 : 0;
    if (value != nullptr) std::memcpy(attribute_val, static_cast<const void*>(value), sizeof(void*));
  });
}

int type_delete_attr(MPI_Datatype datatype, int type_keyval) noexcept {
  return call("MPI_Type_delete_attr", [&] {
    Datatype& type = datatype_of(datatype);
    KeyValues& keys = process()->key_values();
    require(keys.find(type_keyval) != nullptr, MPI_ERR_KEYVAL, "{} is no key of the program", type_keyval);
    const int outcome = TypeAttributes::of(type).remove(keys, as_owner(datatype), type_keyval);
    require(outcome == MPI_SUCCESS, outcome, "the program's function that deletes an attribute failed");
  });
}

// Addresses and elements
// -------------------------------------------------------------------------------------------------------------------

int get_address(const void* location, MPI_Aint* address) noexcept {
  *address = reinterpret_cast<MPI_Aint>(location);
  return MPI_SUCCESS;
}
MPI_Aint aint_add(MPI_Aint base, MPI_Aint disp) noexcept { return base + disp; }
MPI_Aint aint_diff(MPI_Aint addr1, MPI_Aint addr2) noexcept { return addr1 - addr2; }

int get_elements(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count) noexcept {
  return call("MPI_Get_elements", [&] {
    require_place(status, "status");
    *count = elements_in(datatype_of(datatype), words_of(*status).bytes);
  });
}
int get_elements_x(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count) noexcept {
  return get_elements(status, datatype, count);
}

int status_set_elements(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) noexcept {
  return call("MPI_Status_set_elements", [&] {
    const Datatype& type = datatype_of(datatype);
    const Count elements = elements_in(type, type.size());
    const Count bytes = elements > 0 ? count / elements * type.size() + count % elements * (type.size() / elements) : 0;
    set_words(*status, {bytes, words_of(*status).cancelled});
  });
}
int status_set_elements_x(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) noexcept {
  return status_set_elements(status, datatype, count);
}

}  // namespace api
}  // namespace brant::mpi
