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
#include "bindings/python/producers.h"

namespace brant::python {

class ChannelEnd;

class Receiving;

/// A message whose receive was given up when it was on its way, or had come and was not looked at: the next receive of
/// the channel gets it.
struct LeftMessage {
  std::uint64_t number = 0;   ///< Of the messages of the channel: they stay in order.
  Receiving* heir = nullptr;  ///< The receive that gets it, once there is one.
  bool here = false;          ///< It has come, or failed: what follows is filled in.
  Status status = Status::ok;
  std::string why;
  std::vector<Item> items;
  std::vector<Landing> landings;
  std::vector<nanobind::object> given;  ///< Where it lies, if the receive that was given up had named arrays.
};

/// A message that is waited for: its frame first, then what the frame says comes. That is let in when no stream works
/// with the arrays that it lands in.
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
  /// The channel was closed before its turn came, or before its message was let in. False: the channel tells it.
  bool abandon(Status status);
  /// Its message has not come yet, and it can be withdrawn.
  [[nodiscard]] bool is_withdrawable() const noexcept;
  void withdraw();
  /// It gets this message instead of the next one: withdrawn, or not in line yet.
  void inherit(std::shared_ptr<LeftMessage> message);

  PyObject* take() override;
  void advance() override;
  void give_up(Status status) override;
  void pass_by() override;

 private:
  enum class Stage : std::uint8_t { in_line, inheriting, frame, description, content, ended };

  void post_raw();
  /// Its frame is here, and a stream still works with where the content shall land.
  [[nodiscard]] bool waits_for_landings() const noexcept;
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
  void leave_message();
  void fill_left();
  void take_over();
  [[nodiscard]] Status copy_left(const std::vector<nanobind::object>& sources);
  [[nodiscard]] nanobind::object result();

  ChannelEnd& end_;
  nanobind::object end_object_;
  Stage stage_ = Stage::in_line;
  std::uint64_t number_ = 0;
  bool iterates_ = false;
  FrameHeader header_;
  std::unique_ptr<std::byte[]> frame_;
  std::vector<std::byte> apart_;
  std::vector<Item> items_;
  Producers producers_;  ///< Of the arrays of `given_`.
  std::deque<View> given_;
  std::vector<nanobind::object> given_objects_;
  std::vector<Landing> landings_;
  std::deque<Op> ops_;
  std::size_t pending_ = 0;
  OpResult outcome_;
  Status status_ = Status::ok;
  Status given_up_ = Status::ok;  ///< What the answer is instead.
  std::string why_;
  bool taken_ = false;
  std::shared_ptr<LeftMessage> left_;      ///< What its message has become.
  std::shared_ptr<LeftMessage> inherits_;  ///< What it waits for instead of the next message.
};

}  // namespace brant::python
