#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// Raw UCX as a program without brant would use it: the rival named "ucx" in benchmark rows. A context and a worker of
/// its own with UCX's stock settings, blocking tag send and receive (or puts, gets and atomics), and a loop that spins
/// on progress. Nothing here is shared with brant's wire except the loaded library, so that a comparison in one process
/// pair is fair to both.
namespace brant::bench {

class UcxBaseline {
 public:
  UcxBaseline() = default;
  UcxBaseline(const UcxBaseline&) = delete;
  UcxBaseline& operator=(const UcxBaseline&) = delete;
  virtual ~UcxBaseline() = default;

  /// What the other side needs for `connect`. Valid as long as this object.
  [[nodiscard]] virtual std::span<const std::byte> address() const noexcept = 0;
  virtual void connect(std::span<const std::byte> peer_address) = 0;

  /// One round trip for each entry of `round_trip_us`: the side that begins sends `bytes` and waits for as many, the
  /// other answers. Memory of any kind that UCX takes. Blocks, spinning; throws Error timed_out when nothing moves for
  /// half a minute.
  virtual void ping_pong(bool begins, const void* source, void* landing, std::size_t bytes,
                         std::span<double> round_trip_us) = 0;

  /// For each entry of `window_us`: the sender posts `window` messages of `bytes` back to back and waits for a reply of
  /// 4 bytes. All messages of a window use the same buffer. Blocks like ping_pong.
  virtual void windows(bool sends, void* data, std::size_t bytes, std::size_t window, std::span<double> window_us) = 0;

  /// Registers memory for the other side's `one_sided`, which gets these bytes by `reach`. The memory stays the
  /// caller's, until this object goes.
  virtual std::vector<std::byte> expose(void* data, std::size_t bytes) = 0;
  virtual void reach(std::span<const std::byte> exposed) = 0;

  enum class OneSided { put, get, fetch_add };
  /// What a sample of `one_sided` is: until all have ended, or their posts alone.
  enum class Timed { completion, posts };
  /// For each entry of `us`: `window` puts of `bytes` to the start of the reached memory and one flush, as many gets
  /// from there, or so many times 1 added to the word of `bytes` there, whose value before comes to `local`. The other
  /// side only has to let UCX progress. Blocks like ping_pong.
  virtual void one_sided(OneSided what, void* local, std::size_t bytes, std::size_t window, std::span<double> us,
                         Timed timed = Timed::completion) = 0;

  /// Lets UCX finish what the other side may still need. For waits on something else meanwhile.
  virtual void progress() noexcept = 0;
};

/// What UCX is asked to prepare for: a program asks for what it uses.
enum class UcxBaselineUse { messages, one_sided };

/// Costs 10 to 30 ms. Throws Error like open_ucx_wire.
std::unique_ptr<UcxBaseline> open_ucx_baseline(UcxBaselineUse use = UcxBaselineUse::messages);

}  // namespace brant::bench
