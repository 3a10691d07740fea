#include "models/mpi/ranks/image_rank.h"

#include <cxxabi.h>

#include <cstdio>
#include <cstring>

namespace brant::mpi {
namespace {

// Written by the ranks' thread. Others compare the thread only: a rank's thread has no other one's thread pointer.
ImageRank* running = nullptr;
const void* ranks_thread = nullptr;

}  // namespace

ImageRank* running_rank() noexcept { return __builtin_thread_pointer() == ranks_thread ? running : nullptr; }

ImageRank::ImageRank(const ExecutableFile& file, const std::vector<std::string>& arguments)
    : image_(file),
      block_(image_, arguments),
      exit_functions_(image_),
      options_(image_),
      first_thread_locals_(image_),
      thread_locals_(first_thread_locals_) {}

int ImageRank::run() noexcept { return block_.enter(); }

void ImageRank::resume() noexcept {
  ranks_thread = __builtin_thread_pointer();
  running = this;
  thread_locals_.load();
  options_.resume();
  std::memcpy(static_cast<void*>(abi::__cxa_get_globals()), &exceptions_, sizeof exceptions_);
}

void ImageRank::suspend() noexcept {
  std::memcpy(&exceptions_, static_cast<const void*>(abi::__cxa_get_globals()), sizeof exceptions_);
  options_.suspend();
  thread_locals_.save();
  running = nullptr;
}

void ImageRank::start(Main main, int argc, char** argv, Main legacy_init) {
  char** environment = argv + argc + 1;
  if (legacy_init != nullptr) {
    legacy_init(argc, argv, environment);
  } else {
    run_first_functions(argc, argv, environment);
  }
  exit(main(argc, argv, environment));
}

void ImageRank::run_first_functions(int argc, char** argv, char** environment) {
  const auto call = [&](std::uint64_t address) {
    reinterpret_cast<void (*)(int, char**, char**)>(address)(argc, argv, environment);
  };
  const auto call_all = [&](const ExecutableFile::Functions& functions) {
    for (std::size_t i = 0; i < functions.count; ++i) {
      std::uint64_t address = 0;
      std::memcpy(&address, image_.at(functions.address) + i * sizeof address, sizeof address);
      call(address);
    }
  };
  const ExecutableFile& file = image_.file();
  call_all(file.preinit);
  if (file.init != 0) call(reinterpret_cast<std::uint64_t>(image_.at(file.init)));
  call_all(file.init_array);
}

void ImageRank::exit(int code) {
  exit_functions_.run(code);
  std::fflush(stdout);  // as the end of a process does
  leave(code & 0xff);
}

}  // namespace brant::mpi
