#include "pair.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "brant/base/status.h"

namespace brant::bench {
namespace {

/// Of the GPUs we may use, the one for this rank.
void see_one_gpu(int rank) {
  std::vector<std::string> visible;
  if (const char* list = std::getenv("CUDA_VISIBLE_DEVICES"); list != nullptr) {
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');) visible.push_back(word);
  } else {
    visible = {"0", "1"};
  }
  if (visible.empty()) return;
  setenv("CUDA_VISIBLE_DEVICES", visible[static_cast<std::size_t>(rank) % visible.size()].c_str(), 1);
}

}  // namespace

Pair Pair::split(unsigned limit_s) {
  Pair pair;
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error(Status::no_memory, "no shared memory for two processes");
  pair.shared_ = new (memory) Shared{};
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw Error(Status::io_error, "fork failed");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    pair.rank_ = 1;
    pair.other_ = parent;
  } else {
    pair.other_ = child;
  }
  alarm(limit_s);  // nothing here may outlast its welcome on a lent machine
  see_one_gpu(pair.rank_);
  return pair;
}

void Pair::meet() noexcept {
  ++meetings_;
  auto& mine = shared_->arrived[rank_];
  mine.store(meetings_, std::memory_order_release);
  for (unsigned spins = 0; shared_->arrived[1 - rank_].load(std::memory_order_acquire) < meetings_; ++spins) {
    if (spins % 1024 != 0) continue;
    if (rank_ == 0 && waitpid(other_, nullptr, WNOHANG) == other_) {
      std::fprintf(stderr, "courier_bench: the second process has ended\n");
      _exit(1);
    }
    usleep(10);
  }
}

int Pair::finish(int status) noexcept {
  if (rank_ != 0) return status;
  int other = 0;
  if (waitpid(other_, &other, 0) != other_ || !WIFEXITED(other)) return 1;
  return status != 0 ? status : WEXITSTATUS(other);
}

}  // namespace brant::bench
