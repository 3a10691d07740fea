#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "models/mpi/types/abi.h"
#include "models/mpi/types/basic_types.h"
#include "models/mpi/types/bounds.h"
#include "models/mpi/types/construction.h"
#include "models/mpi/types/datatype_ref.h"
#include "models/mpi/types/layout.h"

namespace brant::mpi {

/// What the owner of handles hangs on a type: its attributes. Destroyed with the type.
class TypeAttachment {
 public:
  virtual ~TypeAttachment() = default;
};

/// A datatype of MPI. Counts its references, and never changes once it is made, but for its name, its attachment and
/// whether it is committed: any thread may use it, and who sets a name or an attachment sees to it that nobody else
/// does so. All sizes are bytes in 63 bits; calls with `int` ask whether they fit.
///
/// Made by the functions of constructors.h; predefined ones are there from the start and never go.
class Datatype {
 public:
  /// What a constructor has worked out.
  struct Facts {
    Construction construction;
    Placed layout;  ///< What lies together is one run, whatever it is.
    Placed told;    ///< Each run is of one basic type. The same tree where the whole type is.
    Bounds bounds;
    std::uint32_t alignment = 1;
    std::uint32_t levels = 1;           ///< How deep types, and loops of arrays, are nested.
    const Datatype* element = nullptr;  ///< The predefined type that all elements have; null: none, or several.
    bool mixed = false;                 ///< Elements of several predefined types.
    std::string name;
  };
  enum class Origin : std::uint8_t { derived, predefined };
  /// `basic`: the row of a named type. Predefined without one are those that a call finds (MPI_Type_create_f90_real).
  explicit Datatype(Facts facts, Origin origin = Origin::derived, const BasicType* basic = nullptr);
  ~Datatype() { mark_ = 0; }
  Datatype(const Datatype&) = delete;
  Datatype& operator=(const Datatype&) = delete;

  [[nodiscard]] MPI_Datatype handle() const noexcept;
  /// MPI_Type_free and MPI_Type_commit do nothing to these; the former is an error.
  [[nodiscard]] bool predefined() const noexcept { return predefined_; }
  /// Of named types; else null.
  [[nodiscard]] const BasicType* basic() const noexcept { return basic_; }

  /// Bytes of one item when it is packed.
  [[nodiscard]] Count size() const noexcept { return size_; }
  [[nodiscard]] Count lb() const noexcept { return lb_; }
  [[nodiscard]] Count ub() const noexcept { return lb_ + extent_; }
  [[nodiscard]] Count extent() const noexcept { return extent_; }
  [[nodiscard]] Count true_lb() const noexcept { return facts_.layout.low(); }
  [[nodiscard]] Count true_extent() const noexcept { return facts_.layout.high() - facts_.layout.low(); }
  /// Any number of items is so many times `size()` bytes from the buffer's address on: nothing need be packed.
  [[nodiscard]] bool contiguous() const noexcept { return contiguous_; }
  /// Bytes of so many items; -1: 63 bits do not hold them.
  [[nodiscard]] Count bytes_of(Count items) const noexcept;

  [[nodiscard]] const Placed& layout() const noexcept { return facts_.layout; }
  [[nodiscard]] const Placed& told_layout() const noexcept { return facts_.told; }
  [[nodiscard]] const Bounds& bounds() const noexcept { return facts_.bounds; }
  [[nodiscard]] std::uint32_t alignment() const noexcept { return facts_.alignment; }
  [[nodiscard]] std::uint32_t levels() const noexcept { return facts_.levels; }
  /// The predefined type that it consists of; null: of several, or of none. For accumulates.
  [[nodiscard]] const Datatype* element() const noexcept { return facts_.element; }
  [[nodiscard]] bool mixed() const noexcept { return facts_.mixed; }
  [[nodiscard]] const Construction& construction() const noexcept { return facts_.construction; }

  /// Types are flattened when they are made; this says only that the program may communicate with it.
  void commit() noexcept { committed_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool committed() const noexcept { return committed_.load(std::memory_order_relaxed); }

  [[nodiscard]] const std::string& name() const noexcept { return facts_.name; }
  void set_name(std::string name) { facts_.name = std::move(name); }

  [[nodiscard]] TypeAttachment* attachment() const noexcept { return attachment_.get(); }
  void attach(std::unique_ptr<TypeAttachment> attachment) noexcept { attachment_ = std::move(attachment); }

  void retain() noexcept {
    if (!predefined_) references_.fetch_add(1, std::memory_order_relaxed);
  }
  /// The last one deletes it, and lets go of the types that it was made of.
  void release() noexcept;
  /// For tests and for messages about what was not freed.
  [[nodiscard]] std::uint32_t references() const noexcept { return references_.load(std::memory_order_relaxed); }

 private:
  friend Datatype* find_datatype(MPI_Datatype handle) noexcept;
  static constexpr std::uint64_t kMark = 0x6272'616e'7454'7970;

  std::uint64_t mark_ = kMark;  ///< First, so that other objects behind a wrong handle are told apart.
  Facts facts_;
  const BasicType* const basic_ = nullptr;
  const bool predefined_ = false;
  bool contiguous_ = false;
  std::atomic<bool> committed_ = false;
  std::atomic<std::uint32_t> references_ = 1;
  Count size_ = 0;
  Count lb_ = 0;
  Count extent_ = 0;
  std::unique_ptr<TypeAttachment> attachment_;
};

/// The type of a handle; null: MPI_DATATYPE_NULL, or no handle of a type. A handle that was freed may be taken for one.
[[nodiscard]] Datatype* find_datatype(MPI_Datatype handle) noexcept;

/// A predefined type by the number of its handle, which must be one.
[[nodiscard]] Datatype& predefined_type(std::uint16_t number) noexcept;

inline DatatypeRef::DatatypeRef(Datatype* type) noexcept : type_(type) {
  if (type_ != nullptr) type_->retain();
}
inline DatatypeRef::~DatatypeRef() {
  if (type_ != nullptr) type_->release();
}

}  // namespace brant::mpi
