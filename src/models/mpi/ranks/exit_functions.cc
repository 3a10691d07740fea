#include "models/mpi/ranks/exit_functions.h"

#include <cstring>

namespace brant::mpi {
namespace {

void call(const ExitFunctions::Function& function, int code) {
  if (function.with_code != nullptr) {
    function.with_code(code, function.argument);
  } else {
    function.plain(function.argument);
  }
}

}  // namespace

void ExitFunctions::add(const Function& function) {
  const std::lock_guard lock(mutex_);
  functions_.push_back(function);
}

std::optional<ExitFunctions::Function> ExitFunctions::take_last() {
  const std::lock_guard lock(mutex_);
  if (functions_.empty()) return std::nullopt;
  const Function function = functions_.back();
  functions_.pop_back();
  return function;
}

void ExitFunctions::run(int code) {
  while (!thread_locals_.empty()) {
    const Function function = thread_locals_.back();
    thread_locals_.pop_back();
    call(function, code);
  }
  while (const std::optional<Function> function = take_last()) call(*function, code);
  const ExecutableFile::Functions& linked = image_.file().fini_array;
  while (linked_done_ < linked.count) {
    const std::size_t next = linked.count - ++linked_done_;
    std::uint64_t function = 0;
    std::memcpy(&function, image_.at(linked.address) + next * sizeof function, sizeof function);
    reinterpret_cast<void (*)()>(function)();
  }
  if (fini_done_ || image_.file().fini == 0) return;
  fini_done_ = true;
  reinterpret_cast<void (*)()>(image_.at(image_.file().fini))();
}

}  // namespace brant::mpi
