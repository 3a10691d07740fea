#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "bindings/python/one_operation.h"
#include "bindings/python/view.h"
#include "brant/brant.h"

namespace brant::python {

/// An array that other processes may read and write, held while it is exposed.
class ExposedArray {
 public:
  explicit ExposedArray(nanobind::handle array);
  ExposedArray(const ExposedArray&) = delete;
  ExposedArray& operator=(const ExposedArray&) = delete;
  ~ExposedArray();

  void close();
  [[nodiscard]] nanobind::bytes ticket() const;
  [[nodiscard]] std::size_t bytes() const noexcept { return held_->view.bytes(); }
  [[nodiscard]] bool is_open() const noexcept { return held_->segment.is_open(); }

 private:
  struct Held {
    View view;
    Segment segment;  ///< Goes before the array does.
  };
  std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

/// An array of another process, to put into and to get from.
class RemoteArray {
 public:
  RemoteArray(int peer, const nanobind::bytes& ticket);
  RemoteArray(const RemoteArray&) = delete;
  RemoteArray& operator=(const RemoteArray&) = delete;
  ~RemoteArray();

  [[nodiscard]] nanobind::object put(nanobind::handle array, std::uint64_t offset, const nanobind::object& timeout);
  [[nodiscard]] nanobind::object get(nanobind::handle out, std::uint64_t offset, const nanobind::object& timeout);
  void close();

  [[nodiscard]] RemoteSegment& segment() noexcept { return *segment_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] int peer() const noexcept { return peer_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return segment_->size(); }

 private:
  void check_usable() const;

  int peer_;
  std::string name_;
  std::shared_ptr<RemoteSegment> segment_;
};

/// A put or get under way: holds its array until it has ended.
class Transferring final : public OneOperation {
 public:
  Transferring(RemoteArray& target, nanobind::object target_object, RmaDirection direction) noexcept
      : target_(target), target_object_(std::move(target_object)), direction_(direction) {}

  void start(nanobind::handle array, std::uint64_t offset, const nanobind::object& timeout);
  PyObject* take() override;

 private:
  void finish() override;

  RemoteArray& target_;
  nanobind::object target_object_;
  RmaDirection direction_;
  nanobind::object array_;
  View view_;
  std::unique_ptr<std::byte[]> packed_;
};

void bind_segments(nanobind::module_& module);

}  // namespace brant::python
