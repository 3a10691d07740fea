#include <chrono>
#include <limits>

#include "models/mpi/calls.h"
#include "models/mpi/tools/categories.h"
#include "models/mpi/tools/tool_call.h"
#include "mpi_generated/api.h"

/// Events of the tools interface, of which brant has none: no index, handle or instance of one exists. The clock that
/// they would carry is there.
namespace brant::mpi::api {

using namespace tools;

namespace {

int refuse_event(int code) noexcept {
  return tool_call([code](ToolState&) { throw ToolError(code); });
}

void demand_clock(int source) { demand(source == 0, MPI_T_ERR_INVALID_INDEX); }

}  // namespace

int t_source_get_num(int* num_sources) noexcept {
  return tool_call([&](ToolState&) {
    demand_place(num_sources);
    *num_sources = 1;
  });
}

int t_source_get_info(int source_index, char* name, int* name_len, char* desc, int* desc_len,
                      MPI_T_source_order* ordering, MPI_Count* ticks_per_second, MPI_Count* max_ticks,
                      MPI_Info* info) noexcept {
  return tool_call([&](ToolState&) {
    demand_clock(source_index);
    if (info != nullptr) *info = publish_copy(Info());
    give_text("brant_clock", name, name_len);
    give_text("The clock of MPI_Wtime, in nanoseconds.", desc, desc_len);
    give(ordering, MPI_T_SOURCE_ORDERED);
    give<MPI_Count>(ticks_per_second, std::nano::den);
    give(max_ticks, std::numeric_limits<MPI_Count>::max());
  });
}

int t_source_get_timestamp(int source_index, MPI_Count* timestamp) noexcept {
  return tool_call([&](ToolState&) {
    demand_clock(source_index);
    demand_place(timestamp);
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    *timestamp = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  });
}

int t_event_get_num(int* num_events) noexcept {
  return tool_call([&](ToolState&) {
    demand_place(num_events);
    *num_events = 0;
  });
}

int t_event_get_index(const char* name, int* event_index) noexcept {
  return refuse_event(name == nullptr || event_index == nullptr ? MPI_T_ERR_INVALID : MPI_T_ERR_INVALID_NAME);
}

int t_category_get_num_events(int cat_index, int* num_events) noexcept {
  return tool_call([&](ToolState&) {
    static_cast<void>(entry_at(categories(), cat_index));
    demand_place(num_events);
    *num_events = 0;
  });
}

int t_category_get_events(int cat_index, int, int[]) noexcept {
  return tool_call([&](ToolState&) { static_cast<void>(entry_at(categories(), cat_index)); });
}

int t_event_get_info(int, char*, int*, int*, MPI_Datatype[], MPI_Aint[], int*, MPI_T_enum*, MPI_Info*, char*, int*,
                     int*) noexcept {
  return refuse_event(MPI_T_ERR_INVALID_INDEX);
}

int t_event_handle_alloc(int, void*, MPI_Info, MPI_T_event_registration*) noexcept {
  return refuse_event(MPI_T_ERR_INVALID_INDEX);
}

int t_event_handle_free(MPI_T_event_registration, void*, MPI_T_event_free_cb_function) noexcept {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}

int t_event_handle_get_info(MPI_T_event_registration, MPI_Info*) noexcept {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}

int t_event_handle_set_info(MPI_T_event_registration, MPI_Info) noexcept {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}

int t_event_register_callback(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info, void*,
                              MPI_T_event_cb_function) noexcept {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}

int t_event_callback_get_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info*) noexcept {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}

int t_event_callback_set_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info) noexcept {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}

int t_event_set_dropped_handler(MPI_T_event_registration, MPI_T_event_dropped_cb_function) noexcept {
  return refuse_event(MPI_T_ERR_INVALID_HANDLE);
}

int t_event_read(MPI_T_event_instance, int, void*) noexcept { return refuse_event(MPI_T_ERR_INVALID_HANDLE); }

int t_event_copy(MPI_T_event_instance, void*) noexcept { return refuse_event(MPI_T_ERR_INVALID_HANDLE); }

int t_event_get_timestamp(MPI_T_event_instance, MPI_Count*) noexcept { return refuse_event(MPI_T_ERR_INVALID_HANDLE); }

int t_event_get_source(MPI_T_event_instance, int*) noexcept { return refuse_event(MPI_T_ERR_INVALID_HANDLE); }

}  // namespace brant::mpi::api
