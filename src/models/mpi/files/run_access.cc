#include "models/mpi/files/run_access.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace brant::mpi {

namespace {

struct FileRun {
  std::int64_t offset = 0;
  std::uint64_t bytes = 0;
  [[nodiscard]] std::int64_t end() const noexcept { return offset + static_cast<std::int64_t>(bytes); }
};

/// Reading so many bytes that nobody wants takes no longer than another call of the system.
constexpr std::int64_t kGapMost = std::int64_t{16} << 10;
/// Read at once, with gaps.
constexpr std::int64_t kSpanMost = std::int64_t{1} << 20;
constexpr std::size_t kRunsMost = 4096;

/// Gets runs in their order, and reads several at once.
class RunReader {
 public:
  RunReader(const DiskFile& file, std::span<std::byte> to) noexcept : file_(file), to_(to) {}

  void add(std::int64_t offset, std::uint64_t bytes) {
    if (ended_) return;
    if (!runs_.empty() && runs_.back().end() == offset) {
      runs_.back().bytes += bytes;
      return;
    }
    if (runs_.size() == kRunsMost) read_all();
    runs_.push_back({offset, bytes});
  }
  /// How many bytes were read.
  std::size_t finish() {
    read_all();
    return done_;
  }

 private:
  void read_all() {
    for (std::size_t first = 0; first < runs_.size() && !ended_;) {
      std::size_t last = first + 1;
      while (last < runs_.size() && goes_with(first, last)) ++last;
      last == first + 1 ? read_one(runs_[first]) : read_together({runs_.data() + first, last - first});
      first = last;
    }
    runs_.clear();
  }

  [[nodiscard]] bool goes_with(std::size_t first, std::size_t next) const noexcept {
    return runs_[next].offset - runs_[next - 1].end() <= kGapMost &&
           runs_[next].end() - runs_[first].offset <= kSpanMost;
  }

  void read_one(const FileRun& run) {
    const std::size_t got = file_.read(run.offset, to_.subspan(done_, run.bytes));
    done_ += got;
    ended_ = got < run.bytes;
  }

  /// Runs of which each begins behind the one before, but may overlap it.
  void read_together(std::span<const FileRun> runs) {
    const std::int64_t begin = runs.front().offset;
    const std::int64_t end = std::ranges::max(runs, {}, &FileRun::end).end();
    sieve_.resize(static_cast<std::size_t>(end - begin));
    const std::size_t got = file_.read(begin, sieve_);
    for (const FileRun& run : runs) {
      const auto at = static_cast<std::size_t>(run.offset - begin);
      const std::size_t there = std::min<std::size_t>(run.bytes, got - std::min(got, at));
      std::memcpy(to_.data() + done_, sieve_.data() + at, there);
      done_ += there;
      ended_ = there < run.bytes;
      if (ended_) return;
    }
  }

  const DiskFile& file_;
  const std::span<std::byte> to_;
  std::vector<FileRun> runs_;
  std::vector<std::byte> sieve_;
  std::size_t done_ = 0;
  bool ended_ = false;
};

/// Gets runs in their order; those that lie together are written at once.
class RunWriter {
 public:
  RunWriter(const DiskFile& file, std::span<const std::byte> from) noexcept : file_(file), from_(from) {}

  void add(std::int64_t offset, std::uint64_t bytes) {
    if (run_.end() != offset) finish();
    if (run_.bytes == 0) run_.offset = offset;
    run_.bytes += bytes;
  }
  void finish() {
    file_.write(run_.offset, from_.subspan(done_, run_.bytes));
    done_ += run_.bytes;
    run_.bytes = 0;
  }

 private:
  const DiskFile& file_;
  const std::span<const std::byte> from_;
  FileRun run_;
  std::size_t done_ = 0;
};

}  // namespace

std::size_t read_runs(const DiskFile& file, const FileLayout& layout, std::uint64_t position, std::span<std::byte> to) {
  RunReader reader(file, to);
  layout.for_each_run(position, position + to.size(),
                      [&](std::int64_t offset, std::uint64_t bytes) { reader.add(offset, bytes); });
  return reader.finish();
}

void write_runs(const DiskFile& file, const FileLayout& layout, std::uint64_t position,
                std::span<const std::byte> from) {
  RunWriter writer(file, from);
  layout.for_each_run(position, position + from.size(),
                      [&](std::int64_t offset, std::uint64_t bytes) { writer.add(offset, bytes); });
  writer.finish();
}

}  // namespace brant::mpi
