#include "models/mpi/object.h"
#include "models/mpi/tools/tool_call.h"
#include "mpi_generated/api.h"

/// Performance variables. Handles belong to a session, which is named beside them.
namespace brant::mpi::api {

using namespace tools;

namespace {

PerformanceSession& performance_session_of(const ToolState& state, MPI_T_pvar_session handle) {
  PerformanceSession* found = state.sessions.find(handle);
  demand(found != nullptr, MPI_T_ERR_INVALID_SESSION);
  return *found;
}

PerformanceHandle& handle_in(const PerformanceSession& session, MPI_T_pvar_handle handle) {
  PerformanceHandle* found = session.handles.find(handle);
  demand(found != nullptr, MPI_T_ERR_INVALID_HANDLE);
  return *found;
}

/// The body gets each handle that is meant and can be changed. Where one is named that cannot, that is `refusal`; of
/// all handles of a session those are left out.
template <typename Body>
int change(MPI_T_pvar_session session, MPI_T_pvar_handle handle, int refusal, const Body& body) noexcept {
  return tool_call([&](ToolState& state) {
    PerformanceSession& owner = performance_session_of(state, session);
    if (handle == MPI_T_PVAR_ALL_HANDLES) {
      for (const auto& each : owner.handles)
        if (!each->is_fixed()) body(*each);
      return;
    }
    PerformanceHandle& named = handle_in(owner, handle);
    demand(!named.is_fixed(), refusal);
    body(named);
  });
}

}  // namespace

int t_pvar_get_num(int* num_pvar) noexcept {
  return tool_call([&](ToolState&) {
    demand_place(num_pvar);
    *num_pvar = static_cast<int>(performance_variables().size());
  });
}

int t_pvar_get_index(const char* name, int var_class, int* pvar_index) noexcept {
  return tool_call([&](ToolState&) {
    demand_place(name);
    demand_place(pvar_index);
    *pvar_index = index_in(performance_variables(), [&](const PerformanceVariable& one) {
      return one.name == name && one.variable_class == var_class;
    });
  });
}

int t_pvar_get_info(int pvar_index, char* name, int* name_len, int* verbosity, int* var_class, MPI_Datatype* datatype,
                    MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind, int* readonly, int* continuous,
                    int* atomic) noexcept {
  return tool_call([&](ToolState&) {
    const PerformanceVariable& variable = entry_at(performance_variables(), pvar_index);
    const int fixed = variable.is_counter() ? 0 : 1;
    give_text(variable.name, name, name_len);
    give(verbosity, variable.verbosity);
    give(var_class, variable.variable_class);
    give(datatype, MPI_UNSIGNED_LONG_LONG);
    give(enumtype, MPI_T_ENUM_NULL);
    give_text(variable.description, desc, desc_len);
    give<int>(bind, MPI_T_BIND_NO_OBJECT);
    give(readonly, fixed);
    give(continuous, fixed);
    give(atomic, 1 - fixed);
  });
}

int t_pvar_session_create(MPI_T_pvar_session* session) noexcept {
  return tool_call([&](ToolState& state) {
    demand_place(static_cast<const void*>(session));
    *session = handle_of<MPI_T_pvar_session>(state.sessions.make());
  });
}

int t_pvar_session_free(MPI_T_pvar_session* session) noexcept {
  return tool_call([&](ToolState& state) {
    demand_place(static_cast<const void*>(session));
    demand(state.sessions.erase(*session), MPI_T_ERR_INVALID_SESSION);
    *session = MPI_T_PVAR_SESSION_NULL;
  });
}

int t_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void*, MPI_T_pvar_handle* handle,
                        int* count) noexcept {
  return tool_call([&](ToolState& state) {
    PerformanceSession& owner = performance_session_of(state, session);
    demand_place(static_cast<const void*>(handle));
    const PerformanceVariable& variable = entry_at(performance_variables(), pvar_index);
    *handle = handle_of<MPI_T_pvar_handle>(owner.handles.make(variable));
    give(count, 1);
  });
}

int t_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) noexcept {
  return tool_call([&](ToolState& state) {
    PerformanceSession& owner = performance_session_of(state, session);
    demand_place(static_cast<const void*>(handle));
    demand(owner.handles.erase(*handle), MPI_T_ERR_INVALID_HANDLE);
    *handle = MPI_T_PVAR_HANDLE_NULL;
  });
}

int t_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) noexcept {
  return change(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP, [](PerformanceHandle& one) { one.start(); });
}

int t_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) noexcept {
  return change(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP, [](PerformanceHandle& one) { one.stop(); });
}

int t_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) noexcept {
  return change(session, handle, MPI_T_ERR_PVAR_NO_WRITE, [](PerformanceHandle& one) { one.write(0); });
}

// These are of one handle: MPI_T_PVAR_ALL_HANDLES is none.

int t_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) noexcept {
  return tool_call([&](ToolState& state) {
    const PerformanceHandle& one = handle_in(performance_session_of(state, session), handle);
    demand_place(buf);
    *static_cast<unsigned long long*>(buf) = one.read();
  });
}

int t_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void* buf) noexcept {
  return tool_call([&](ToolState& state) {
    PerformanceHandle& one = handle_in(performance_session_of(state, session), handle);
    demand(!one.is_fixed(), MPI_T_ERR_PVAR_NO_WRITE);
    demand_place(buf);
    one.write(*static_cast<const unsigned long long*>(buf));
  });
}

int t_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) noexcept {
  return tool_call([&](ToolState& state) {
    PerformanceHandle& one = handle_in(performance_session_of(state, session), handle);
    demand(!one.is_fixed(), MPI_T_ERR_PVAR_NO_WRITE);
    demand_place(buf);
    *static_cast<unsigned long long*>(buf) = one.read();
    one.write(0);
  });
}

}  // namespace brant::mpi::api
