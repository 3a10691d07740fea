#include "ops/notify/table.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"
#include "base/seconds.h"

namespace brant {

NotifyTable::NotifyTable(Engine& engine) : engine_(engine), mappings_(MappingTable::of(engine)) {}

NotifyTable::~NotifyTable() {
  for (const auto& kernel : kernels_) kernel->close();
  const bool stuck = std::ranges::any_of(kernels_, [](const auto& kernel) { return kernel->left(); });
  for (const auto& board : boards_) board->close_all();
  if (stuck) {                                                          // their kernels write there still
    for (auto& kernel : kernels_) static_cast<void>(kernel.release());  // NOLINT(bugprone-unused-return-value)
    for (auto& board : boards_) static_cast<void>(board.release());     // NOLINT(bugprone-unused-return-value)
  }
  kernels_.clear();
  boards_.clear();
  engine_.deferrals().take_back(*this);  // closing has asked for it again
}

BellBoard& NotifyTable::open(const NotifierOptions& options) {
  boards_.reserve(boards_.size() + 1);
  boards_.push_back(std::make_unique<BellBoard>(*this, options));
  return *boards_.back();
}

void NotifyTable::run_deferred() noexcept {
  const auto unused = [](const auto& board) { return board->unused(); };
  if (std::ranges::none_of(boards_, unused)) return;
  // Kernels that nobody keeps account of may ring or wait there.
  if (engine_.device().streams()->synchronize_all() != Status::ok) return;
  std::erase_if(boards_, unused);
}

ResidentKernel& NotifyTable::add(BellBoard& board) {
  kernels_.reserve(kernels_.size() + 1);
  kernels_.push_back(std::make_unique<ResidentKernel>(*this, board));
  return *kernels_.back();
}

void NotifyTable::drop(ResidentKernel& kernel) noexcept {
  std::erase_if(kernels_, [&](const auto& known) { return known.get() == &kernel; });
}

double NotifyTable::held() const noexcept {
  double held = 0;
  for (const auto& kernel : kernels_) held += kernel->runs() ? kernel->share() : 0;
  return held;
}

const Surroundings& NotifyTable::surroundings() {
  if (!around_) {
    around_ = surroundings_of(engine_);
    for (const std::string& danger : dangers(*around_))
      log::warn("a kernel is to stay on '{}', and {}", engine_.device().capabilities().name, danger);
  }
  return *around_;
}

std::string NotifyTable::describe_suspects() const {
  std::string text;
  if (!around_) return text;
  for (const std::string& suspect : suspects(*around_)) text += fmt::format("; it may be that {}", suspect);
  return text;
}

unsigned NotifyTable::room_for(port::Kernel* kernel, const LaunchShape& shape) const {
  port::Kernels* const kernels = engine_.device().kernels();
  if (kernels == nullptr) throw Error(Status::not_supported, "no kernel runs on this device");
  const unsigned fit = kernels->blocks_at_once(kernel, shape).or_throw("how many blocks run at once");
  return static_cast<unsigned>(fit * std::max(1.0 - held(), 0.0));
}

std::string NotifyTable::describe_kernels() const {
  std::string text;
  for (const auto& kernel : kernels_) text += (text.empty() ? "" : "; ") + kernel->describe();
  return text.empty() ? "no persistent kernel is there" : text;
}

bool NotifyTable::stalled(std::chrono::nanoseconds idle, bool) noexcept {
  bool told = false;
  try {
    for (const auto& board : boards_) {
      const std::string waits = board->describe_waits();
      if (waits.empty()) continue;
      log::warn("waits for {}; nothing has moved for {:.1f} s; {}", waits, in_seconds(idle), describe_kernels());
      told = true;
    }
  } catch (const std::exception&) {
    return told;  // no memory to say it
  }
  return told;
}

}  // namespace brant
