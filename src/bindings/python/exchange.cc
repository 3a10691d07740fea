#include "bindings/python/exchange.h"

#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "brant/base/status.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

/// What Python raised has to be read with the GIL, so here.
template <typename Call>
auto with_gil(Call call) {
  const nb::gil_scoped_acquire gil;
  try {
    return call();
  } catch (const std::exception& error) {
    throw Error(Status::io_error, std::string("what was given as via= failed: ") + error.what());
  }
}

/// A number of the communicator, which is an int that fits.
int number_of(nb::handle value, const char* what) {
  int number = 0;
  if (!nb::try_cast(value, number))
    throw std::invalid_argument(std::string(what) + " gave " + nb::cast<std::string>(nb::repr(value)) +
                                ", which is no rank or size");
  return number;
}

class PythonExchange final : public Exchange {
 public:
  explicit PythonExchange(nb::object exchange) : exchange_(std::move(exchange)) {}
  PythonExchange(const PythonExchange&) = delete;
  PythonExchange& operator=(const PythonExchange&) = delete;
  ~PythonExchange() override {
    const nb::gil_scoped_acquire gil;
    exchange_.reset();
  }

  int rank() override {
    return with_gil([&] { return number_of(exchange_.attr("rank")(), "Get_rank"); });
  }
  int size() override {
    return with_gil([&] { return number_of(exchange_.attr("size")(), "Get_size"); });
  }
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override {
    return with_gil([&] {
      std::vector<std::vector<std::byte>> all;
      for (const nb::handle one : exchange_.attr("allgather")(nb::bytes(mine.data(), mine.size()))) {
        if (!nb::isinstance<nb::bytes>(one))
          throw std::invalid_argument("allgather brought an object of type " +
                                      std::string(nb::type_name(one.type()).c_str()) + ", where each gave bytes");
        const auto bytes = nb::borrow<nb::bytes>(one);
        const auto* data = reinterpret_cast<const std::byte*>(bytes.c_str());
        all.emplace_back(data, data + bytes.size());
      }
      return all;
    });
  }
  void start_barrier() override {
    with_gil([&] { exchange_.attr("start_barrier")(); });
  }
  bool barrier_done() override {
    return with_gil([&] { return nb::cast<bool>(exchange_.attr("barrier_done")()); });
  }

 private:
  nb::object exchange_;
};

}  // namespace

std::unique_ptr<Exchange> make_exchange(const nb::object& via) {
  return std::make_unique<PythonExchange>(nb::module_::import_("brant._via").attr("exchange_of")(via));
}

}  // namespace brant::python
