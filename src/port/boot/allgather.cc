#include <fmt/format.h>

#include "port/boot.h"

namespace brant::port {

std::vector<std::vector<std::byte>> allgather(Boot& boot, const std::string& key, std::span<const std::byte> mine,
                                              std::chrono::milliseconds timeout) {
  const JobInfo& job = boot.job();
  const auto check = [&](Status status, const char* what) {
    if (status == Status::ok) return;
    throw Error(status, fmt::format("exchange of '{}' by {} (rank {} of {}): {} failed: {}. {}", key, job.launcher,
                                    job.rank, job.size, what, status_text(status), boot.last_error()));
  };
  check(boot.put(key, mine), "put");
  check(boot.fence(timeout), "fence");
  std::vector<std::vector<std::byte>> records;
  records.reserve(static_cast<std::size_t>(job.size));
  for (int rank = 0; rank < job.size; ++rank) {
    Result<std::vector<std::byte>> record = boot.get(rank, key);
    check(record.status(), "get");
    records.push_back(std::move(record).value());
  }
  return records;
}

}  // namespace brant::port
