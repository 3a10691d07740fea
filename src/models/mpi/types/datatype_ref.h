#pragma once

#include <utility>

namespace brant::mpi {

class Datatype;

/// Keeps a type alive. Cheap: a counter in the type, and nothing for predefined ones.
class DatatypeRef {
 public:
  DatatypeRef() noexcept = default;
  /// One more reference to it; null: none.
  explicit DatatypeRef(Datatype* type) noexcept;
  DatatypeRef(const DatatypeRef& other) noexcept : DatatypeRef(other.type_) {}
  DatatypeRef(DatatypeRef&& other) noexcept : type_(std::exchange(other.type_, nullptr)) {}
  DatatypeRef& operator=(DatatypeRef other) noexcept {
    std::swap(type_, other.type_);
    return *this;
  }
  ~DatatypeRef();

  /// Takes over a reference that somebody holds.
  static DatatypeRef adopt(Datatype* type) noexcept {
    DatatypeRef ref;
    ref.type_ = type;
    return ref;
  }
  /// Hands the reference over to the caller: what a call gives to the program as a handle.
  [[nodiscard]] Datatype* release() noexcept { return std::exchange(type_, nullptr); }

  [[nodiscard]] Datatype* get() const noexcept { return type_; }
  Datatype* operator->() const noexcept { return type_; }
  Datatype& operator*() const noexcept { return *type_; }
  explicit operator bool() const noexcept { return type_ != nullptr; }
  friend bool operator==(const DatatypeRef&, const DatatypeRef&) = default;

 private:
  Datatype* type_ = nullptr;
};

}  // namespace brant::mpi
