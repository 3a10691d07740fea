#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/python/awaitable.h"
#include "bindings/python/parcel.h"

namespace brant::python {

class ChannelEnd;

/// A message on its way out: holds its arrays, and what was packed or pickled, until the last transfer has ended.
class Sending final : public Awaitable {
 public:
  Sending(ChannelEnd& end, nanobind::object end_object, Moment until) noexcept
      : end_(end), end_object_(std::move(end_object)), until_(until) {
    parcel_.allow_shapes();
  }
  ~Sending() override;

  void add(nanobind::handle object);
  /// Posts all transfers.
  void post(double timeout);

  PyObject* take() override;
  void advance() override;
  void give_up(Status status) override;

 private:
  [[nodiscard]] bool write_frame();
  void post_raw();
  void post_part(ConstBuffer source, const std::optional<Shape>& shape = {});
  void let_go() noexcept;

  ChannelEnd& end_;
  nanobind::object end_object_;
  Moment until_;
  Parcel parcel_;
  std::unique_ptr<std::byte[]> frame_;
  std::size_t frame_bytes_ = 0;
  std::vector<std::byte> apart_;
  std::deque<Op> ops_;
  std::size_t pending_ = 0;
  OpResult outcome_;
  Status given_up_ = Status::ok;
};

}  // namespace brant::python
