#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>

#include "brant/base/api.h"
#include "brant/mpi/mpi.h"

/// What the exported functions need (exports.cc, which is made from the table of the functions).

#define MPI_EXPORT [[gnu::visibility("default")]]

namespace brant::mpi::api {

/// How many entries arrays of a call have; 0 where the call is wrong, which it finds out itself.
BRANT_API std::int64_t member_count(MPI_Comm comm) noexcept;
BRANT_API std::int64_t group_count(MPI_Comm comm) noexcept;
BRANT_API std::int64_t member_count_at_root(MPI_Comm comm, int root) noexcept;
BRANT_API std::int64_t source_count(MPI_Comm comm) noexcept;
BRANT_API std::int64_t destination_count(MPI_Comm comm) noexcept;

/// As long as one lives, this thread is in a call whose counts are `int`.
class BRANT_API SmallForm {
 public:
  SmallForm() noexcept;
  ~SmallForm();
  SmallForm(const SmallForm&) = delete;
  SmallForm& operator=(const SmallForm&) = delete;
};

/// For what is not implemented: MPI_ERR_UNSUPPORTED_OPERATION through the error handler.
BRANT_API int refuse(const char* function) noexcept;
BRANT_API int refuse(const char* function, MPI_Comm comm) noexcept;
/// Errors of files are given back unless the program asks for something else, which it cannot without files.
inline int refuse_file(const char*) noexcept { return MPI_ERR_UNSUPPORTED_OPERATION; }
template <typename T>
T refuse_result(const char* function) noexcept {
  static_cast<void>(refuse(function));
  return T{};
}
/// What calls that spawn store for what was not started, in the numbers of the program's ABI.
BRANT_API void tell_spawn_errors_as(int code) noexcept;

/// Ends the job: there is no memory to widen an array.
[[noreturn]] BRANT_API void end_without_memory() noexcept;

/// An array of a small form, as the large form has it. Kept by the call alone.
template <typename Small, typename Large>
class Widened {
 public:
  /// A count that is negative is the call's to refuse.
  Widened(const Small* values, std::int64_t given) noexcept {
    if (values == nullptr) return;
    const auto count = static_cast<std::size_t>(given > 0 ? given : 0);
    if constexpr (sizeof(Small) == sizeof(Large)) {
      data_ = reinterpret_cast<const Large*>(values);
    } else {
      Large* wide = few_.data();
      if (count > few_.size()) {
        many_.reset(new (std::nothrow) Large[count]);
        wide = many_.get();
        if (wide == nullptr) end_without_memory();
      }
      for (std::size_t i = 0; i < count; ++i) wide[i] = values[i];
      data_ = wide;
    }
  }
  [[nodiscard]] const Large* data() const noexcept { return data_; }

 private:
  const Large* data_ = nullptr;
  std::array<Large, sizeof(Small) == sizeof(Large) ? 1 : 64> few_;
  std::unique_ptr<Large[]> many_;
};

/// A result of a small form, which the large form stores. What does not fit is MPI_UNDEFINED.
template <typename Small, typename Large>
class Narrowed {
 public:
  explicit Narrowed(Small* place) noexcept : place_(place), value_(place != nullptr ? *place : 0) {}
  [[nodiscard]] Large* wide() noexcept { return place_ != nullptr ? &value_ : nullptr; }
  void store(int outcome) noexcept {
    if (outcome != MPI_SUCCESS || place_ == nullptr) return;
    const bool fits = value_ >= std::numeric_limits<Small>::min() && value_ <= std::numeric_limits<Small>::max();
    *place_ = fits ? static_cast<Small>(value_) : static_cast<Small>(MPI_UNDEFINED);
  }

 private:
  Small* const place_;
  Large value_;
};

}  // namespace brant::mpi::api
