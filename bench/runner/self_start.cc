#include "bench/runner/self_start.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/env.h"
#include "brant/base/status.h"
#include "port/boot/detect.h"
#include "port/boot/select.h"

namespace brant::bench {
namespace {

/// `brant run --patience`, which is 1 s unless somebody says otherwise, and then some.
constexpr std::chrono::milliseconds kLongerThanPatience{1500};

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  if (arguments.size() < 2)
    throw Error(Status::io_error, "/proc/self/cmdline cannot be read: start it with `brant run -n 2 -- brant ...`");
  return arguments;
}

std::string own_program() {
  std::error_code error;
  std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) throw Error(Status::io_error, "/proc/self/exe cannot be read: " + error.message());
  return self;
}

}  // namespace

std::vector<std::string> own_command() {
  std::vector<std::string> command = own_arguments();
  command.front() = own_program();
  return command;
}

bool started_alone() {
  if (!env("BRANT_BOOTSTRAP").empty()) return false;
  const port::Starter starter = port::detect_starter().starter;
  if (starter == port::Starter::brant_run || starter == port::Starter::pmix) return false;
  return port::make_boot()->job().size == 1;  // what is left: nobody, or a launcher to complain about
}

void restart_as_job(int ranks) {
  const std::vector<std::string> mine = own_command();
  const std::string& self = mine.front();
  // Whoever typed this command knows nothing of a launcher: what is wrong is said by rank 0, and once.
  std::vector<std::string> command = {self,         "run", "-n", std::to_string(ranks), "--no-prefix", "--quiet",
                                      "--patience", "0",   "--"};
  command.insert(command.end(), mine.begin(), mine.end());
  replace_process(std::move(command));
}

void replace_process(std::vector<std::string> command) {
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(argv.front(), argv.data());
  throw Error(Status::io_error,
              fmt::format("{} could not be started again: {}", command.front(), std::strerror(errno)));
}

void wait_to_be_ended() {
  if (env_int("BRANT_RANK").value_or(0) > 0) std::this_thread::sleep_for(kLongerThanPatience);
}

}  // namespace brant::bench
