#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "brant/base/clock.h"
#include "brant/brant.h"

namespace brant::python {

class Receiving;
class Sending;
struct LeftMessage;

/// One end of a channel of Python. Its receives have an order: only the first that has not got its frame has a receive
/// posted, since how many transfers a message has is in the frame.
class ChannelEnd {
 public:
  ChannelEnd(int peer, std::uint32_t id, const std::string& path, bool raw);
  ChannelEnd(const ChannelEnd&) = delete;
  ChannelEnd& operator=(const ChannelEnd&) = delete;
  ~ChannelEnd();

  [[nodiscard]] nanobind::object send(nanobind::handle object);
  [[nodiscard]] nanobind::object send_several(const nanobind::args& objects, const nanobind::object& timeout,
                                              bool delivered);
  [[nodiscard]] nanobind::object recv(const nanobind::object& out, const nanobind::object& timeout);
  /// As `recv`, for `async for`: the end of the channel ends the loop.
  [[nodiscard]] nanobind::object next();
  void close();
  /// What is sent, and whose arrays are not computed yet at that time, ends with `canceled`.
  void close_by(TimePoint deadline);

  /// A message is one transfer: the bytes of an array and no frame, as a channel of C++ has them.
  [[nodiscard]] bool is_raw() const noexcept { return raw_; }
  /// The other end is no process of this job: objects, which are pickled, neither leave nor come.
  [[nodiscard]] bool is_joined() const noexcept { return joined_; }
  [[nodiscard]] bool is_open() const noexcept { return channel_.is_open(); }
  [[nodiscard]] int peer() const noexcept { return peer_; }
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Which opening of the channel this is: what is told of the end of an earlier one does not concern it.
  [[nodiscard]] std::uint32_t opening() const noexcept { return opening_; }
  [[nodiscard]] Channel& channel() noexcept { return channel_; }
  /// Transfers of a message were posted, and not all of them: what follows would be taken for the rest.
  void give_up_order() noexcept { broken_ = true; }
  [[nodiscard]] bool is_out_of_order() const noexcept { return broken_; }

  // The order of sends. Those in line wait until the arrays of the first one are computed.
  [[nodiscard]] bool has_line() const noexcept { return !line_.empty(); }
  /// Throws limit_reached.
  void stand_in_line(Sending& sending);
  void step_out(Sending& sending) noexcept;
  /// All that can leave from the front of the line leave.
  void move_line();

  // The turns of receives.
  void line_up(Receiving& receiving);
  void step_out(Receiving& receiving);
  /// The first one has posted all its transfers: the next may post its frame.
  void next_turn();
  /// Messages are numbered in the order in which their frames are waited for.
  [[nodiscard]] std::uint64_t next_number() noexcept { return ++frames_; }
  /// `by` was given up, and its message goes to the first receive that still waits for one, or else to the next one.
  void pass_on(std::shared_ptr<LeftMessage> message, const Receiving& by);

 private:
  void check_usable() const;
  void end_line_by(TimePoint deadline);
  void say_end() noexcept;

  int peer_;
  std::uint32_t id_;
  std::string name_;
  Channel channel_;
  std::uint32_t opening_ = 0;
  bool raw_;
  bool joined_ = false;
  bool broken_ = false;
  std::deque<Sending*> line_;
  std::deque<Receiving*> turns_;
  std::uint64_t frames_ = 0;
  std::deque<std::shared_ptr<LeftMessage>> left_;  ///< Before all that comes.
};

/// Closes all that are open: at the end of the program.
void close_channels();

void bind_channel(nanobind::module_& module);

}  // namespace brant::python
