#include "port/boot/single/single_boot.h"

#include <unistd.h>

#include <chrono>
#include <map>

#include <fmt/format.h>

#include "port/boot/key_value.h"
#include "port/boot/key_values.h"

namespace brant::port {
namespace {

std::string unique_job_id() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return fmt::format("single-{}-{:x}", ::getpid(), static_cast<std::uint64_t>(now));
}

class SingleBoot final : public Boot {
 public:
  SingleBoot()
      : job_{.rank = 0, .size = 1, .local_rank = 0, .local_size = 1, .job_id = unique_job_id(), .launcher = "single"} {}

  const JobInfo& job() const noexcept override { return job_; }

  Status put(const std::string& key, std::span<const std::byte> value) noexcept override {
    try {
      error_ = key_value_fault(key, value.size());
      if (!error_.empty()) return Status::invalid_argument;
      staged_[key].assign(value.begin(), value.end());
      return Status::ok;
    } catch (...) {
      return Status::no_memory;
    }
  }

  Status fence(std::chrono::milliseconds) noexcept override {
    try {
      for (auto& [key, value] : staged_) visible_[key] = std::move(value);
      staged_.clear();
      return Status::ok;
    } catch (...) {
      return Status::no_memory;
    }
  }

  Result<std::vector<std::byte>> get(int rank, const std::string& key) noexcept override {
    try {
      error_ = rank == 0 ? key_value_fault(key, 0) : fmt::format("there is no rank {} in a job of one process", rank);
      if (!error_.empty()) return Status::invalid_argument;
      const auto found = visible_.find(key);
      if (found == visible_.end()) {
        error_ = fmt::format("this process put no value '{}' before a fence", key);
        return Status::not_found;
      }
      return found->second;
    } catch (...) {
      return Status::no_memory;
    }
  }

  std::string last_error() const override { return error_; }

  void finalize() noexcept override {}

  void abort(int exit_code, const std::string& message) noexcept override { abort_alone(exit_code, message); }

 private:
  JobInfo job_;
  std::map<std::string, std::vector<std::byte>> staged_;
  std::map<std::string, std::vector<std::byte>> visible_;
  std::string error_;
};

}  // namespace

std::unique_ptr<Boot> open_single_boot() { return std::make_unique<SingleBoot>(); }

}  // namespace brant::port
