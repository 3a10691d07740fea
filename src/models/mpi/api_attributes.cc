#include <algorithm>
#include <cstring>
#include <thread>

#include "models/mpi/calls.h"
#include "models/mpi/dynamic/spawning.h"
#include "models/mpi/rank_life.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

/// What communicators have from the start; null: no such attribute.
void* predefined_attribute(int number) {
  static int tag_bound = kTagMax;
  static int host = MPI_PROC_NULL;
  static int io = MPI_ANY_SOURCE;
  static int clock_is_global = 0;
  static int universe = 0;
  static int application = 0;
  switch (number) {
    case MPI_TAG_UB: return &tag_bound;
    case MPI_HOST: return &host;
    case MPI_IO: return &io;
    case MPI_WTIME_IS_GLOBAL: return &clock_is_global;
    case MPI_APPNUM: application = own_command(); return &application;
    case MPI_UNIVERSE_SIZE:
      universe = std::max(current_rank().world->size(), static_cast<int>(std::thread::hardware_concurrency()));
      return &universe;
    case MPI_LASTUSEDCODE: return rank_life().errors.last_code();
    default: return nullptr;
  }
}

}  // namespace

int comm_create_keyval(MPI_Comm_copy_attr_function* comm_copy_attr_fn,
                       MPI_Comm_delete_attr_function* comm_delete_attr_fn, int* comm_keyval,
                       void* extra_state) noexcept {
  return call("MPI_Comm_create_keyval", [&] {
    require_place(comm_keyval, "comm_keyval");
    *comm_keyval = process()->key_values().create(comm_copy_attr_fn, comm_delete_attr_fn, extra_state);
  });
}

int comm_free_keyval(int* comm_keyval) noexcept {
  return call("MPI_Comm_free_keyval", [&] {
    require_place(comm_keyval, "comm_keyval");
    require_key(*comm_keyval);
    process()->key_values().find(*comm_keyval)->freed = true;
    *comm_keyval = MPI_KEYVAL_INVALID;
  });
}

int comm_set_attr(MPI_Comm comm, int comm_keyval, void* attribute_val) noexcept {
  return on_communicator("MPI_Comm_set_attr", comm, [&](Communicator& c) {
    require(predefined_attribute(comm_keyval) == nullptr, MPI_ERR_KEYVAL, "the attribute {} cannot be changed",
            comm_keyval);
    require_key(comm_keyval);
    const int outcome = c.attributes.set(process()->key_values(), comm, comm_keyval, attribute_val);
    require(outcome == MPI_SUCCESS, outcome, "the program's function that deletes an attribute failed");
  });
}

int comm_get_attr(MPI_Comm comm, int comm_keyval, void* attribute_val, int* flag) noexcept {
  return on_communicator("MPI_Comm_get_attr", comm, [&](const Communicator& c) {
    require_place(attribute_val, "attribute_val");
    require_place(flag, "flag");
    void* predefined = predefined_attribute(comm_keyval);
    if (predefined == nullptr) require_key(comm_keyval);
    void* const* value = predefined != nullptr ? &predefined : c.attributes.find(comm_keyval);
    *flag = value != nullptr ? 1 : 0;
    if (value != nullptr) std::memcpy(attribute_val, static_cast<const void*>(value), sizeof(void*));
  });
}

int comm_delete_attr(MPI_Comm comm, int comm_keyval) noexcept {
  return on_communicator("MPI_Comm_delete_attr", comm, [&](Communicator& c) {
    require_key(comm_keyval);
    const int outcome = c.attributes.remove(process()->key_values(), comm, comm_keyval);
    require(outcome == MPI_SUCCESS, outcome, "the program's function that deletes an attribute failed");
  });
}

// The names of MPI-1
// -------------------------------------------------------------------------------------------------------------------

int keyval_create(MPI_Copy_function* copy_fn, MPI_Delete_function* delete_fn, int* keyval, void* extra_state) noexcept {
  return comm_create_keyval(copy_fn, delete_fn, keyval, extra_state);
}

int keyval_free(int* keyval) noexcept { return comm_free_keyval(keyval); }

int attr_put(MPI_Comm comm, int keyval, void* attribute_val) noexcept {
  return comm_set_attr(comm, keyval, attribute_val);
}

int attr_get(MPI_Comm comm, int keyval, void* attribute_val, int* flag) noexcept {
  return comm_get_attr(comm, keyval, attribute_val, flag);
}

int attr_delete(MPI_Comm comm, int keyval) noexcept { return comm_delete_attr(comm, keyval); }

}  // namespace brant::mpi::api
