#include "models/mpi/dynamic/spawned_jobs.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/env.h"
#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

namespace fs = std::filesystem;

UniqueFd plan_file(const port::launcher::SpawnPlan& plan) {
  UniqueFd file(::memfd_create("brant-spawn", MFD_CLOEXEC));
  require(static_cast<bool>(file), MPI_ERR_SPAWN, "there is no memory file for what is to be spawned: {}",
          std::strerror(errno));
  const std::vector<std::byte> packed = pack(plan);
  for (std::size_t at = 0; at < packed.size();) {
    const ssize_t done = ::write(file.get(), packed.data() + at, packed.size() - at);
    if (done < 0 && errno == EINTR) continue;
    require(done > 0, MPI_ERR_SPAWN, "what is to be spawned cannot be written: {}", std::strerror(errno));
    at += static_cast<std::size_t>(done);
  }
  return file;
}

/// Beside this library or program, as they are built and installed, or in PATH.
std::string find_launcher() {
  std::vector<fs::path> folders;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&find_launcher), &info) != 0 && info.dli_fname != nullptr) {
    std::error_code ignored;
    const fs::path here = fs::absolute(info.dli_fname, ignored).parent_path();
    folders = {here, here / "../bin", here / "../../bin"};
  }
  std::error_code fault;
  if (const fs::path own = fs::read_symlink("/proc/self/exe", fault); !fault) folders.push_back(own.parent_path());
  for (std::string_view rest = env("PATH"); !rest.empty();) {
    const std::size_t colon = rest.find(':');
    folders.emplace_back(rest.substr(0, colon));
    rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
  }
  for (const fs::path& folder : folders) {
    const fs::path file = folder / "brant";
    if (fs::is_regular_file(file, fault) && ::access(file.c_str(), X_OK) == 0) return file.lexically_normal().string();
  }
  fail(MPI_ERR_SPAWN,
       "this program was not started by `brant run`, and the program `brant`, which starts others, is neither beside "
       "its library nor in PATH");
}

}  // namespace

void SpawnedJobs::start(const port::launcher::SpawnPlan& plan) {
  std::erase_if(jobs_, [this](Job& job) {
    listen(job);
    return !job.line;
  });
  const UniqueFd file = plan_file(plan);
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, MPI_ERR_SPAWN,
          "there is no socket for what is to be spawned: {}", std::strerror(errno));
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  port::Boot& boot = process_.engine().boot();
  const Status status = boot.spawn(file.get(), theirs.get());
  if (status == Status::not_supported) {
    start_launcher(file.get(), theirs.get());
  } else {
    require(status == Status::ok, MPI_ERR_SPAWN, "the launcher of this job starts no others: {}", boot.last_error());
  }
  jobs_.push_back({std::move(ours), {}});
}

/// It makes a child of its own at once, and ends: this program has no child that it would hear of.
void SpawnedJobs::start_launcher(int plan, int line) {
  const std::string program = find_launcher();
  std::array<std::string, 5> words = {program, "run-spawned", std::to_string(plan), std::to_string(line), "--detach"};
  std::array<char*, 6> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  posix_spawn_file_actions_t actions;
  require(::posix_spawn_file_actions_init(&actions) == 0, MPI_ERR_NO_MEM, "no memory to start {}", program);
  // Onto themselves: they stay open over there.
  ::posix_spawn_file_actions_adddup2(&actions, plan, plan);
  ::posix_spawn_file_actions_adddup2(&actions, line, line);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  require(error == 0, MPI_ERR_SPAWN, "{} cannot be started: {}", program, std::strerror(error));
  int how = 0;
  while (::waitpid(pid, &how, 0) < 0 && errno == EINTR) {
  }
}

void SpawnedJobs::listen(Job& job) {
  std::array<char, 512> piece;
  while (job.line) {
    const ssize_t got = ::recv(job.line.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) return job.line.reset();
    job.heard.append(piece.data(), static_cast<std::size_t>(got));
  }
}

bool SpawnedJobs::goes_on() {
  listen(jobs_.back());
  return static_cast<bool>(jobs_.back().line);
}

std::string SpawnedJobs::why_not() const {
  constexpr std::string_view kFailed = "failed ";
  const std::string& heard = jobs_.back().heard;
  const std::size_t at = heard.find(kFailed);
  if (at == std::string::npos) return "they ended before they had called MPI_Init";
  const std::size_t behind_number = heard.find(' ', at + kFailed.size());
  return heard.substr(behind_number + 1, heard.find('\n', at) - behind_number - 1);
}

void SpawnedJobs::note_met() noexcept {
  static_cast<void>(::send(jobs_.back().line.get(), &port::launcher::kMet, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
}

void SpawnedJobs::leave() noexcept {
  for (const Job& job : jobs_) {
    if (job.line) static_cast<void>(::send(job.line.get(), &port::launcher::kLeft, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
  }
  jobs_.clear();
}

}  // namespace brant::mpi
