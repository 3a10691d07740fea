#include "bindings/python/stream_handle.h"

#include <cstdint>
#include <string>

#include "bindings/python/process.h"
#include "brant/device.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

constexpr std::uintptr_t kDefaultStream = 1;  // CU_STREAM_LEGACY: brant takes no null

}  // namespace

StreamHandle stream_of(nb::handle stream) {
  nb::object number = nb::borrow(stream);
  if (nb::hasattr(stream, "__cuda_stream__")) {
    number = nb::object(stream.attr("__cuda_stream__")())[1];
  } else {
    for (const char* name : {"cuda_stream", "ptr", "handle"}) {
      if (!nb::hasattr(stream, name)) continue;
      number = stream.attr(name);
      break;
    }
  }
  // Numba has a number of ctypes, whose value is None for the default stream.
  if (nb::hasattr(number, "value")) number = number.attr("value");
  if (number.is_none() && !stream.is_none()) number = nb::int_(0);
  if (!nb::isinstance<nb::int_>(number))
    throw Error(Status::invalid_argument, "an object of type " + std::string(nb::type_name(stream.type()).c_str()) +
                                              " is no stream: pass one of PyTorch, CuPy, cuda.core or brant, or the "
                                              "number of a CUstream");
  auto handle = nb::cast<std::uintptr_t>(number);
  if (handle == 0 && Process::get().runtime().device_kind() == MemoryKind::cuda) handle = kDefaultStream;
  return reinterpret_cast<StreamHandle>(handle);
}

void put_in_order(Stream& first, Stream& second) {
  Event event = Process::get().runtime().device().create_event();
  Status status = first.record(event);
  if (status == Status::ok) status = second.wait_for(event);
  if (status != Status::ok)
    throw Error(status, "a stream cannot wait for the one that computes an array: " + std::string(status_text(status)));
}

}  // namespace brant::python
