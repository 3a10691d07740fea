#include <algorithm>
#include <string_view>

#include "models/mpi/calls.h"
#include "models/mpi/tools/categories.h"
#include "models/mpi/tools/tool_call.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

using namespace tools;

// From the first call to the last
// ---------------------------------------------------------------------------------------------------------------------

int t_init_thread(int required, int* provided) noexcept {
  try {
    ++tool_state().users;
  } catch (const std::bad_alloc&) {
    return MPI_T_ERR_MEMORY;
  }
  // As in MPI_Init_thread: calls of several threads must not overlap.
  give(provided, granted_thread_level(required));
  return MPI_SUCCESS;
}

int t_finalize() noexcept {
  return tool_call([](ToolState& state) {
    if (--state.users != 0) return;
    state.controls.clear();
    state.sessions.clear();
  });
}

// Names of values
// ---------------------------------------------------------------------------------------------------------------------

namespace {

const NameList& name_list_of(MPI_T_enum handle) {
  const NameList* list = find_name_list(handle);
  demand(list != nullptr, MPI_T_ERR_INVALID_HANDLE);
  return *list;
}

}  // namespace

int t_enum_get_info(MPI_T_enum enumtype, int* num, char* name, int* name_len) noexcept {
  return tool_call([&](ToolState&) {
    const NameList& list = name_list_of(enumtype);
    give(num, static_cast<int>(list.items.size()));
    give_text(list.name, name, name_len);
  });
}

int t_enum_get_item(MPI_T_enum enumtype, int indx, int* value, char* name, int* name_len) noexcept {
  return tool_call([&](ToolState&) {
    const NameList::Item& item = entry_at(name_list_of(enumtype).items, indx);
    give(value, item.value);
    give_text(item.name, name, name_len);
  });
}

// Control variables
// ---------------------------------------------------------------------------------------------------------------------

namespace {

const ControlVariable& variable_of(const ToolState& state, MPI_T_cvar_handle handle) {
  const ControlHandle* found = state.controls.find(handle);
  demand(found != nullptr, MPI_T_ERR_INVALID_HANDLE);
  return *found->variable;
}

}  // namespace

int t_cvar_get_num(int* num_cvar) noexcept {
  return tool_call([&](ToolState&) {
    demand_place(num_cvar);
    *num_cvar = static_cast<int>(control_variables().size());
  });
}

int t_cvar_get_index(const char* name, int* cvar_index) noexcept {
  return tool_call([&](ToolState&) {
    demand_place(name);
    demand_place(cvar_index);
    const std::string_view wanted = name;
    *cvar_index = index_in(control_variables(), [&](const ControlVariable& one) { return one.name == wanted; });
  });
}

int t_cvar_get_info(int cvar_index, char* name, int* name_len, int* verbosity, MPI_Datatype* datatype,
                    MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind, int* scope) noexcept {
  return tool_call([&](ToolState&) {
    const ControlVariable& variable = entry_at(control_variables(), cvar_index);
    give_text(variable.name, name, name_len);
    give(verbosity, variable.verbosity);
    give(datatype, variable.datatype());
    give(enumtype, handle_of_list(variable.names));
    give_text(variable.description, desc, desc_len);
    give<int>(bind, MPI_T_BIND_NO_OBJECT);
    give(scope, variable.scope());
  });
}

int t_cvar_handle_alloc(int cvar_index, void*, MPI_T_cvar_handle* handle, int* count) noexcept {
  return tool_call([&](ToolState& state) {
    demand_place(static_cast<const void*>(handle));
    const ControlVariable& variable = entry_at(control_variables(), cvar_index);
    *handle = handle_of<MPI_T_cvar_handle>(state.controls.make(&variable));
    give(count, variable.count());
  });
}

int t_cvar_handle_free(MPI_T_cvar_handle* handle) noexcept {
  return tool_call([&](ToolState& state) {
    demand_place(static_cast<const void*>(handle));
    demand(state.controls.erase(*handle), MPI_T_ERR_INVALID_HANDLE);
    *handle = MPI_T_CVAR_HANDLE_NULL;
  });
}

int t_cvar_read(MPI_T_cvar_handle handle, void* buf) noexcept {
  return tool_call([&](ToolState& state) {
    const ControlVariable& variable = variable_of(state, handle);
    demand_place(buf);
    variable.read(buf);
  });
}

/// brant reads its settings once: a value that came later would govern nothing.
int t_cvar_write(MPI_T_cvar_handle handle, const void*) noexcept {
  return tool_call([&](ToolState& state) {
    static_cast<void>(variable_of(state, handle));
    throw ToolError(MPI_T_ERR_CVAR_SET_NEVER);
  });
}

// Categories
// ---------------------------------------------------------------------------------------------------------------------

namespace {

/// As many of the indices as there is room for.
int give_indices(int category, std::vector<int> Category::* wanted, int room, int* place) noexcept {
  return tool_call([&](ToolState&) {
    const std::vector<int>& indices = entry_at(categories(), category).*wanted;
    demand(room >= 0 && (room == 0 || place != nullptr), MPI_T_ERR_INVALID);
    std::copy_n(indices.begin(), std::min(static_cast<std::size_t>(room), indices.size()), place);
  });
}

}  // namespace

int t_category_get_num(int* num_cat) noexcept {
  return tool_call([&](ToolState&) {
    demand_place(num_cat);
    *num_cat = static_cast<int>(categories().size());
  });
}

int t_category_get_index(const char* name, int* cat_index) noexcept {
  return tool_call([&](ToolState&) {
    demand_place(name);
    demand_place(cat_index);
    const std::string_view wanted = name;
    *cat_index = index_in(categories(), [&](const Category& one) { return one.name == wanted; });
  });
}

int t_category_get_info(int cat_index, char* name, int* name_len, char* desc, int* desc_len, int* num_cvars,
                        int* num_pvars, int* num_categories) noexcept {
  return tool_call([&](ToolState&) {
    const Category& category = entry_at(categories(), cat_index);
    give_text(category.name, name, name_len);
    give_text(category.description, desc, desc_len);
    give(num_cvars, static_cast<int>(category.controls.size()));
    give(num_pvars, static_cast<int>(category.performance.size()));
    give(num_categories, static_cast<int>(category.categories.size()));
  });
}

int t_category_get_cvars(int cat_index, int len, int indices[]) noexcept {
  return give_indices(cat_index, &Category::controls, len, indices);
}

int t_category_get_pvars(int cat_index, int len, int indices[]) noexcept {
  return give_indices(cat_index, &Category::performance, len, indices);
}

int t_category_get_categories(int cat_index, int len, int indices[]) noexcept {
  return give_indices(cat_index, &Category::categories, len, indices);
}

/// They never change.
int t_category_changed(int* update_number) noexcept {
  return tool_call([&](ToolState&) {
    demand_place(update_number);
    *update_number = 0;
  });
}

}  // namespace brant::mpi::api
