#include "models/mpi/ranks/thread_local_window.h"

#include <cstring>

#include "brant/base/status.h"
#include "models/mpi/ranks/program_image.h"

namespace brant::mpi {
namespace {

struct alignas(ThreadLocalWindow::kAlignment) Window {
  ImageRank* owner;
  std::byte unused[ThreadLocalWindow::kAlignment - sizeof(ImageRank*)];
  std::byte bytes[ThreadLocalWindow::kBytes];
};

thread_local Window window;

std::byte* thread_pointer() noexcept { return static_cast<std::byte*>(__builtin_thread_pointer()); }

}  // namespace

ThreadLocalWindow::ThreadLocalWindow(const ProgramImage& image) {
  const ExecutableFile::ThreadLocals& variables = image.file().thread_locals;
  if (variables.bytes == 0) return;
  span_ = (variables.bytes + variables.alignment - 1) / variables.alignment * variables.alignment;
  bytes_.resize(variables.bytes);
  std::memcpy(bytes_.data(), image.at(variables.address), variables.initial_bytes);
}

void ThreadLocalWindow::load() const noexcept {
  if (span_ != 0) std::memcpy(thread_pointer() - span_, bytes_.data(), bytes_.size());
}

void ThreadLocalWindow::save() noexcept {
  if (span_ != 0) std::memcpy(bytes_.data(), thread_pointer() - span_, bytes_.size());
}

bool ThreadLocalWindow::holds(const void* address) noexcept {
  return address >= thread_pointer() - kBytes && address < thread_pointer();
}

ImageRank*& ThreadLocalWindow::owner() noexcept { return window.owner; }

void ThreadLocalWindow::check() {
  if (reinterpret_cast<std::byte*>(&window + 1) == thread_pointer()) return;
  throw Error(Status::not_supported,
              "the window for the thread-local variables of ranks does not lie at the thread pointer: brant-ranks must "
              "have no other ones, and is broken. Run with one rank a process.");
}

}  // namespace brant::mpi
