#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "models/mpi/export_forms.h"
#include "models/mpi/mpich/handles.h"
#include "models/mpi/mpich/status.h"

/// Arguments of calls that carry something back, or are arrays. Each lives as long as the call that it is made for:
/// it has what the standard's ABI wants, and as it goes it stores what that has become.
namespace brant::mpi::mpich {

// NOLINTBEGIN(google-explicit-constructor): each stands in the place of the argument that it is converted to.

/// No call stores it.
inline constexpr int kUntouched = kMeaningless + 1;

/// Room for as many of T as a call has, mostly few. Not for what has a destructor.
template <typename T>
class Room {
 public:
  explicit Room(std::int64_t count) noexcept : count_(count > 0 ? static_cast<std::size_t>(count) : 0) {
    if (count_ <= kFew) return;
    many_.reset(new (std::nothrow) T[count_]);
    if (many_ == nullptr) api::end_without_memory();
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] T* data() noexcept { return many_ != nullptr ? many_.get() : few_.data(); }
  T& operator[](std::size_t index) noexcept { return data()[index]; }

 private:
  static constexpr std::size_t kFew = 32;
  std::size_t count_;
  std::array<T, kFew> few_;
  std::unique_ptr<T[]> many_;
};

// Handles
// -------------------------------------------------------------------------------------------------------------------

/// A handle that the call makes.
template <typename Handle>
class Made {
 public:
  explicit Made(Foreign<Handle>* place) noexcept : place_(place) {}
  ~Made() {
    if (made_ != nullptr) *place_ = hand_out(made_);
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  operator Handle*() noexcept { return place_ != nullptr ? &made_ : nullptr; }

 private:
  Foreign<Handle>* const place_;
  Handle made_ = nullptr;
};

/// A handle that the call may free.
template <typename Handle>
class Changed {
 public:
  explicit Changed(Foreign<Handle>* place) noexcept : place_(place) {
    if (place_ != nullptr) now_ = before_ = to_abi<Handle>(*place_);
  }
  ~Changed() {
    if (now_ == before_) return;
    take_back<Handle>(*place_);
    *place_ = hand_out(now_);
  }
  Changed(const Changed&) = delete;
  Changed& operator=(const Changed&) = delete;
  operator Handle*() noexcept { return place_ != nullptr ? &now_ : nullptr; }

 private:
  Foreign<Handle>* const place_;
  Handle before_ = nullptr;
  Handle now_ = nullptr;
};

/// Handles that the call only reads.
template <typename Handle>
class Handles {
 public:
  Handles(const Foreign<Handle>* foreign, std::int64_t count) noexcept
      : given_(foreign != nullptr), handles_(given_ ? count : 0) {
    for (std::size_t i = 0; i < handles_.count(); ++i) handles_[i] = to_abi<Handle>(foreign[i]);
  }
  operator const Handle*() noexcept { return given_ ? handles_.data() : nullptr; }

 private:
  const bool given_;
  Room<Handle> handles_;
};

inline constexpr int kRequestNull = detail::kByNumber<MPI_Request>[0x180];

/// Requests that the call may free.
class ChangedRequests {
 public:
  ChangedRequests(int* foreign, std::int64_t count) noexcept
      : foreign_(foreign), requests_(foreign != nullptr ? count : 0) {
    for (std::size_t i = 0; i < requests_.count(); ++i) requests_[i] = to_abi<MPI_Request>(foreign[i]);
  }
  ~ChangedRequests() {
    for (std::size_t i = 0; i < requests_.count(); ++i) {
      if (requests_[i] != MPI_REQUEST_NULL || foreign_[i] == kRequestNull) continue;
      take_back<MPI_Request>(foreign_[i]);
      foreign_[i] = kRequestNull;
    }
  }
  ChangedRequests(const ChangedRequests&) = delete;
  ChangedRequests& operator=(const ChangedRequests&) = delete;
  operator MPI_Request*() noexcept { return foreign_ != nullptr ? requests_.data() : nullptr; }

 private:
  int* const foreign_;
  Room<MPI_Request> requests_;
};

// Statuses
// -------------------------------------------------------------------------------------------------------------------

inline bool is_ignored(const Status* place) noexcept {
  return reinterpret_cast<std::intptr_t>(place) == kStatusIgnore || place == nullptr;
}

/// What calls have not stored stays as it was.
inline void expect(MPI_Status& status) noexcept { status.MPI_SOURCE = status.MPI_ERROR = kUntouched; }
inline void carry_back(const MPI_Status& status, Status& place) noexcept {
  if (status.MPI_SOURCE != kUntouched) store_status(status, place);
  if (status.MPI_ERROR != kUntouched) place.MPI_ERROR = code_to_mpich(status.MPI_ERROR);
}

/// A status that the call stores.
class ToldStatus {
 public:
  explicit ToldStatus(Status* place) noexcept : place_(place) { expect(status_); }
  ~ToldStatus() {
    if (!is_ignored(place_)) carry_back(status_, *place_);
  }
  ToldStatus(const ToldStatus&) = delete;
  ToldStatus& operator=(const ToldStatus&) = delete;
  operator MPI_Status*() noexcept { return is_ignored(place_) ? MPI_STATUS_IGNORE : &status_; }

 private:
  Status* const place_;
  MPI_Status status_;
};

class ToldStatuses {
 public:
  ToldStatuses(Status* places, std::int64_t count) noexcept
      : places_(places), statuses_(is_ignored(places) ? 0 : count) {
    for (std::size_t i = 0; i < statuses_.count(); ++i) expect(statuses_[i]);
  }
  ~ToldStatuses() {
    for (std::size_t i = 0; i < statuses_.count(); ++i) carry_back(statuses_[i], places_[i]);
  }
  ToldStatuses(const ToldStatuses&) = delete;
  ToldStatuses& operator=(const ToldStatuses&) = delete;
  operator MPI_Status*() noexcept { return is_ignored(places_) ? MPI_STATUSES_IGNORE : statuses_.data(); }

 private:
  Status* const places_;
  Room<MPI_Status> statuses_;
};

/// A status that the call reads.
class GivenStatus {
 public:
  explicit GivenStatus(const Status* place) noexcept : given_(!is_ignored(place)) {
    if (given_) status_ = status_to_abi(*place);
  }
  operator const MPI_Status*() const noexcept { return given_ ? &status_ : MPI_STATUS_IGNORE; }

 private:
  const bool given_;
  MPI_Status status_;
};

/// A status that the call changes.
class ChangedStatus {
 public:
  explicit ChangedStatus(Status* place) noexcept : place_(place) {
    if (!is_ignored(place_)) status_ = status_to_abi(*place_);
  }
  ~ChangedStatus() {
    if (!is_ignored(place_)) *place_ = status_to_mpich(status_);
  }
  ChangedStatus(const ChangedStatus&) = delete;
  ChangedStatus& operator=(const ChangedStatus&) = delete;
  operator MPI_Status*() noexcept { return is_ignored(place_) ? MPI_STATUS_IGNORE : &status_; }

 private:
  Status* const place_;
  MPI_Status status_;
};

// Numbers
// -------------------------------------------------------------------------------------------------------------------

/// A number that the call tells, and what it is in MPICH's ABI.
template <auto Translate>
class Told {
 public:
  explicit Told(int* place) noexcept : place_(place) {}
  ~Told() {
    if (value_ != kUntouched) *place_ = Translate(value_);
  }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;
  operator int*() noexcept { return place_ != nullptr ? &value_ : nullptr; }

 private:
  int* const place_;
  int value_ = kUntouched;
};

/// The same of several.
template <auto Translate>
class ToldAll {
 public:
  ToldAll(int* places, std::int64_t count) noexcept : places_(places), values_(places != nullptr ? count : 0) {
    std::fill_n(values_.data(), values_.count(), kUntouched);
  }
  ~ToldAll() {
    for (std::size_t i = 0; i < values_.count(); ++i)
      if (values_[i] != kUntouched) places_[i] = Translate(values_[i]);
  }
  ToldAll(const ToldAll&) = delete;
  ToldAll& operator=(const ToldAll&) = delete;
  operator int*() noexcept { return places_ != nullptr ? values_.data() : nullptr; }

 private:
  int* const places_;
  Room<int> values_;
};

/// The call stores them in MPICH's numbers.
inline int* error_codes_of_spawn(int* places) noexcept {
  api::tell_spawn_errors_as(code_to_mpich(MPI_ERR_SPAWN));
  return places;
}

/// Numbers that the call reads.
template <auto Translate>
class Given {
 public:
  Given(const int* values, std::int64_t count) noexcept
      : given_(values != nullptr), values_(values != nullptr ? count : 0) {
    for (std::size_t i = 0; i < values_.count(); ++i) values_[i] = Translate(values[i]);
  }
  operator const int*() noexcept { return given_ ? values_.data() : nullptr; }

 private:
  const bool given_;
  Room<int> values_;
};

/// A key that the call frees.
class ChangedKey {
 public:
  explicit ChangedKey(int* place) noexcept : place_(place), key_(place != nullptr ? key_to_abi(*place) : 0) {}
  ~ChangedKey() {
    if (place_ != nullptr) *place_ = key_to_mpich(key_);
  }
  ChangedKey(const ChangedKey&) = delete;
  ChangedKey& operator=(const ChangedKey&) = delete;
  operator int*() noexcept { return place_ != nullptr ? &key_ : nullptr; }

 private:
  int* const place_;
  int key_;
};

/// An enumeration of the tools interface, which is an int in both ABIs.
template <typename Enum, auto Translate>
class ToldEnum {
 public:
  explicit ToldEnum(Enum* place) noexcept : place_(place) {}
  ~ToldEnum() {
    if (value_ != static_cast<Enum>(kNone)) *place_ = static_cast<Enum>(Translate(static_cast<int>(value_)));
  }
  ToldEnum(const ToldEnum&) = delete;
  ToldEnum& operator=(const ToldEnum&) = delete;
  operator Enum*() noexcept { return place_ != nullptr ? &value_ : nullptr; }

 private:
  static constexpr int kNone = 0;
  Enum* const place_;
  Enum value_ = static_cast<Enum>(kNone);
};

/// A count that the call tells or changes: of the small form, where the call has the large one.
template <typename Small, typename Large>
class ToldCount {
 public:
  explicit ToldCount(Small* place) noexcept : count_(place) {}
  ~ToldCount() { count_.store(MPI_SUCCESS); }
  ToldCount(const ToldCount&) = delete;
  ToldCount& operator=(const ToldCount&) = delete;
  operator Large*() noexcept { return count_.wide(); }

 private:
  api::Narrowed<Small, Large> count_;
};

// Places in memory
// -------------------------------------------------------------------------------------------------------------------

/// Where a call stores the buffer that it has detached.
class DetachedBuffer {
 public:
  explicit DetachedBuffer(void* place) noexcept : place_(place) {}
  ~DetachedBuffer() {
    if (detached_ == kNothing) return;
    void* const automatic = reinterpret_cast<void*>(std::intptr_t{kBufferAutomatic});
    void* const buffer = detached_ == MPI_BUFFER_AUTOMATIC ? automatic : detached_;
    std::memcpy(place_, static_cast<const void*>(&buffer), sizeof buffer);
  }
  DetachedBuffer(const DetachedBuffer&) = delete;
  DetachedBuffer& operator=(const DetachedBuffer&) = delete;
  operator void*() noexcept { return place_ != nullptr ? static_cast<void*>(&detached_) : nullptr; }

 private:
  static inline void* const kNothing = MPI_IN_PLACE;
  void* const place_;
  void* detached_ = kNothing;
};

/// A text for which MPICH's programs have less room than those of the standard's ABI: cut to it.
template <std::size_t Given, std::size_t Wanted>
class ToldText {
 public:
  explicit ToldText(char* place) noexcept : place_(place) { text_[0] = kNothing; }
  ~ToldText() {
    if (place_ == nullptr || text_[0] == kNothing) return;
    const std::size_t length = ::strnlen(text_.data(), Given - 1);
    std::memcpy(place_, text_.data(), length);
    place_[length] = '\0';
  }
  ToldText(const ToldText&) = delete;
  ToldText& operator=(const ToldText&) = delete;
  operator char*() noexcept { return place_ != nullptr ? text_.data() : nullptr; }

 private:
  static constexpr char kNothing = '\x7f';
  char* const place_;
  std::array<char, Wanted> text_;
};

// NOLINTEND(google-explicit-constructor)

}  // namespace brant::mpi::mpich
