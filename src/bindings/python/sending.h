#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/python/awaitable.h"
#include "bindings/python/parcel.h"
#include "bindings/python/producers.h"

namespace brant::python {

class ChannelEnd;

/// A message on its way out: holds its arrays, and what was packed or pickled, until the last transfer has ended. It
/// leaves at once, or, where a stream still computes one of its arrays, when that is done; what is sent behind it
/// leaves behind it.
class Sending final : public Awaitable {
 public:
  Sending(ChannelEnd& end, nanobind::object end_object, Moment until) noexcept
      : end_(end), end_object_(std::move(end_object)), until_(until) {
    parcel_.allow_shapes();
    parcel_.leave_waiting_to(producers_);
  }
  ~Sending() override;

  void add(nanobind::handle object);
  /// Posts all transfers, or stands in line to do so.
  void start(double timeout);
  /// The first in line: its arrays are computed, and it can leave.
  [[nodiscard]] bool can_leave() const noexcept { return !producers_.are_busy(); }
  /// It is in line no more, and leaves.
  void leave();
  /// Blocks until its arrays are computed, or `deadline` has come; false then.
  [[nodiscard]] bool wait_for_arrays(TimePoint deadline) noexcept { return producers_.finish_by(deadline); }

  PyObject* take() override;
  void advance() override;
  void give_up(Status status) override;

 private:
  enum class Stage : std::uint8_t { at_once, in_line, left, withdrawn };

  [[nodiscard]] bool write_frame();
  void check_raw() const;
  void post();
  void post_part(ConstBuffer source, const std::optional<Shape>& shape = {});
  void let_go() noexcept;

  ChannelEnd& end_;
  nanobind::object end_object_;
  Moment until_;
  Stage stage_ = Stage::at_once;
  bool within_ = false;  ///< The frame has the content as well.
  Producers producers_;
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
