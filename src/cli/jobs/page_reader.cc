#include "cli/jobs/page_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "core/observe/page_file.h"
#include "core/observe/published_pages.h"
#include "core/observe/statistics_page.h"

namespace brant::cli::jobs {
namespace {

/// The text of a field, nothing if it does not end.
template <std::size_t kBytes>
bool take_text(const char (&field)[kBytes], std::string& text) {
  const void* end = std::memchr(field, '\0', kBytes);
  if (end == nullptr) return false;
  text.assign(field, static_cast<const char*>(end));
  return true;
}

std::string why_no_page(std::span<const std::byte> bytes, const StatisticsHeader& header) {
  if (bytes.size() < sizeof(std::uint64_t) || header.magic != StatisticsHeader::kMagic)
    return "it is no statistics page of brant";
  if (header.version != StatisticsHeader::kVersion || header.path_count != kPathCount ||
      header.page_bytes != sizeof(StatisticsPage))
    return fmt::format("another version of brant wrote it (layout {}, {} paths; this one reads layout {}, {} paths)",
                       header.version, header.path_count, StatisticsHeader::kVersion, kPathCount);
  if (bytes.size() < sizeof(StatisticsPage))
    return fmt::format("it is cut short: {} of {} bytes", bytes.size(), sizeof(StatisticsPage));
  if (header.owner.pid <= 0 || header.size <= 0 || header.rank < 0 || header.rank >= header.size)
    return fmt::format("it is damaged: rank {} of {}, pid {}", header.rank, header.size, header.owner.pid);
  return {};
}

/// Counters are copied as bytes: each lies in one aligned word, which the kernel's copy does not tear.
std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t offset) noexcept {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

Counts counts_in(std::span<const std::byte> bytes) {
  const auto at = [&](std::size_t offset) { return number_at(bytes, offsetof(StatisticsPage, counters) + offset); };
  Counts counts;
  for (std::size_t path = 0; path < counts.paths.size(); ++path) {
    const std::size_t base = offsetof(Counters, paths) + path * sizeof(PathTally);
    counts.paths[path] = {at(base + offsetof(PathTally, sends)), at(base + offsetof(PathTally, bytes_sent)),
                          at(base + offsetof(PathTally, receives)), at(base + offsetof(PathTally, bytes_received))};
  }
  counts.failures = at(offsetof(Counters, failures));
  counts.peers_lost = at(offsetof(Counters, peers_lost));
  counts.progress_calls = at(offsetof(Counters, progress_calls));
  counts.sleeps = at(offsetof(Counters, sleeps));
  counts.bad_records = at(offsetof(Counters, bad_records));
  return counts;
}

std::uint64_t grown(std::uint64_t now, std::uint64_t before) noexcept { return now > before ? now - before : 0; }

}  // namespace

PathCount& PathCount::operator+=(const PathCount& other) noexcept {
  sends += other.sends;
  bytes_sent += other.bytes_sent;
  receives += other.receives;
  bytes_received += other.bytes_received;
  return *this;
}

PathCount Counts::all_paths() const noexcept {
  PathCount sum;
  for (const PathCount& path : paths) sum += path;
  return sum;
}

Counts& Counts::operator+=(const Counts& other) noexcept {
  for (std::size_t path = 0; path < paths.size(); ++path) paths[path] += other.paths[path];
  failures += other.failures;
  peers_lost += other.peers_lost;
  progress_calls += other.progress_calls;
  sleeps += other.sleeps;
  bad_records += other.bad_records;
  return *this;
}

Counts Counts::since(const Counts& before) const noexcept {
  Counts change;
  for (std::size_t path = 0; path < paths.size(); ++path) {
    const PathCount& now = paths[path];
    const PathCount& then = before.paths[path];
    change.paths[path] = {grown(now.sends, then.sends), grown(now.bytes_sent, then.bytes_sent),
                          grown(now.receives, then.receives), grown(now.bytes_received, then.bytes_received)};
  }
  change.failures = grown(failures, before.failures);
  change.peers_lost = grown(peers_lost, before.peers_lost);
  change.progress_calls = grown(progress_calls, before.progress_calls);
  change.sleeps = grown(sleeps, before.sleeps);
  change.bad_records = grown(bad_records, before.bad_records);
  return change;
}

ProcessPage parse_page(std::span<const std::byte> bytes) {
  ProcessPage page;
  StatisticsHeader header;
  header.magic = 0;
  if (!bytes.empty()) std::memcpy(static_cast<void*>(&header), bytes.data(), std::min(bytes.size(), sizeof(header)));
  page.problem = why_no_page(bytes, header);
  if (!page.problem.empty()) return page;
  page.owner = header.owner;
  page.parent_pid = header.parent_pid;
  page.rank = header.rank;
  page.size = header.size;
  page.local_size = header.local_size;
  page.started_ns = header.started_ns;
  if (!take_text(header.job_id, page.job_id) || !take_text(header.launcher, page.launcher) ||
      !take_text(header.program, page.program)) {
    page.problem = "it is damaged: a text does not end";
    return page;
  }
  page.counts = counts_in(bytes);
  return page;
}

namespace {

/// With one read: whatever happens to the file meanwhile, the reader does not fault. What went wrong, in words.
std::string read_bytes(const std::string& file, std::vector<std::byte>& bytes, bool& vanished) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  const int error = errno;
  struct stat info = {};
  if (!fd) {
    vanished = error == ENOENT;
    return std::strerror(error);
  }
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return "it is no regular file";
  const ssize_t got = ::pread(fd.get(), bytes.data(), bytes.size(), 0);
  if (got < 0) return std::strerror(errno);
  bytes.resize(static_cast<std::size_t>(got));
  return {};
}

}  // namespace

ProcessPage read_page(const std::string& file) {
  std::vector<std::byte> bytes(StatisticsPage::kFileBytes);
  ProcessPage page;
  bool vanished = false;
  const std::string problem = read_bytes(file, bytes, vanished);
  if (problem.empty()) page = parse_page(bytes);
  if (!problem.empty()) page.problem = problem;
  page.vanished = vanished;
  page.file = file;
  return page;
}

std::vector<TeamPage> read_team_pages(const std::string& file) {
  std::vector<std::byte> bytes(kPageFileBytes * PublishedPages::kPagesMax);
  std::vector<TeamPage> teams;
  bool vanished = false;
  if (!read_bytes(file, bytes, vanished).empty()) return teams;
  for (std::size_t at = 0; at + kPageFileBytes <= bytes.size(); at += kPageFileBytes) {
    if (std::optional<TeamPage> team = parse_team_page(std::span(bytes).subspan(at, kPageFileBytes)))
      teams.push_back(std::move(*team));
  }
  return teams;
}

}  // namespace brant::cli::jobs
