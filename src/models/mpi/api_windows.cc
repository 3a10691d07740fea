#include <cstring>
#include <memory>
#include <string>

#include "models/mpi/memory_alloc_kinds.h"
#include "models/mpi/windows/making.h"
#include "models/mpi/windows/window_calls.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

/// What a function that makes windows is to do, on the handler of its communicator.
template <typename Make>
int make(const char* function, MPI_Comm comm, MPI_Info info, MPI_Win* win, const Make& make_one) noexcept {
  return on_communicator(function, comm, [&](Communicator& c) {
    require_place(static_cast<const void*>(win), "win");
    require_one_group(c);
    *win = MPI_WIN_NULL;
    const Info* const hints = info != MPI_INFO_NULL ? &info_of(info) : nullptr;
    Window& made = make_one(c);
    if (hints != nullptr) made.info.entries = hints->entries;
    *win = handle_of<MPI_Win>(made);
    if (checks() != nullptr) [[unlikely]]
      checks()->census.add(Census::Kind::window, &made);
  });
}

void store_base(void* place, void* base) noexcept { std::memcpy(place, static_cast<const void*>(&base), sizeof base); }

/// The functions of keys get the handle of their object in this place, whatever class it is of.
MPI_Comm as_owner(MPI_Win handle) noexcept { return reinterpret_cast<MPI_Comm>(handle); }

/// Null: no such attribute.
void* predefined_attribute(Window& window, int number) noexcept {
  static int model = MPI_WIN_UNIFIED;
  switch (number) {
    case MPI_WIN_BASE: return window.base;
    case MPI_WIN_SIZE: return &window.bytes;
    case MPI_WIN_DISP_UNIT: return &window.disp_unit;
    case MPI_WIN_CREATE_FLAVOR: return const_cast<int*>(&window.flavor);
    case MPI_WIN_MODEL: return &model;
    default: return nullptr;
  }
}

bool is_predefined_attribute(int number) noexcept { return number >= MPI_WIN_BASE && number <= MPI_WIN_MODEL; }

}  // namespace

// Making and freeing
// -------------------------------------------------------------------------------------------------------------------

int win_create(void* base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) noexcept {
  return make("MPI_Win_create", comm, info, win,
              [&](Communicator& c) -> Window& { return make_window(c, base, {size, disp_unit}); });
}

int win_allocate(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                 MPI_Win* win) noexcept {
  return make("MPI_Win_allocate", comm, info, win, [&](Communicator& c) -> Window& {
    require_place(baseptr, "baseptr");
    Window& made = make_allocated_window(c, {size, disp_unit, memory_hint(info)});
    store_base(baseptr, made.base);
    return made;
  });
}

int win_allocate_shared(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                        MPI_Win* win) noexcept {
  return make("MPI_Win_allocate_shared", comm, info, win, [&](Communicator& c) -> Window& {
    require_place(baseptr, "baseptr");
    Window& made = make_shared_window(c, {size, disp_unit});
    store_base(baseptr, made.base);
    return made;
  });
}

int win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) noexcept {
  return make("MPI_Win_create_dynamic", comm, info, win,
              [](Communicator& c) -> Window& { return make_dynamic_window(c); });
}

int win_attach(MPI_Win win, void* base, MPI_Aint size) noexcept {
  return on_window("MPI_Win_attach", win, [&](Window& w) { attach(w, base, size); });
}

int win_detach(MPI_Win win, const void* base) noexcept {
  return on_window("MPI_Win_detach", win, [&](Window& w) { detach(w, base); });
}

namespace {

/// Memory that goes with the window must be in no other use.
void require_unused(const Window& w) {
  if (w.flavor != MPI_WIN_FLAVOR_ALLOCATE && w.flavor != MPI_WIN_FLAVOR_SHARED) return;
  GivenMemory::require_unused(w.rank, w.base, static_cast<std::size_t>(w.bytes), "the memory of the window",
                              MPI_ERR_WIN);
}

}  // namespace

/// A window whose epochs are not over stays. Otherwise it goes, also where a member has died.
int win_free(MPI_Win* win) noexcept {
  MPI_Win handle = win != nullptr ? *win : MPI_WIN_NULL;
  bool goes = false;
  const int outcome = on_window("MPI_Win_free", handle, [&](Window& w) {
    require(!w.locked_all && w.locks_held == 0 && !w.started && !w.exposed, MPI_ERR_RMA_SYNC,
            "an epoch of the window is not over: unlock it, or call MPI_Win_complete or MPI_Win_wait");
    if (checks() != nullptr) [[unlikely]]
      require_unused(w);
    const int discarded = w.attributes.remove_all(process()->key_values(), as_owner(handle));
    require(discarded == MPI_SUCCESS, discarded, "the program's function that deletes an attribute failed");
    goes = true;
    close_window(w);
  });
  if (!goes) return outcome;
  if (checks() != nullptr) [[unlikely]]
    checks()->census.remove(object_of<Window>(handle));
  delete_window(*object_of<Window>(handle));
  *win = MPI_WIN_NULL;
  return outcome;
}

/// MPI_PROC_NULL is the first member that has memory. Of memory that this CPU does not reach, nothing.
int win_shared_query(MPI_Win win, int rank, MPI_Aint* size, MPI_Aint* disp_unit, void* baseptr) noexcept {
  return on_window("MPI_Win_shared_query", win, [&](Window& w) {
    require_place(size, "size");
    require_place(disp_unit, "disp_unit");
    require_place(baseptr, "baseptr");
    require(!w.is_dynamic(), MPI_ERR_RMA_FLAVOR, "the window is dynamic: its members have no one memory");
    int member = rank;
    if (rank == MPI_PROC_NULL) {
      for (member = 0; member + 1 < w.size() && w.part(member).bytes == 0;) ++member;
    }
    require_rank(w.communicator, member, "the rank");
    std::byte* const mapped = w.host_pointer(member);
    *size = mapped != nullptr ? static_cast<MPI_Aint>(w.part(member).bytes) : 0;
    *disp_unit = static_cast<MPI_Aint>(w.part(member).disp_unit);
    store_base(baseptr, mapped);
  });
}

// What a window has
// -------------------------------------------------------------------------------------------------------------------

int win_get_group(MPI_Win win, MPI_Group* group) noexcept {
  return on_window("MPI_Win_get_group", win, [&](const Window& w) {
    require_place(static_cast<const void*>(group), "group");
    *group = publish_group(w.communicator.members, w.communicator.session);
  });
}

int win_set_name(MPI_Win win, const char* win_name) noexcept {
  return on_window("MPI_Win_set_name", win, [&](Window& w) {
    require_place(win_name, "win_name");
    w.name = object_name(win_name);
  });
}

int win_get_name(MPI_Win win, char* win_name, int* resultlen) noexcept {
  if (win == MPI_WIN_NULL) {
    return call("MPI_Win_get_name", [&] {
      require_place(win_name, "win_name");
      store_text("MPI_WIN_NULL", win_name, MPI_MAX_OBJECT_NAME, resultlen);
    });
  }
  return on_window("MPI_Win_get_name", win, [&](const Window& w) {
    require_place(win_name, "win_name");
    store_text(w.name, win_name, MPI_MAX_OBJECT_NAME, resultlen);
  });
}

int win_set_info(MPI_Win win, MPI_Info info) noexcept {
  return on_window("MPI_Win_set_info", win, [&](Window& w) {
    for (const auto& [key, value] : info_of(info).entries) w.info.set(key, value);
  });
}

int win_get_info(MPI_Win win, MPI_Info* info_used) noexcept {
  return on_window("MPI_Win_get_info", win, [&](const Window& w) {
    require_place(static_cast<const void*>(info_used), "info_used");
    *info_used = publish_used(w.info);
  });
}

int win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler) noexcept {
  return on_window("MPI_Win_set_errhandler", win, [&](Window& w) { w.set_handler(error_handler_of(errhandler)); });
}

int win_get_errhandler(MPI_Win win, MPI_Errhandler* errhandler) noexcept {
  return on_window("MPI_Win_get_errhandler", win, [&](const Window& w) {
    require_place(static_cast<const void*>(errhandler), "errhandler");
    ++w.handler->users;
    *errhandler = handle_of_handler(*w.handler);
  });
}

int win_call_errhandler(MPI_Win win, int errorcode) noexcept {
  return on_window("MPI_Win_call_errhandler", win, [&](Window& w) {
    static_cast<void>(hand_over(&w, "MPI_Win_call_errhandler", CallError(errorcode, "the program called the handler")));
  });
}

// Attributes
// -------------------------------------------------------------------------------------------------------------------

int win_create_keyval(MPI_Win_copy_attr_function* win_copy_attr_fn, MPI_Win_delete_attr_function* win_delete_attr_fn,
                      int* win_keyval, void* extra_state) noexcept {
  return comm_create_keyval(reinterpret_cast<MPI_Comm_copy_attr_function*>(win_copy_attr_fn),
                            reinterpret_cast<MPI_Comm_delete_attr_function*>(win_delete_attr_fn), win_keyval,
                            extra_state);
}

int win_free_keyval(int* win_keyval) noexcept { return comm_free_keyval(win_keyval); }

int win_set_attr(MPI_Win win, int win_keyval, void* attribute_val) noexcept {
  return on_window("MPI_Win_set_attr", win, [&](Window& w) {
    require(!is_predefined_attribute(win_keyval), MPI_ERR_KEYVAL, "the attribute {} cannot be changed", win_keyval);
    require_key(win_keyval);
    const int outcome = w.attributes.set(process()->key_values(), as_owner(win), win_keyval, attribute_val);
    require(outcome == MPI_SUCCESS, outcome, "the program's function that deletes an attribute failed");
  });
}

int win_get_attr(MPI_Win win, int win_keyval, void* attribute_val, int* flag) noexcept {
  return on_window("MPI_Win_get_attr", win, [&](Window& w) {
    require_place(attribute_val, "attribute_val");
    require_place(flag, "flag");
    const bool is_predefined = is_predefined_attribute(win_keyval);
    if (!is_predefined) require_key(win_keyval);
    void* const predefined = is_predefined ? predefined_attribute(w, win_keyval) : nullptr;
    void* const* value = is_predefined ? &predefined : w.attributes.find(win_keyval);
    *flag = value != nullptr ? 1 : 0;
    if (value != nullptr) store_base(attribute_val, *value);
  });
}

int win_delete_attr(MPI_Win win, int win_keyval) noexcept {
  return on_window("MPI_Win_delete_attr", win, [&](Window& w) {
    require_key(win_keyval);
    const int outcome = w.attributes.remove(process()->key_values(), as_owner(win), win_keyval);
    require(outcome == MPI_SUCCESS, outcome, "the program's function that deletes an attribute failed");
  });
}

}  // namespace brant::mpi::api
