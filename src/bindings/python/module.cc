#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "bindings/python/array.h"
#include "bindings/python/bell.h"
#include "bindings/python/calling.h"
#include "bindings/python/channel.h"
#include "bindings/python/errors.h"
#include "bindings/python/exchange.h"
#include "bindings/python/foreign.h"
#include "bindings/python/global_memory.h"
#include "bindings/python/halo.h"
#include "bindings/python/loop.h"
#include "bindings/python/meeting.h"
#include "bindings/python/member.h"
#include "bindings/python/process.h"
#include "bindings/python/program.h"
#include "bindings/python/reducing.h"
#include "bindings/python/remote_calls.h"
#include "bindings/python/segment.h"
#include "bindings/python/team.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

std::optional<GpuChoice> gpu_of(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  if (*name == "auto") return GpuChoice::automatic;
  if (*name == "none") return GpuChoice::none;
  if (*name == "emulated") return GpuChoice::emulated;
  if (*name == "cuda") return GpuChoice::cuda;
  throw Error(Status::invalid_argument, "gpu='" + *name + "': use auto, none, emulated or cuda");
}

std::optional<Joining> joining_of(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  if (*name == "off") return Joining::off;
  if (*name == "host") return Joining::this_host;
  if (*name == "network") return Joining::network;
  throw Error(Status::invalid_argument, "joining='" + *name + "': use off, host or network");
}

void bind_process(nb::module_& module) {
  module.def(
      "init",
      [](const std::optional<std::string>& gpu, const std::optional<std::string>& joining, const nb::object& via) {
        Process::get().start(gpu_of(gpu), joining_of(joining), via.is_none() ? nullptr : make_exchange(via));
      },
      nb::arg("gpu") = nb::none(), nb::arg("joining") = nb::none(), nb::arg("via") = nb::none());
  module.def("end", [](bool failed) { Process::get().end(failed); });
  module.def("is_running", [] { return Process::get().is_running(); });
  module.def("rank", [] { return Process::get().runtime().rank().value; });
  module.def("size", [] { return Process::get().runtime().size(); });
  module.def("local_rank", [] { return Process::get().runtime().local_rank(); });
  module.def("local_size", [] { return Process::get().runtime().local_size(); });
  module.def("network", [] { return Process::get().runtime().network(); });
  module.def("device", [] { return std::string(memory_kind_name(Process::get().runtime().device_kind())); });
  // For python/brant/bench.py.
  module.def("bytes_by_path", [] {
    const PathUse use = Process::get().runtime().path_use();
    nb::dict bytes;
    for (std::size_t path = 0; path < use.bytes.size(); ++path)
      bytes[std::string(path_name(static_cast<Path>(path))).c_str()] = use.bytes[path];
    return bytes;
  });
  // For another event loop: python/brant/_asyncio.py.
  module.def("turn", [](double spin) {
    return Process::get().turn(std::chrono::nanoseconds(static_cast<std::int64_t>(spin * 1e9)));
  });
  module.def("arm", [] { return Process::get().arm(); });
  module.def("fd", [] { return Process::get().runtime().worker().fd(); });
}

}  // namespace
}  // namespace brant::python

NB_MODULE(_brant, module) {
  nb::set_leak_warnings(false);  // arrays and channels of a program may outlive the interpreter's end
  brant::python::register_errors();
  brant::python::bind_process(module);
  brant::python::bind_loop(module);
  brant::python::bind_array(module);
  brant::python::bind_bells(module);
  brant::python::bind_channel(module);
  brant::python::bind_segments(module);
  brant::python::bind_global_memory(module);
  brant::python::bind_halo(module);
  brant::python::bind_teams(module);
  brant::python::bind_meetings(module);
  brant::python::bind_members(module);
  brant::python::bind_calling(module);
  brant::python::bind_program(module);
  brant::python::bind_reducing(module);
  brant::python::bind_remote_calls(module);
  brant::python::bind_foreign(module);
}
