#include "models/mpi/tools/control_variables.h"

#include <chrono>

#include "base/env.h"
#include "brant/core/runtime.h"
#include "models/mpi/early_data.h"
#include "models/mpi/tools/tool_call.h"
#include "models/mpi/transport.h"

namespace brant::mpi::tools {

namespace {

using Form = ControlVariable::Form;

ControlVariable text(const char* name, int verbosity, const char* description, const char* fallback = "") {
  return {.name = name, .verbosity = verbosity, .form = Form::text, .description = description, .text = fallback};
}

ControlVariable number(const char* name, int verbosity, const char* description, std::int64_t fallback) {
  return {.name = name, .verbosity = verbosity, .form = Form::number, .description = description, .number = fallback};
}

ControlVariable built_in(const char* name, const char* description, std::uint64_t value) {
  return {.name = name,
          .verbosity = MPI_T_VERBOSITY_TUNER_BASIC,
          .form = Form::built_in,
          .description = description,
          .number = static_cast<std::int64_t>(value)};
}

ControlVariable named(const char* name, int verbosity, const char* description, const NameList& names, int fallback) {
  return {.name = name,
          .verbosity = verbosity,
          .form = Form::named,
          .description = description,
          .number = fallback,
          .names = &names};
}

ControlVariable on_or_off(const char* name, int verbosity, const char* description, bool fallback) {
  return named(name, verbosity, description, switch_names(), fallback ? 1 : 0);
}

void add_settings_of_users(std::vector<ControlVariable>& all, const RuntimeOptions& defaults) {
  const int basic = MPI_T_VERBOSITY_USER_BASIC, detail = MPI_T_VERBOSITY_USER_DETAIL;
  all.push_back(named("BRANT_GPU", basic, "Which devices are used.", gpu_names(), 0));
  all.push_back(named("BRANT_LOG", basic, "What is reported on standard error.", log_names(), 1));
  all.push_back(text("BRANT_TRACE", basic, "The file that a trace of the job is written to; empty: none is."));
  all.push_back(number("BRANT_TRACE_EVENTS", detail, "How many events a trace keeps, the last ones.", 262'144));
  all.push_back(
      on_or_off("BRANT_STATISTICS", detail, "The counters of this process are shown by brant info --jobs.", true));
  all.push_back(number("BRANT_STALL_REPORT_MS", detail,
                       "After how many milliseconds without progress a wait says what it waits for; 0: never.",
                       defaults.stall_report.count()));
  all.push_back(number("BRANT_BOOT_TIMEOUT_MS", detail, "How many milliseconds the start of the job may take.",
                       defaults.boot_timeout.count()));
  all.push_back(
      number("BRANT_LEASE", detail,
             "How many seconds a process of another host may be silent before it counts as dead; 0: for ever.",
             std::chrono::duration_cast<std::chrono::seconds>(defaults.lease).count()));
  all.push_back(on_or_off("BRANT_SHARE_GPU", detail, "Several processes may use one device.", defaults.share_gpu));
  all.push_back(on_or_off("BRANT_MPI_CHECK", detail, "Calls of MPI are checked for what programs do wrong.", false));
  all.push_back(number("BRANT_MPI_RANKS", detail, "How many ranks the job has, where several live in a process.", 0));
  all.push_back(number("BRANT_MPI_STACK", detail, "Bytes of the stack of a rank that shares its process.", 8 << 20));
  all.push_back(number("BRANT_MPI_SHARE_LIBRARIES", detail,
                       "1: ranks of a process may share the variables of the program's own shared libraries.", 0));
}

void add_settings_of_tuners(std::vector<ControlVariable>& all, const RuntimeOptions& defaults) {
  const int basic = MPI_T_VERBOSITY_TUNER_BASIC, every = MPI_T_VERBOSITY_TUNER_ALL;
  all.push_back(named("BRANT_PATH", basic, "The path that transfers take where they can.", path_names(), 0));
  all.push_back(on_or_off("BRANT_SLEEP", basic, "A process that waits may sleep.", defaults.sleep));
  all.push_back(text("BRANT_CALIBRATION", basic,
                     "The file of measured costs that paths are chosen by; auto: the user's, if it fits; off: none.",
                     "auto"));
  all.push_back(on_or_off("BRANT_COPY_SIGNAL", every, "The copy engine of a device sets the word after data.", false));
  all.push_back(text("BRANT_WIRE", every, "What messages travel by: ucx, or loopback in a job of one process.", "ucx"));
  all.push_back(text("BRANT_UCX", every, "Where UCX is taken from; empty: where the loader finds it."));
  all.push_back(on_or_off("BRANT_ALLOW_MIXED_UCX", every, "Processes may have different versions of UCX.", false));
  all.push_back(text("BRANT_BOOTSTRAP", every, "How processes find each other; empty: found out."));
  all.push_back(text("BRANT_PMIX_LIBRARY", every, "The library of PMIx; empty: where the loader finds it."));
}

void add_built_in(std::vector<ControlVariable>& all) {
  all.push_back(built_in("brant_eager_bytes", "Data of host memory up to so many bytes leaves before its receive.",
                         Transport::kEagerMax));
  all.push_back(built_in("brant_eager_bytes_of_devices", "The same of memory of a device, to another process.",
                         EarlyData::kBytesMax));
  all.push_back(built_in("brant_early_bytes_per_receiver",
                         "So many bytes of devices may wait at a process for their receives.",
                         EarlyData::kCredit.bytes));
  all.push_back(built_in("brant_early_messages_per_receiver", "So many messages of that kind may wait there.",
                         EarlyData::kCredit.messages));
}

std::vector<ControlVariable> make_control_variables() {
  const RuntimeOptions defaults;
  std::vector<ControlVariable> all;
  add_settings_of_users(all, defaults);
  add_settings_of_tuners(all, defaults);
  add_built_in(all);
  return all;
}

}  // namespace

MPI_Datatype ControlVariable::datatype() const noexcept {
  if (form == Form::text) return MPI_CHAR;
  return form == Form::named ? MPI_INT : MPI_COUNT;
}

void ControlVariable::read(void* place) const {
  if (form == Form::text) {
    const std::string_view set = env(name);
    int room = kTextMax;
    give_text(set.empty() ? std::string_view(text) : set, static_cast<char*>(place), &room);
  } else if (form == Form::named) {
    *static_cast<int*>(place) = read_named();
  } else {
    *static_cast<MPI_Count*>(place) = read_number();
  }
}

int ControlVariable::read_named() const {
  if (names == &switch_names()) return env_bool(name, number != 0) ? 1 : 0;
  const std::string_view set = env(name);
  if (set.empty()) return static_cast<int>(number);
  const std::optional<int> value = names->value_of(set);
  const bool ignored_if_wrong = names == &log_names();
  demand(value.has_value() || ignored_if_wrong, MPI_T_ERR_INVALID);
  return value.value_or(static_cast<int>(number));
}

MPI_Count ControlVariable::read_number() const {
  if (form == Form::built_in || env(name).empty()) return number;
  const std::optional<std::int64_t> value = env_int(name);
  demand(value.has_value(), MPI_T_ERR_INVALID);
  return *value;
}

const std::vector<ControlVariable>& control_variables() {
  static const auto& all = *new std::vector<ControlVariable>(make_control_variables());
  return all;
}

}  // namespace brant::mpi::tools
