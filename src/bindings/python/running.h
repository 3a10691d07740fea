#pragma once

#include <nanobind/nanobind.h>

#include <coroutine>
#include <memory>

#include "bindings/python/loop.h"

namespace brant::python {

/// A coroutine of Python that another process asked for, under way: an async entry of a chare, or an async function of
/// a remote call. A task of brant's own loop, or of asyncio; awaited by a coroutine of C++, so that it ends with what
/// it belongs to. It ends where it waits when this object goes. With the GIL.
class Running final : public TaskObserver {
 public:
  /// `unbegun` counts those of its owner that asyncio has not begun.
  Running(nanobind::handle coroutine, const std::shared_ptr<unsigned>& unbegun);
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running();

  void task_ended() noexcept override;
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }
  void set_waiter(std::coroutine_handle<> waiter) noexcept { waiter_ = waiter; }

  /// A new reference, or null and the exception is set.
  [[nodiscard]] PyObject* result() const noexcept;

 private:
  void end_with(const nanobind::object& result, const nanobind::object& error) noexcept;

  nanobind::object task_;
  Task* ours_ = nullptr;
  std::shared_ptr<Running*> link_;  ///< From the task of asyncio, which may outlive this.
  nanobind::object result_;
  nanobind::object error_;
  std::coroutine_handle<> waiter_;
  bool ended_ = false;
};

/// What is awaited of it.
struct EndOf {
  Running& running;
  [[nodiscard]] bool await_ready() const noexcept { return running.has_ended(); }
  void await_suspend(std::coroutine_handle<> waiter) const noexcept { running.set_waiter(waiter); }
  void await_resume() const noexcept {}
};

}  // namespace brant::python
