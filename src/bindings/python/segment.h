#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/one_operation.h"
#include "bindings/python/view.h"
#include "brant/brant.h"

namespace brant::python {

/// An array that other processes may read and write, held while it is exposed. One that is read-only here may be
/// exposed to those who only read it.
class ExposedArray {
 public:
  ExposedArray(nanobind::handle array, bool read_only);
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

/// How the bytes of a transfer lie, if not in one run: at most one of the two.
struct Layout {
  /// In the segment, from the offset on: the bytes of a run, and how many there are how far apart, innermost first.
  std::optional<std::pair<std::size_t, std::vector<std::pair<std::size_t, std::ptrdiff_t>>>> steps;
  /// Of the array, whose elements lie together in C order: where the bytes begin, and how many.
  std::optional<std::pair<std::size_t, std::size_t>> part;
};

/// An array of another process, to put into and to get from.
class RemoteArray {
 public:
  RemoteArray(int peer, const nanobind::bytes& ticket);
  RemoteArray(const RemoteArray&) = delete;
  RemoteArray& operator=(const RemoteArray&) = delete;
  ~RemoteArray();

  [[nodiscard]] nanobind::object put(nanobind::handle array, std::uint64_t offset, const nanobind::object& timeout,
                                     const Layout& layout);
  [[nodiscard]] nanobind::object get(nanobind::handle out, std::uint64_t offset, const nanobind::object& timeout,
                                     const Layout& layout);
  void close();

  [[nodiscard]] RemoteSegment& segment() noexcept { return *segment_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] int peer() const noexcept { return peer_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return segment_->size(); }
  /// It is reached without a network: there, elements of a transfer may lie apart.
  [[nodiscard]] bool is_mapped() const;

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

  void start(nanobind::handle array, std::uint64_t offset, const nanobind::object& timeout, const Layout& layout);
  PyObject* take() override;

 private:
  void finish() override;
  [[noreturn]] void refuse(const std::string& why) const;
  /// Where the bytes are here, as the layout says; sets the shapes where they lie apart.
  [[nodiscard]] Buffer memory_for(const Layout& layout);

  RemoteArray& target_;
  nanobind::object target_object_;
  RmaDirection direction_;
  nanobind::object array_;
  View view_;
  std::unique_ptr<std::byte[]> packed_;
  std::optional<TransferShapes> shapes_;
};

void bind_segments(nanobind::module_& module);

}  // namespace brant::python
