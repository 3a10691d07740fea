#include "ops/notify/board.h"

#include <algorithm>
#include <new>

#include <fmt/format.h>

#include "base/log.h"
#include "base/seconds.h"
#include "ops/notify/table.h"
#include "port/memory/window_store.h"

namespace brant {
namespace {

constexpr std::uint32_t kSlotsMax = 1u << 20;

const NotifierOptions& checked(const NotifierOptions& options) {
  if (options.bells == 0 || options.bells > kSlotsMax || options.others > kSlotsMax || options.waits == 0 ||
      options.patience <= std::chrono::nanoseconds::zero()) {
    throw Error(Status::invalid_argument,
                fmt::format("a notifier with {} bells, {} others, {} waits and a patience of {} ns: use 1 to {} bells, "
                            "at most as many others, and more than 0 of the rest",
                            options.bells, options.others, options.waits, options.patience.count(), kSlotsMax));
  }
  return options;
}

std::size_t lines_for(std::uint32_t bells) noexcept { return (bells + ArmedLines::kWords - 1) / ArmedLines::kWords; }

/// The words, or an error that names the device.
std::uint64_t* made(BellWords& words, port::Device& device, std::size_t lines, std::size_t units) {
  const char* why = "";
  const Status status = words.make(lines, units, why);
  if (status == Status::ok) return words.line(0);
  throw Error(status, fmt::format("no bells on the device of this process, '{}': {} ({})", device.capabilities().name,
                                  why, status_text(status)));
}

/// To be taken from the end: 0 first.
std::vector<std::uint32_t> numbers_below(std::uint32_t count) {
  std::vector<std::uint32_t> numbers(count);
  for (std::uint32_t i = 0; i < count; ++i) numbers[i] = count - 1 - i;
  return numbers;
}

}  // namespace

BellWait::BellWait(BellBoard& board_in, std::uint32_t slot_in, std::uint64_t epoch_in, TimePoint deadline_in) noexcept
    : board(board_in), slot(slot_in), epoch(epoch_in), deadline(deadline_in) {
  cancel = [](OpOwner& self) noexcept {
    auto& wait = static_cast<BellWait&>(self);
    wait.board.withdraw(wait);
  };
}

BellBoard::BellBoard(NotifyTable& table, const NotifierOptions& options)
    : table_(table),
      options_(checked(options)),
      bell_lines_(lines_for(options.bells)),
      words_(table.engine().device()),
      slots_(options.bells + options.others),
      free_bells_(numbers_below(options.bells)),
      free_others_(numbers_below(options.others)),
      free_units_(numbers_below(options.others)),
      armed_(made(words_, table.engine().device(), bell_lines_ + options.others, options.others),
             bell_lines_ + options.others),
      pool_(options.waits) {
  fire = [](Timer& self) noexcept { static_cast<BellBoard&>(self).on_time(); };
}

BellBoard::~BellBoard() { close_all(); }

Engine& BellBoard::engine() const noexcept { return table_.engine(); }

// Made and closed
// -------------------------------------------------------------------------------------------------------------------

void BellBoard::check(const BellOptions& options) const {
  const bool by_peer = options.rung_by == RungBy::peer;
  const bool between_devices = options.rung_by != RungBy::host && options.seen_by == SeenBy::device;
  if (options.place == BellPlace::bar1 && (options.rung_by != RungBy::host || options.seen_by != SeenBy::device)) {
    throw Error(Status::invalid_argument,
                "a bell in memory of the device that the CPU writes through the bus (BellPlace::bar1) is rung by the "
                "host and seen by the device: use BellPlace::automatic for others");
  }
  if (options.place == BellPlace::device && !between_devices) {
    throw Error(Status::invalid_argument,
                "a bell in device memory (BellPlace::device) is rung and seen by devices alone: use "
                "BellPlace::automatic for one that the host rings or sees");
  }
  if (by_peer && (options.peer.value < 0 || options.peer.value == engine().job().rank)) {
    throw Error(Status::invalid_argument,
                fmt::format("a bell that a peer rings needs to know who that is: BellOptions::peer is {}, and this is "
                            "rank {}",
                            options.peer.value, engine().job().rank));
  }
}

std::uint32_t BellBoard::make(const BellOptions& options) {
  if (closed_) throw Error(Status::invalid_argument, "this notifier is closed");
  check(options);
  Peer* const peer = options.rung_by == RungBy::peer ? &engine().peers().connect(options.peer) : nullptr;
  const bool packed = options.rung_by == RungBy::device && options.seen_by == SeenBy::host;
  std::vector<std::uint32_t>& free = packed ? free_bells_ : free_others_;
  if (free.empty()) {
    throw Error(Status::limit_reached,
                fmt::format("all {} {} of this notifier are in use: close some, or ask for more (NotifierOptions::{})",
                            packed ? options_.bells : options_.others, packed ? "bells" : "bells of other sorts",
                            packed ? "bells" : "others"));
  }
  const std::uint32_t slot = packed ? free.back() : options_.bells + free.back();
  slots_[slot].options = options;
  open_word(slot);
  free.pop_back();
  Slot& made = slots_[slot];
  made.board = this;
  made.open = true;
  made.peer = peer;
  if (peer != nullptr) {
    made.lost = [](PeerOp& self) noexcept {
      auto& rung_by = static_cast<Slot&>(self);
      BellBoard& board = *rung_by.board;
      board.end_all(static_cast<std::uint32_t>(&rung_by - board.slots_.data()), Status::peer_lost);
    };
    peer->add_outstanding(made);
  }
  ++open_;
  return slot;
}

/// Its word is 0, whatever an earlier bell left there.
void BellBoard::open_word(std::uint32_t slot) {
  Slot& made = slots_[slot];
  const BellOptions& options = made.options;
  const bool through_the_bus = options.place == BellPlace::bar1;
  made.in_device = options.seen_by == SeenBy::device &&
                   (through_the_bus || (options.rung_by != RungBy::host && options.place != BellPlace::pinned));
  made.rung = 0;
  made.window = nullptr;
  if (!made.in_device) {
    std::atomic_ref(*word_of(slot)).store(0, std::memory_order_relaxed);
    return;
  }
  made.unit = take_unit().or_throw("a bell in device memory could not be made");
  if (!through_the_bus) return;
  const Result<std::uint64_t*> window = words_.window(made.unit);
  if (window.ok()) {
    made.window = *window;
    return;
  }
  give_unit(made.unit);
  throw Error(window.status(),
              fmt::format("the CPU does not reach memory of '{}' through the bus (BellPlace::bar1): use "
                          "BellPlace::automatic, which takes pinned memory. BRANT_LOG=info says more",
                          engine().device().capabilities().name));
}

std::uint64_t* BellBoard::word_of(std::uint32_t slot) const noexcept {
  const Slot& bell = slots_[slot];
  return bell.in_device ? words_.unit(bell.unit) : words_.line(0) + place_of(slot);
}

std::size_t BellBoard::place_of(std::uint32_t slot) const noexcept {
  return slot < options_.bells ? slot : line_of(slot - options_.bells) * ArmedLines::kWords;
}

std::uint32_t BellBoard::slot_at(std::size_t word) const noexcept {
  const std::size_t in_line = word / ArmedLines::kWords;
  return static_cast<std::uint32_t>(in_line < bell_lines_ ? word : options_.bells + (in_line - bell_lines_));
}

void BellBoard::close(std::uint32_t slot) noexcept {
  Slot& bell = slots_[slot];
  end_all(slot, Status::canceled);
  if (bell.peer != nullptr) std::exchange(bell.peer, nullptr)->remove_outstanding(bell);
  if (bell.in_device) give_unit(bell.unit);
  bell.open = false;
  if (slot < options_.bells) {
    free_bells_.push_back(slot);
  } else {
    free_others_.push_back(slot - options_.bells);
  }
  --open_;
  if (unused()) table_.look_at_closed();
}

void BellBoard::note_kernel(int change) noexcept {
  open_ = static_cast<std::size_t>(static_cast<long>(open_) + change);
  if (unused()) table_.look_at_closed();
}

void BellBoard::close_all() noexcept {
  closed_ = true;
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    end_all(slot, Status::canceled);
    if (slots_[slot].peer != nullptr) std::exchange(slots_[slot].peer, nullptr)->remove_outstanding(slots_[slot]);
  }
  engine().timers().clear(*this);
  engine().pollers().detach(*this);
  if (unused()) table_.look_at_closed();
}

notify::FanIn BellBoard::fan_in(std::uint32_t arrivals) {
  if (arrivals == 0 || arrivals > 0xffffu) {
    throw Error(Status::invalid_argument,
                fmt::format("a fan-in of {} arrivals: use 1 to {}, and let blocks arrive where there are more threads",
                            arrivals, 0xffffu));
  }
  const std::uint32_t unit = take_unit().or_throw("a fan-in could not be made");
  return {words_.unit(unit), arrivals};
}

Result<std::uint32_t> BellBoard::take_line() noexcept {
  if (free_others_.empty()) return Status::limit_reached;
  const std::uint32_t line = free_others_.back();
  free_others_.pop_back();
  std::fill_n(words_.line(line_of(line)), ArmedLines::kWords, 0u);
  return line;
}

Result<std::uint32_t> BellBoard::take_unit() noexcept {
  if (free_units_.empty()) return Status::limit_reached;
  const std::uint32_t unit = free_units_.back();
  if (const Status cleared = words_.clear_unit(unit); cleared != Status::ok) return cleared;
  free_units_.pop_back();
  return unit;
}

// Rung and waited for
// -------------------------------------------------------------------------------------------------------------------

std::uint64_t BellBoard::epoch_of(std::uint32_t slot) const noexcept {
  const Slot& bell = slots_[slot];
  if (bell.options.rung_by == RungBy::host) return bell.rung;
  return bell.in_device ? 0 : armed_.seen(place_of(slot));
}

Status BellBoard::ring(std::uint32_t slot, std::uint64_t epoch) noexcept {
  if (slots_[slot].options.rung_by != RungBy::host) return Status::invalid_argument;
  Slot& bell = slots_[slot];
  if (!ArmedLines::reached(epoch, bell.rung)) return Status::invalid_argument;
  bell.rung = epoch;
  if (bell.window != nullptr) {
    port::store_to_window(*bell.window, epoch);
  } else {
    std::atomic_ref(*word_of(slot)).store(epoch, std::memory_order_release);
  }
  return Status::ok;
}

Status BellBoard::post_when(Op& op, std::uint32_t slot, std::uint64_t epoch,
                            std::chrono::nanoseconds patience) noexcept {
  Slot& bell = slots_[slot];
  if (closed_ || !bell.open || bell.options.seen_by != SeenBy::host) return Status::invalid_argument;
  if (ArmedLines::reached(armed_.seen(place_of(slot)), epoch)) return Status::ok;
  if (bell.peer != nullptr && bell.peer->lost) return Status::peer_lost;
  const TimePoint deadline = deadline_after(patience < std::chrono::nanoseconds::zero() ? options_.patience : patience);
  if (deadline < when || place == kIdle) {
    try {
      if (deadline != kNever) engine().timers().set(*this, deadline);
    } catch (const std::bad_alloc&) {
      return Status::no_memory;
    }
  }
  BellWait* wait = pool_.take(*this, slot, epoch, deadline);
  if (wait == nullptr) return Status::limit_reached;
  wait->own(engine().completions(), op);
  bell.waits.push_back(*wait);
  arm(slot);
  return Status::in_progress;
}

/// For the first epoch that somebody waits for; after anything that may have changed which that is.
void BellBoard::arm(std::uint32_t slot) noexcept {
  const BellWait* first = slots_[slot].waits.front();
  if (first == nullptr) {
    armed_.disarm(place_of(slot));
    if (armed_.armed() == 0) engine().pollers().detach(*this);
    return;
  }
  std::uint64_t epoch = first->epoch;
  for (const BellWait* wait = Waits::next(*first); wait != nullptr; wait = Waits::next(*wait)) {
    if (!ArmedLines::reached(wait->epoch, epoch)) epoch = wait->epoch;
  }
  armed_.arm(place_of(slot), epoch);
  engine().pollers().attach(*this);
}

unsigned BellBoard::poll() noexcept {
  return armed_.scan([this](std::size_t word) noexcept { rung(slot_at(word)); });
}

void BellBoard::rung(std::uint32_t slot) noexcept {
  const std::uint64_t seen = armed_.seen(place_of(slot));
  BellWait* wait = slots_[slot].waits.front();
  while (wait != nullptr) {
    BellWait* const next = Waits::next(*wait);
    if (ArmedLines::reached(seen, wait->epoch)) end(*wait, Status::ok);
    wait = next;
  }
  arm(slot);
}

void BellBoard::end(BellWait& wait, Status status) noexcept {
  slots_[wait.slot].waits.remove(wait);
  engine().completions().finish(wait, {status, 0});
  pool_.give_back(&wait);
}

void BellBoard::withdraw(BellWait& wait) noexcept {
  const std::uint32_t slot = wait.slot;
  end(wait, Status::canceled);
  arm(slot);
}

void BellBoard::end_all(std::uint32_t slot, Status status) noexcept {
  Slot& bell = slots_[slot];
  if (bell.waits.empty()) return;
  while (BellWait* wait = bell.waits.front()) end(*wait, status);
  arm(slot);
}

Status BellBoard::at_stream(std::uint32_t slot, port::StreamWord::Act act, std::uint64_t epoch,
                            port::Stream* stream) noexcept {
  const BellOptions& options = slots_[slot].options;
  const bool rings = act == port::StreamWord::Act::write;
  const bool fits = rings ? options.rung_by == RungBy::device : options.seen_by == SeenBy::device;
  if (!fits || stream == nullptr) return Status::invalid_argument;
  port::Device& device = engine().device();
  if (!device.capabilities().stream_words) return Status::not_supported;
  if (rings) return device.streams()->write_value(word_of(slot), epoch, stream);
  return engine().stream_waits().enqueue(
      stream, [&](port::Streams& streams) noexcept { return streams.wait_value(act, word_of(slot), epoch, stream); });
}

// When none rings
// -------------------------------------------------------------------------------------------------------------------

/// Those that are late end; the others are looked at again when the first of them would be.
void BellBoard::on_time() noexcept {
  const TimePoint now = Clock::now();
  TimePoint next = kNever;
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    BellWait* wait = slots_[slot].waits.front();
    if (wait == nullptr) continue;
    while (wait != nullptr) {
      BellWait* const after = Waits::next(*wait);
      if (wait->deadline > now) {
        next = std::min(next, wait->deadline);
      } else {
        tell_late(*wait);
        end(*wait, Status::timed_out);
      }
      wait = after;
    }
    arm(slot);
  }
  if (next == kNever) return;
  try {
    engine().timers().set(*this, next);
  } catch (const std::bad_alloc&) {
    log::error("no memory for the timer of bells: waits that are late do not end");
  }
}

void BellBoard::tell_late(const BellWait& wait) const noexcept {
  try {
    const BellOptions& options = slots_[wait.slot].options;
    const std::string ringer = options.rung_by == RungBy::device ? "the device"
                               : options.rung_by == RungBy::host ? "this process"
                                                                 : fmt::format("rank {}", options.peer.value);
    log::error("bell {} has not reached epoch {} in time: it is {}. {} should ring it; {}", wait.slot, wait.epoch,
               epoch_of(wait.slot), ringer, table_.describe_kernels());
  } catch (const std::exception&) {
    log::error("bell {} has not reached epoch {} in time", wait.slot, wait.epoch);
  }
}

std::string BellBoard::describe_waits() const {
  std::string text;
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const BellWait* wait = slots_[slot].waits.front();
    if (wait == nullptr) continue;
    text += fmt::format("{}bell {} to reach epoch {} (it is {})", text.empty() ? "" : ", ", slot, wait->epoch,
                        epoch_of(slot));
    if (text.size() > 300) return text + ", ...";
  }
  return text;
}

}  // namespace brant
