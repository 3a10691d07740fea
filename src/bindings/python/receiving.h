#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/awaitable.h"
#include "bindings/python/parcel.h"

namespace brant::python {

class ChannelEnd;

/// A message that is waited for: its frame first, then what the frame says comes.
class Receiving final : public Awaitable {
 public:
  Receiving(ChannelEnd& end, nanobind::object end_object) noexcept : end_(end), end_object_(std::move(end_object)) {}
  ~Receiving() override;

  /// Where an array of the message shall land; as often as there are arrays.
  void add_landing(nanobind::handle array);
  /// It is one step of `async for`.
  void set_iterates() noexcept { iterates_ = true; }
  void start(double timeout);
  /// It is the first in line.
  void post_frame();
  /// The channel was closed before its turn came.
  void abandon(Status status);

  PyObject* take() override;
  void advance() override;
  void give_up(Status status) override;

 private:
  enum class Stage : std::uint8_t { in_line, frame, description, content, ended };

  void post_raw();
  void post_part(Buffer landing, const std::optional<Shape>& shape = {});
  void on_frame();
  void on_description(std::span<const std::byte> description, std::span<const std::byte> content);
  [[nodiscard]] std::string why_unfit() const;
  void make_landings();
  Landing land_in(View& given, const Item& item);
  void copy_to_device(const Landing& landing, std::span<const std::byte> content);
  void take_content(std::span<const std::byte> content);
  void post_content();
  void refuse(Status status, std::string why);
  void finish();
  void end(Status status, std::string why);
  [[nodiscard]] nanobind::object result();

  ChannelEnd& end_;
  nanobind::object end_object_;
  Stage stage_ = Stage::in_line;
  bool iterates_ = false;
  FrameHeader header_;
  std::unique_ptr<std::byte[]> frame_;
  std::vector<std::byte> apart_;
  std::vector<Item> items_;
  std::deque<View> given_;
  std::vector<nanobind::object> given_objects_;
  std::vector<Landing> landings_;
  std::deque<Op> ops_;
  std::size_t pending_ = 0;
  OpResult outcome_;
  Status status_ = Status::ok;
  std::string why_;
};

}  // namespace brant::python
