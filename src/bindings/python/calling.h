#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "bindings/python/awaitable.h"
#include "bindings/python/call.h"
#include "brant/chare.h"

/// Calls of chares of Python: from whom, to whom, and what comes back.
namespace brant::python {

/// Whom a call, a result or a value goes to: an element, an array, a section or a future. May travel as bytes.
struct Address {
  Address() noexcept;

  detail::CallbackTarget target;
  std::uint32_t program;  ///< Numbers begin again in each: one of an earlier program is nobody's.

  bool operator==(const Address& other) const noexcept { return target == other.target && program == other.program; }
};

/// Of the program that runs, which `address` must be of. Throws InvalidArgument for one of an earlier program.
detail::Core& core_of(const Address& address);

/// Of a name, or of bytes: the ranks of all elements. Throws InvalidArgument for a name that is none.
Placement placement_of(nanobind::handle placement);

/// What comes back: the answer of a call, the result of a reduction, the value of a future.
class Reply : public Awaitable {
 public:
  /// Without a value it only comes.
  explicit Reply(bool has_value = true) noexcept : has_value_(has_value) {}
  /// Of an entry of C++: its value is of that type, none if it is empty. The text outlives this.
  explicit Reply(std::string_view type) noexcept : has_value_(!type.empty()), type_(type) {}
  ~Reply() override;

  /// What it is told by, once: it is held until then.
  [[nodiscard]] detail::Waiting expect() noexcept;

  PyObject* take() override;
  void advance() override {}
  void give_up(Status status) override;

 protected:
  /// With the GIL. May destroy it.
  virtual void deliver(ReadArchive* answer, const std::exception_ptr& failure) noexcept;

 private:
  bool has_value_;
  std::string_view type_;
  bool unheard_ = false;  ///< It has an exception of a chare, for which nobody has asked.
  PyObject* value_ = nullptr;
  PyObject* error_ = nullptr;
};

void bind_calling(nanobind::module_& module);

}  // namespace brant::python
