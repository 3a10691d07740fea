#include "ops/mapping/opening.h"

#include <chrono>
#include <utility>

namespace brant {
namespace {

/// For the owner's answer, where memory that it has freed is in the way.
constexpr auto kPatience = std::chrono::seconds(10);

struct Wanted {
  Imports& imports;
  std::uint64_t buffer_id;

  /// What the owner has to say has come.
  static bool heard(void* context) noexcept {
    const auto& wanted = *static_cast<Wanted*>(context);
    return wanted.imports.has_heard(wanted.buffer_id) && !wanted.imports.awaits(wanted.buffer_id);
  }
};

}  // namespace

MappedMemory open_or_wait(Engine& engine, Imports& imports, const port::ExportRecord& record, std::uint64_t bytes,
                          std::uint64_t address, const std::string& what) {
  const TimePoint until = Clock::now() + kPatience;
  Wanted wanted{imports, record.buffer_id};
  Result<MappedMemory> memory = imports.open(record, bytes, address);
  while (memory.status() == Status::in_progress && Clock::now() < until) {
    static_cast<void>(engine.waiting().wait_quietly(&Wanted::heard, &wanted, std::chrono::milliseconds(100)));
    engine.deferrals().run_if_safe();
    memory = imports.open(record, bytes, address);
  }
  if (memory.status() == Status::in_progress) throw Error(Status::timed_out, what);
  return std::move(memory).or_throw(what);
}

}  // namespace brant
