#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "bindings/python/awaitable.h"
#include "brant/brant.h"
#include "brant/device.h"
#include "brant/notify.h"

namespace brant::python {

/// A stream of this process's device, for programs that have no other library that makes them.
class OwnStream {
 public:
  OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream();

  void synchronize();
  [[nodiscard]] std::uintptr_t handle() const noexcept;
  /// There is a stream of this class with that handle.
  [[nodiscard]] static bool is_one(std::uintptr_t handle) noexcept;

 private:
  std::shared_ptr<Stream> stream_;
};

/// A bell of this process, which a kernel, a stream or Python rings.
class BellOfPython {
 public:
  BellOfPython(Notifier& notifier, const std::string& rung_by, const std::string& seen_by);
  BellOfPython(const BellOfPython&) = delete;
  BellOfPython& operator=(const BellOfPython&) = delete;
  ~BellOfPython();

  void ring(std::uint64_t epoch);
  [[nodiscard]] nanobind::object when(std::uint64_t epoch, const nanobind::object& timeout);
  void enqueue_ring(nanobind::handle stream, std::uint64_t epoch);
  void enqueue_wait(nanobind::handle stream, std::uint64_t epoch);
  void close();

  [[nodiscard]] Bell& bell() noexcept { return *bell_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] nanobind::object device() const;
  [[nodiscard]] std::uint64_t epoch() const;
  [[nodiscard]] bool is_open() const noexcept { return bell_->is_open(); }

 private:
  void check_usable() const;
  void require(Status status, const char* what) const;

  std::shared_ptr<Bell> bell_;
  std::string name_;
};

/// Makes bells.
class NotifierOfPython {
 public:
  explicit NotifierOfPython(std::uint32_t bells);
  NotifierOfPython(const NotifierOfPython&) = delete;
  NotifierOfPython& operator=(const NotifierOfPython&) = delete;
  ~NotifierOfPython();

  [[nodiscard]] nanobind::object fan_in(std::uint32_t arrivals);
  [[nodiscard]] Notifier& notifier() noexcept { return *notifier_; }

 private:
  std::shared_ptr<Notifier> notifier_;
};

/// A wait for an epoch.
class Ringing final : public Awaitable {
 public:
  Ringing(BellOfPython& bell, nanobind::object bell_object) noexcept
      : bell_(bell), bell_object_(std::move(bell_object)) {}

  void start(std::uint64_t epoch, const nanobind::object& timeout);
  PyObject* take() override;
  void advance() override;
  void give_up(Status status) override;

 private:
  BellOfPython& bell_;
  nanobind::object bell_object_;
  Op op_;
  Status outcome_ = Status::ok;
  bool pending_ = false;
};

void bind_bells(nanobind::module_& module);

}  // namespace brant::python
