#pragma once

namespace brant::bench {

/// How the two processes of a job meet, by whatever started them. All throw Error.
class RmaMeeting {
 public:
  RmaMeeting() = default;
  RmaMeeting(const RmaMeeting&) = delete;
  RmaMeeting& operator=(const RmaMeeting&) = delete;
  virtual ~RmaMeeting() = default;

  /// This process puts and gets, and prints.
  [[nodiscard]] virtual bool leads() const = 0;
  /// Returns when both have called it.
  virtual void barrier() = 0;
  /// The target says that it does not call the library any more from now on; the other one waits for that.
  virtual void target_turns_away() = 0;
};

}  // namespace brant::bench
