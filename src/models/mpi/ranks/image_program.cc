#include "models/mpi/ranks/image_program.h"

#include <ios>
#include <iostream>
#include <utility>

#include "models/mpi/ranks/needed_libraries.h"

namespace brant::mpi {
namespace {

ImageProgram* of_process = nullptr;

}  // namespace

ImageProgram* image_program() noexcept { return of_process; }

ImageProgram::ImageProgram(ExecutableFile file, const std::vector<std::string>& arguments, int ranks, bool share)
    : file_(std::move(file)) {
  // Images have copies of std::cout and its like, made when they are loaded: these must be whole by then.
  static const std::ios_base::Init streams;
  ThreadLocalWindow::check();
  load_needed_libraries(file_, share);
  file_.fd = copy_in_memory(file_);
  for (int i = 0; i < ranks; ++i) ranks_.push_back(std::make_unique<ImageRank>(file_, arguments));
  of_process = this;
}

ImageRank* ImageProgram::owner_of(const void* address) const noexcept {
  for (const std::unique_ptr<ImageRank>& rank : ranks_)
    if (rank->image().holds(address)) return rank.get();
  return nullptr;
}

}  // namespace brant::mpi
