#pragma once

#include <exception>
#include <memory>
#include <span>

#include "brant/core/task.h"
#include "models/halo/layout.h"

namespace brant::halo {

/// What is behind a HaloExchange: one for each mode.
class Exchange {
 public:
  Exchange(Runtime& runtime, const HaloOptions& options)
      : runtime_(runtime), layout_(options, runtime.rank().value, runtime.size()) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] const HaloPhases& phases() const noexcept { return phases_; }
  /// See HaloExchange.
  [[nodiscard]] virtual std::size_t messages() const noexcept = 0;
  [[nodiscard]] virtual std::size_t message_bytes() const noexcept = 0;
  Task<void> run(std::span<const Buffer> fields, std::uint64_t times);
  Task<void> bind(std::span<const Buffer> fields);
  /// See HaloExchange.
  [[nodiscard]] virtual DirectPlan device(unsigned blocks);
  [[nodiscard]] virtual MessagePlan device_messages(unsigned blocks);
  /// Throws where `device` and `device_messages` do, both of them.
  virtual void require_device() const;
  Task<void> accompany(PersistentKernel& kernel, std::uint64_t times, Task<bool> work);

 protected:
  /// Throws what `run` says where no exchange can begin.
  virtual void require_ready(std::span<const Buffer> fields) const = 0;
  /// Fields that fit: for modes that have to know them beforehand.
  virtual Task<void> bind_to(std::span<const Buffer>) { co_return; }
  /// One exchange; the fields fit.
  virtual Task<void> exchange(std::span<const Buffer> fields) = 0;
  /// Some after each other.
  virtual Task<void> exchange_times(std::span<const Buffer> fields, std::uint64_t times);
  /// See HaloExchange::accompany; `require_device` has not thrown.
  virtual Task<void> accompany_kernel(PersistentKernel&, std::uint64_t, Task<bool>) { co_return; }
  /// It failed, or its coroutine was destroyed: nothing touches the fields any more when this returns.
  virtual void give_up() noexcept = 0;

  Runtime& runtime_;
  const Layout layout_;
  HaloPhases phases_;

 private:
  struct Running;

  void require_fields(std::span<const Buffer> fields) const;
  Task<void> finish(Task<void> step);

  bool running_ = false;
  std::exception_ptr failure_;  ///< Of an earlier run: it is told again.
};

std::unique_ptr<Exchange> make_exchange(Runtime& runtime, const HaloOptions& options);

}  // namespace brant::halo
