#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "brant/base/status.h"
#include "ops/courier/courier_options.h"
#include "ops/courier/host_machine.h"
#include "ops/courier/order.h"
#include "ops/courier/order_book.h"
#include "port/memory.h"

namespace brant {

/// One resident kernel on this process's GPU that does copies on orders from the CPU: 3.3 us from `post` to the
/// flag where a copy engine needs 7, and no driver call per copy. It stays only while it has work (a *lease*), so that
/// nothing of the program waits for it longer than `lease_us`; then the caller starts it again, or copies otherwise.
///
///   if (courier.takes(bytes) && courier.post({to, from, bytes, 1, flag}) == Status::ok) { ... }  // done() counts it
///   else { courier.start(bytes); copy_engine(to, from, bytes); }                                       // away, or
///   full
///
/// Copies may overtake one another. An accepted order is done exactly once, also when the courier leaves in that very
/// moment: then `poll` launches it again for the rest, and until that kernel has started the caller may `take_back`
/// orders and do them otherwise (another kernel may hold the GPU for as long as it likes).
///
/// Thread rule: one thread, that of the worker. `device` outlives it. It allocates and loads in the constructor only.
class Courier {
 public:
  /// Never throws: where there is no such kernel or no memory for it, or the options say so, it is off, and the log
  /// (level info) says why. Loads the kernel (milliseconds; loading waits for running kernels) but launches nothing.
  Courier(port::Device& device, const CourierOptions& options) noexcept;
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;
  /// Asks it to leave and waits for that, with everything it had taken: the lease at most. Where another kernel keeps
  /// it from starting for 5 s more, the memory it may still touch is given up instead of freed.
  ~Courier();

  /// It is there, and copies of this size are its business.
  [[nodiscard]] bool takes(std::size_t bytes) const noexcept { return usable() && bytes <= options_.bytes_max; }
  [[nodiscard]] bool usable() const noexcept { return kernel_ != nullptr && failed_ == Status::ok; }
  /// A kernel runs and takes orders, as far as the CPU knows by now.
  [[nodiscard]] bool resident() const noexcept { return book_ && book_->courier() == Book::Courier::resident; }

  /// So long it stays after its last order, unless its lease ends.
  [[nodiscard]] std::chrono::microseconds idle_time() const noexcept {
    return std::chrono::microseconds(static_cast<std::int64_t>(options_.idle_us));
  }
  /// Largest copy that is its business; 0 if there is none.
  [[nodiscard]] std::size_t bytes_max() const noexcept { return usable() ? options_.bytes_max : 0; }
  /// It is not about to start: without orders under way it need not be polled.
  [[nodiscard]] bool settled() const noexcept { return !usable() || book_->courier() != Book::Courier::starting; }

  /// limit_reached: it is away or 256 orders are under way; start or poll it, or copy otherwise. invalid_argument: an
  /// order larger than `bytes_max`, a null or misaligned address. not_supported: it is off. device_failed: the kernel
  /// died; nothing that was under way will be reported. Four stores of 8 bytes, for each dispatcher if
  /// nothing else is under way; no driver call.
  Status post(const CourierOrder& order) noexcept;
  /// Launches it if it is away: one driver call, 4 to 9 us. Then `poll` until it is resident. Who polls more rarely
  /// than every `idle_us` may find it gone again: start it once more. `bytes`: what is to be copied at
  /// the same time, about; it takes as many SMs as that is worth, and carries all sizes.
  void start(std::size_t bytes) noexcept;
  /// Learns what was done, started and left, and launches it again for orders it left over. While it starts, one
  /// driver call each (a kernel need not start while the CPU only watches memory); otherwise a look at two words.
  /// Returns how many orders ended.
  unsigned poll() noexcept;

  /// Orders accepted so far; the one just accepted has this number.
  [[nodiscard]] std::uint64_t posted() const noexcept { return book_ ? book_->posted() : 0; }
  /// All orders up to this number are done: their bytes and flags are visible system-wide. Or they were taken back.
  [[nodiscard]] std::uint64_t done() const noexcept { return book_ ? book_->done() : 0; }
  /// Of the accepted orders that no kernel has seen the oldest one goes back to the caller, and counts as done with all
  /// before it. Its number; 0 if there is none, or (for microseconds) while orders before it are still under way.
  std::uint64_t take_back(CourierOrder& order) noexcept { return book_ ? book_->take_back(order) : 0; }

 private:
  using Book = courier::OrderBook<courier::HostMachine>;

  Status open() noexcept;
  void launch() noexcept;
  void check_stream() noexcept;
  void fail(Status status, const char* what) noexcept;
  bool wait_gone() noexcept;

  port::Device& device_;
  const CourierOptions options_;
  port::Kernel* kernel_ = nullptr;  ///< Null: off.
  port::Stream* stream_ = nullptr;
  courier::HostDesk* host_ = nullptr;
  courier::DeviceDesk* device_desk_ = nullptr;  ///< Device memory: not for the CPU.
  courier::HostMachine machine_;
  std::unique_ptr<Book> book_;  ///< Null when off.
  Status failed_ = Status::ok;
  unsigned looks_ = 0;
  unsigned blocks_ = 1;              ///< Of the last launch.
  std::uint64_t groups_before_ = 0;  ///< Blocks of all launches that were no dispatcher's.
};

}  // namespace brant
