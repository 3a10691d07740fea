#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "bindings/python/view.h"
#include "brant/halo.h"

namespace brant::python {

class HaloRun;

/// A halo exchange of Python: a HaloExchange, what the elements of its fields are, and the fields that others may write
/// into as long as it is open.
class Halo {
 public:
  /// `format`: of an element, in the language of the module struct. Throws what HaloExchange throws.
  Halo(const HaloOptions& options, std::string format);
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;
  ~Halo();

  [[nodiscard]] nanobind::object run(const nanobind::sequence& fields, std::uint64_t times);
  [[nodiscard]] nanobind::object bind(const nanobind::sequence& fields);
  /// Of the field of this process's i-th block: variables, then z, y, x. Throws invalid_argument for one it lacks.
  [[nodiscard]] std::vector<Py_ssize_t> array_of(int i) const;
  void close();
  [[nodiscard]] bool is_open() const noexcept { return held_->exchange != nullptr; }
  /// Throws invalid_argument once it is closed.
  [[nodiscard]] HaloExchange& exchange() const;

 private:
  friend class HaloRun;
  struct Held {
    std::shared_ptr<std::deque<View>> bound;  ///< Fields that other processes know.
    std::shared_ptr<std::deque<View>> told;   ///< Those that some may know, since making them known has failed.
    std::unique_ptr<HaloExchange> exchange;   ///< Goes before they do.
  };

  [[nodiscard]] nanobind::object start(const nanobind::sequence& fields, bool binds, std::uint64_t times);
  void take_field(View& view, nanobind::handle field, int i) const;
  [[nodiscard]] std::shared_ptr<std::deque<View>> take_fields(const nanobind::sequence& fields) const;
  [[nodiscard]] bool writes_into_others() const noexcept;
  /// Fields that others were to be told of are held as long as they may write into them.
  void keep(std::shared_ptr<std::deque<View>> fields, bool known) noexcept;
  /// The processes before and after this one were given the same options: otherwise it throws.
  brant::Task<void> agree();
  brant::Task<void> steps(std::vector<Buffer> fields, bool binds, std::uint64_t times);

  HaloOptions options_;
  std::string format_;
  std::string described_;  ///< The options, as they are compared and told.
  std::shared_ptr<Held> held_ = std::make_shared<Held>();
  HaloRun* running_ = nullptr;
  bool agreed_ = false;
  std::exception_ptr failure_;  ///< From before the exchange itself knew of one.
};

/// Closes all that are open: they go before the runtime does.
void close_halos();

void bind_halo(nanobind::module_& module);

}  // namespace brant::python
