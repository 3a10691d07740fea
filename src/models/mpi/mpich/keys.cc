#include <array>
#include <cstring>
#include <memory>
#include <new>

#include "models/mpi/mpich/arguments.h"
#include "models/mpi/mpich/own_calls.h"
#include "mpi_generated/api.h"

/// MPI_COMM_DUP_FN and its like, which programs name and may call themselves.
// NOLINTNEXTLINE(readability-identifier-naming): the name is MPICH's
extern "C" MPI_EXPORT int MPIR_Dup_fn(int /*handle*/, int /*key*/, void* /*extra*/, void* value, void* copied,
                                      int* flag) {
  std::memcpy(copied, static_cast<const void*>(&value), sizeof value);
  *flag = 1;
  return MPI_SUCCESS;
}

namespace brant::mpi::mpich {

namespace {

/// What the program has said of a key. It stays as long as brant has the key, which is until the process ends.
struct Key {
  CopyFunction* copy;
  DeleteFunction* discard;
  void* extra;
};

template <typename Handle>
int copy_value(Handle handle, int number, void* extra, void* value, void* copied, int* flag) {
  const auto* key = static_cast<const Key*>(extra);
  return code_to_abi(key->copy(Lent<Handle>(handle).get(), number, key->extra, value, copied, flag));
}

template <typename Handle>
int discard_value(Handle handle, int number, void* value, void* extra) {
  const auto* key = static_cast<const Key*>(extra);
  return code_to_abi(key->discard(Lent<Handle>(handle).get(), number, value, key->extra));
}

/// `create`: of brant.
template <typename Handle, typename Create>
int create_key(Create* create, CopyFunction* copy_fn, DeleteFunction* delete_fn, int* keyval, void* extra) {
  auto key = std::unique_ptr<Key>(new (std::nothrow) Key{copy_fn, delete_fn, extra});
  if (key == nullptr) api::end_without_memory();
  const int outcome = create(copy_fn != nullptr ? copy_value<Handle> : nullptr,
                             delete_fn != nullptr ? discard_value<Handle> : nullptr, keyval, key.get());
  if (outcome == MPI_SUCCESS) static_cast<void>(key.release());  // NOLINT(bugprone-unused-return-value): brant has it
  return code_to_mpich(outcome);
}

// Attributes that are there from the start
// -------------------------------------------------------------------------------------------------------------------

/// A place that is there as long as the process, with this value.
template <std::size_t Count>
int* place_of(const std::array<Value, Count>& table, int value) {
  static std::array<int, Count> places = [&table] {
    std::array<int, Count> made{};
    for (std::size_t i = 0; i < Count; ++i) made[i] = table[i].mpich;
    return made;
  }();
  for (std::size_t i = 0; i < Count; ++i)
    if (table[i].abi == value) return &places[i];
  return nullptr;
}

/// Where MPICH's number lies of what brant has told of.
int* translated(int key, int value) {
  static int host = 0;
  static int io = 0;
  static int last_code = 0;
  const auto keep = [](int& place, int number) {
    place = number;
    return &place;
  };
  switch (key) {
    case MPI_HOST: return keep(host, rank_to_mpich(value));
    case MPI_IO: return keep(io, rank_to_mpich(value));
    case MPI_LASTUSEDCODE: return keep(last_code, value + kAddedCodes);
    case MPI_WIN_CREATE_FLAVOR: return place_of(kWindowFlavors, value);
    case MPI_WIN_MODEL: return place_of(kWindowModels, value);
    default: return nullptr;
  }
}

bool is_translated(int key) {
  return key == MPI_HOST || key == MPI_IO || key == MPI_LASTUSEDCODE || key == MPI_WIN_CREATE_FLAVOR ||
         key == MPI_WIN_MODEL;
}

template <typename Handle, typename Get>
int get_attribute(Get* get, Handle handle, int keyval, void* value, int* flag) {
  const int key = key_to_abi(keyval);
  const int outcome = get(handle, key, value, flag);
  if (outcome == MPI_SUCCESS && *flag != 0 && is_translated(key)) {
    int* place = nullptr;
    std::memcpy(static_cast<void*>(&place), value, sizeof place);
    place = translated(key, *place);
    std::memcpy(value, static_cast<const void*>(&place), sizeof place);
  }
  return code_to_mpich(outcome);
}

}  // namespace

namespace own {

int comm_create_keyval(CommCopyAttrFunction* copy_fn, CommDeleteAttrFunction* delete_fn, int* keyval, void* extra) {
  return create_key<MPI_Comm>(api::comm_create_keyval, copy_fn, delete_fn, keyval, extra);
}
int type_create_keyval(TypeCopyAttrFunction* copy_fn, TypeDeleteAttrFunction* delete_fn, int* keyval, void* extra) {
  return create_key<MPI_Datatype>(api::type_create_keyval, copy_fn, delete_fn, keyval, extra);
}
int win_create_keyval(WinCopyAttrFunction* copy_fn, WinDeleteAttrFunction* delete_fn, int* keyval, void* extra) {
  return create_key<MPI_Win>(api::win_create_keyval, copy_fn, delete_fn, keyval, extra);
}
int keyval_create(CopyFunction* copy_fn, DeleteFunction* delete_fn, int* keyval, void* extra) {
  return comm_create_keyval(copy_fn, delete_fn, keyval, extra);
}

int comm_get_attr(int comm, int keyval, void* value, int* flag) {
  return get_attribute(api::comm_get_attr, to_abi<MPI_Comm>(comm), keyval, value, flag);
}
int win_get_attr(int win, int keyval, void* value, int* flag) {
  return get_attribute(api::win_get_attr, to_abi<MPI_Win>(win), keyval, value, flag);
}
int attr_get(int comm, int keyval, void* value, int* flag) { return comm_get_attr(comm, keyval, value, flag); }

}  // namespace own
}  // namespace brant::mpi::mpich
