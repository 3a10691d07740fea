#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <string>

#include "bindings/python/awaitable.h"
#include "brant/base/intrusive_list.h"
#include "brant/brant.h"

namespace brant::python {

/// Waiting for a process that is not of this job: until it has been joined, until one joins, until it has heard that
/// this one leaves. No completion tells of these, so every turn looks at those that wait.
class Meeting final : public Awaitable {
 public:
  enum class What : std::uint8_t { join, accept, leave };
  explicit Meeting(What what) noexcept : what_(what) {}
  ~Meeting() override;

  /// Of an address. Throws what Runtime::join throws.
  void start_join(const std::string& address, double seconds);
  void start_accept(double seconds);
  void start_leave(int peer, double seconds);

  PyObject* take() override;
  void advance() override;
  void give_up(Status status) override;

  [[nodiscard]] static bool any_waits() noexcept;
  /// Without the GIL: whether `look_at_all` would find anything.
  [[nodiscard]] static bool any_decided() noexcept;
  /// True if one of them has its answer.
  static bool look_at_all();
  /// The runtime is about to end.
  static void give_up_all() noexcept;

 private:
  void wait(double seconds);
  [[nodiscard]] bool is_decided() const noexcept;
  void conclude();
  void end() noexcept;

  What what_;
  Rank rank_{-1};
  std::chrono::nanoseconds limit_ = Worker::kForever;
  PyObject* error_ = nullptr;
  ListHook<Meeting> hook_;

 public:
  using WaitingList = IntrusiveList<Meeting, &Meeting::hook_>;
};

void bind_meetings(nanobind::module_& module);

}  // namespace brant::python
