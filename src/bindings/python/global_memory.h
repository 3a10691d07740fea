#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/python/one_operation.h"
#include "bindings/python/view.h"
#include "brant/brant.h"
#include "brant/pgas.h"

/// Global pointers, for python/brant/_global_memory.py: its pointers come here as where they point to and what lies
/// there.
namespace brant::python {

/// Rank, segment, offset in bytes, name of the kind of memory, device.
using GlobalPlace = std::tuple<int, unsigned, std::uint64_t, std::string, unsigned>;

/// What a pointer of Python points to: so many elements in a row.
struct Target {
  GlobalPlace place;
  std::uint64_t items;
  std::string format;
  std::size_t item_bytes;

  [[nodiscard]] GlobalPtr<std::byte> at() const;
  [[nodiscard]] std::size_t bytes() const noexcept { return items * item_bytes; }
  [[nodiscard]] int rank() const noexcept { return std::get<0>(place); }
  /// What errors call it.
  [[nodiscard]] std::string name() const;
};

/// Memory of this process that global pointers point into: of brant, or an array of the program.
class OwnSegment {
 public:
  OwnSegment(std::uint64_t bytes, const std::string& memory);
  explicit OwnSegment(nanobind::handle array);
  OwnSegment(const OwnSegment&) = delete;
  OwnSegment& operator=(const OwnSegment&) = delete;
  ~OwnSegment();

  [[nodiscard]] GlobalPlace begin() const;
  [[nodiscard]] GlobalPlace allocate(std::uint64_t bytes);
  void deallocate(const GlobalPlace& place);
  /// The memory itself, as an array that keeps it.
  [[nodiscard]] nanobind::object array(const Target& target, const std::vector<Py_ssize_t>& shape) const;
  void publish(const nanobind::object& ranks);
  [[nodiscard]] nanobind::object retire();

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t bytes_used() const noexcept;
  [[nodiscard]] bool is_open() const noexcept { return held_ != nullptr && held_->segment.memory().data != nullptr; }

 private:
  friend class Retiring;
  struct Held {
    View view;
    std::shared_ptr<Memory> memory;
    GlobalSegment segment;  ///< Goes first.
  };
  [[nodiscard]] GlobalSegment& require_open() const;

  std::shared_ptr<Held> held_ = std::make_shared<Held>();
  std::uint64_t bytes_ = 0;
};

/// Until nobody reaches a segment any more: holds its memory.
class Retiring final : public Awaitable {
 public:
  explicit Retiring(std::shared_ptr<OwnSegment::Held> held) noexcept : held_(std::move(held)) {}

  void start();
  PyObject* take() override;
  void advance() override;
  void give_up(Status status) override;

 private:
  std::shared_ptr<OwnSegment::Held> held_;
  std::optional<Future<void>> done_;
  Status given_up_ = Status::ok;
};

/// A put, get, copy, fence, or a wait until a segment is reached: holds its array until it has ended.
class Copying final : public OneOperation {
 public:
  Copying(std::string subject, int peer, const char* what) noexcept
      : subject_(std::move(subject)), peer_(peer), what_(what) {}
  ~Copying() override;

  /// `flag`: a place of the word that is written behind the bytes, its value, and whether it comes behind all that was
  /// posted before; or None. `then`: what is called here
  /// behind the bytes; or None.
  void put(const Target& to, nanobind::handle array, const nanobind::object& flag, const nanobind::object& then,
           double seconds);
  void get(const Target& from, nanobind::handle out, double seconds);
  void copy(const Target& from, const Target& to, const nanobind::object& flag, const nanobind::object& then,
            double seconds);
  void fence(Rank rank, double seconds);
  void reach(const Target& at, double seconds);

  PyObject* take() override;

 private:
  void finish() override;
  /// The array's memory, or what stands for it.
  Buffer take_array(const Target& target, nanobind::handle array, View::Access access);

  std::string subject_;
  int peer_;
  const char* what_;
  nanobind::object array_;
  nanobind::object then_;
  View view_;
  std::unique_ptr<std::byte[]> packed_;
  bool gets_ = false;
  PyObject* error_ = nullptr;  ///< Of what was called behind the bytes.
  bool heard_ = false;         ///< By who awaited it.
};

/// An atomic on one word; gives the value that was there before, and None of a store.
class Fetching final : public OneOperation {
 public:
  Fetching(std::string subject, int peer, const Atomic& atomic) noexcept
      : subject_(std::move(subject)), peer_(peer), atomic_(atomic) {}

  void start(const Target& at, double seconds);
  PyObject* take() override;

 private:
  void finish() override {}

  std::string subject_;
  int peer_;
  Atomic atomic_;
  alignas(8) std::array<std::byte, 8> before_{};
};

/// Before the runtime ends.
void close_space() noexcept;

void bind_global_memory(nanobind::module_& module);

}  // namespace brant::python
