#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "bench/interference/case.h"
#include "bench/interference/kernels.h"
#include "brant/brant.h"

namespace brant::bench {

/// What the sweeps of a round took.
struct SweepLap {
  simt::Word sweeps = 0;
  double us = 0;  ///< Of each.
};

/// The device's side: memory for one size, and kernels of so many blocks that write it. Every wait ends after
/// kSweeperPatience with an Error that names the bell; the kernel gives up before, and the log says for what it waited.
class Sweeper {
 public:
  using Word = simt::Word;

  /// `rounds` numbers the rounds of all sweepers. Throws Error: no memory, no bells, no device that runs kernels.
  Sweeper(Runtime& runtime, Notifier& notifier, const InterferenceKernels& kernels, MemoryKind memory,
          std::size_t bytes, unsigned blocks, Word& rounds);

  [[nodiscard]] unsigned blocks() const noexcept { return blocks_; }
  [[nodiscard]] ConstBuffer message() const noexcept { return area_.part(0, bytes_); }
  /// Of the latest round.
  [[nodiscard]] Word round() const noexcept { return rounds_; }

  /// A round of a kernel that ends: writes the message, and waits for the end.
  void write();

  /// Launches the kernel that stays, for rounds of a case. Throws Error: limit_reached (too many blocks).
  void begin(InterferenceCase which);
  /// Begins a round, see interference_steps::Round. Gives the epoch of its first ring.
  Word start(Word sweeps, Word how);
  [[nodiscard]] Bell& rung() noexcept { return rung_; }
  /// The CPU looks at the word itself.
  void see(Word epoch);
  void hear(Word epoch);
  /// All blocks have done the round.
  SweepLap finish();
  /// Ends the kernel.
  void end();

  /// Words in memory of the host, as the device has them now: the message, or what was written beside it in that case.
  [[nodiscard]] std::vector<Word> words(InterferenceCase which = InterferenceCase::ssb) const;

 private:
  [[nodiscard]] LaunchShape shape() const noexcept;
  [[noreturn]] void fail(Status status, const std::string& what);
  template <typename Look>
  void look_until(Look&& look, const char* what, Word epoch);

  Runtime& runtime_;
  Notifier& notifier_;
  const InterferenceKernels& kernels_;
  const std::size_t bytes_;
  const unsigned blocks_;
  Word& rounds_;
  Memory area_;  ///< The message, what lies beside it, and room for that to be on another page.
  Memory last_;
  Memory lap_;
  Bell rung_;
  Bell heard_;
  Bell met_;
  notify::FanIn arrivals_;
  Word epoch_ = 0;  ///< Of the last ring of all rounds.
  Word swept_ = 0;
  const char* name_ = "";
  Stream stream_;
  PersistentKernel kernel_;  // goes before what it uses
};

}  // namespace brant::bench
