#include "bench/memspeed/memspeed.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "bench/memspeed/access.h"
#include "bench/memspeed/memories.h"
#include "bench/memspeed/rows.h"
#include "bench/runner/images.h"
#include "bench/runner/path_counts.h"
#include "bench/runner/rma_batch.h"
#include "bench/runner/row.h"
#include "bench/runner/session.h"
#include "bench/runner/us_since.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Fills samples, in microseconds, with copies of so many bytes.
using Copy = std::function<void(std::size_t bytes, std::span<double> us)>;

/// What `sample` fills after one tenth of it, and at least one, that is not kept.
Summary repeat(std::size_t count, const std::function<void(std::span<double>)>& sample) {
  std::vector<double> us(count / 10 + 1);
  sample(us);
  us.assign(count, 0);
  sample(us);
  return summarize(us);
}

RuntimeOptions runtime_options(const Memspeed& asked) {
  RuntimeOptions wanted = RuntimeOptions::from_environment();
  if (asked.device != GpuChoice::automatic) wanted.gpu = asked.device;
  return wanted;
}

/// Memory of the other process, as rank 0 reaches it.
struct There {
  MemoryKind kind = MemoryKind::host;
  RemoteSegment segment;
};

class MemspeedRun {
 public:
  explicit MemspeedRun(const Memspeed& asked)
      : asked_(asked),
        session_(runtime_options(asked), "bench memspeed", 2, 1),
        runtime_(session_.runtime()),
        machine_(describe_machine(runtime_)),
        images_(runtime_),
        mine_(
            make_memories(runtime_, asked.bytes, session_.leads() ? Alloc::malloc : Alloc::library, session_.leads())),
        puts_(runtime_, &PathTally::sends),
        gets_(runtime_, &PathTally::receives),
        rows_(session_.leads() ? asked.json : std::string()) {
    if (session_.ranks() == 2) meet();
  }
  ~MemspeedRun() { session_.close_rival(); }

  void run() {
    print_title();
    copies_within();
    const std::size_t others = session_.leads() ? there_.size() : mine_.all.size();
    for (std::size_t other = 0; other < others; ++other) copies_between(other);
    accesses();
    session_.barrier();
  }

 private:
  // --- Who has what -------------------------------------------------------------------------------------------------

  /// The second process exposes its memories; each learns how many the other one has. Those that the first one reaches
  /// by no means are left out.
  void meet() {
    Link& partner = session_.partner();
    const auto count = static_cast<std::byte>(mine_.all.size());
    if (session_.leads()) {
      partner.send_block(std::span(&count, 1));
      const std::size_t theirs = std::to_integer<std::size_t>(partner.receive_block().at(0));
      for (std::size_t i = 0; i < theirs; ++i) reach();
      if (const std::string missing = text_of(partner.receive_block()); !missing.empty())
        missing_there_.push_back(missing);
      return;
    }
    mine_of_leader_ = std::to_integer<std::size_t>(partner.receive_block().at(0));
    partner.send_block(std::span(&count, 1));
    std::vector<OwnMemory> reached;
    for (OwnMemory& memory : mine_.all) {
      if (show(memory)) reached.push_back(std::move(memory));
    }
    mine_.all = std::move(reached);
    const std::string missing = fmt::format("{}", fmt::join(mine_.missing, "; "));
    partner.send_block(std::as_bytes(std::span(missing)));
  }

  /// False: the other process does not reach it.
  bool show(const OwnMemory& memory) {
    Link& partner = session_.partner();
    Segment segment = expose(runtime_, memory.space.part(0, asked_.bytes));
    const SegmentTicket ticket = segment.ticket();
    partner.send_block(std::as_bytes(std::span(&memory.kind, 1)));
    partner.send_block(ticket.bytes());
    const bool reached = partner.receive_block().at(0) != std::byte{};
    if (reached) segments_.push_back(std::move(segment));
    return reached;
  }
  void reach() {
    There there;
    there.kind = static_cast<MemoryKind>(session_.partner().receive_block().at(0));
    const std::vector<std::byte> ticket = session_.partner().receive_block();
    try {
      there.segment = RemoteSegment(runtime_, session_.channel_partner(), SegmentTicket(ticket));
    } catch (const Error& fault) {
      if (fault.status() != Status::not_supported) throw;
      missing_there_.push_back(fmt::format("{} memory: {}", memory_kind_name(there.kind), fault.what()));
    }
    const auto reached = static_cast<std::byte>(there.segment.is_open());
    session_.partner().send_block(std::span(&reached, 1));
    if (there.segment.is_open()) there_.push_back(std::move(there));
  }

  static std::string text_of(const std::vector<std::byte>& block) {
    return {reinterpret_cast<const char*>(block.data()), block.size()};
  }

  void print_title() const {
    if (!session_.leads()) return;
    fmt::print(
        "# brant bench memspeed: {} rank{}, {} each; short: {} bytes; GB/s = bytes / (full - short), 1e9 bytes\n",
        session_.ranks(), session_.ranks() == 1 ? "" : "s", format_size(asked_.bytes), kElementBytes);
    fmt::print("# 1: is the other process; by copy: Runtime::copy, by put and get: of this process\n");
    for (const std::string& missing : mine_.missing) fmt::print("# not measured here: {}\n", missing);
    for (const std::string& missing : missing_there_) fmt::print("# not measured at the other process: {}\n", missing);
    fmt::print("# brant {}, UCX {}, {}{}{}\n", machine_.brant, machine_.ucx.empty() ? "none" : machine_.ucx,
               machine_.cpu, machine_.gpu.empty() ? "" : ", ", machine_.gpu);
    fmt::print("{}\n", copy_header());
    std::fflush(stdout);
  }

  // --- Copies -------------------------------------------------------------------------------------------------------

  /// How many memories the first process has.
  [[nodiscard]] std::size_t locals() const { return session_.leads() ? mine_.all.size() : mine_of_leader_; }

  /// The second process waits after each pair, so that nobody waits for long.
  void copies_within() {
    for (std::size_t from = 0; from < locals(); ++from) {
      for (std::size_t to = 0; to < locals(); ++to) {
        if (session_.leads()) copies_within(mine_.all[from], mine_.all[to]);
        session_.barrier();
      }
    }
  }

  void copies_within(const OwnMemory& from, const OwnMemory& to) {
    const Buffer source = from.space.part(0, asked_.bytes);
    const Buffer target = (&from == &to ? to.other : to.space).part(0, asked_.bytes);
    CopyRow row = row_of("copy", memory_kind_name(from.kind), memory_kind_name(to.kind), from.kind, to.kind);
    if (asked_.check) check_within(row, source, target);
    measure(row, [&](std::size_t bytes, std::span<double> us) { copy_within(source, target, bytes, us); });
    // What Runtime::copy does.
    const bool by_cpu = host_accessible(from.kind) && host_accessible(to.kind);
    row.path = row.short_path = by_cpu ? "memcpy" : "copy_engine";
    report(row);
  }

  void copy_within(Buffer source, Buffer target, std::size_t bytes, std::span<double> us) {
    for (double& sample : us) {
      const Clock::time_point begin = Clock::now();
      runtime_.copy(target, ConstBuffer(source.data, bytes, source.kind));
      sample = us_since(begin);
    }
  }

  void check_within(const CopyRow& row, Buffer source, Buffer target) {
    for (const std::size_t bytes : {asked_.bytes, kElementBytes}) {
      images_.fill(part(source, bytes), bytes);
      images_.poison(part(target, bytes), bytes);
      runtime_.copy(target, part(source, bytes));
      expect(row, part(target, bytes));
    }
  }

  /// With one memory of the other process: puts from each of ours, and gets.
  void copies_between(std::size_t other) {
    const bool leads = session_.leads();
    UcxBaseline* const ucx = open_rival(other);
    std::optional<RmaBatch> batch;
    if (leads) batch.emplace(runtime_, there_[other].segment, 1);
    for (std::size_t i = 0; i < locals(); ++i) {
      for (const RmaDirection direction : {RmaDirection::put, RmaDirection::get}) {
        if (!leads) {
          if (asked_.check) check_at_target(mine_.all[other].space.part(0, asked_.bytes), direction);
          session_.barrier();
          continue;
        }
        const Buffer local = mine_.all[i].space.part(0, asked_.bytes);
        CopyRow row = between_row(mine_.all[i], there_[other], direction);
        if (asked_.check) check_between(row, *batch, local, direction);
        measure(row,
                [&](std::size_t bytes, std::span<double> us) { move(row, *batch, direction, part(local, bytes), us); });
        report(row);
        if (ucx != nullptr && local.kind != MemoryKind::emulated) report_rival(*ucx, row, direction, local);
        session_.barrier();
      }
    }
  }

  void move(CopyRow& row, RmaBatch& batch, RmaDirection direction, Buffer local, std::span<double> us) {
    const PathCounts& counts = direction == RmaDirection::put ? puts_ : gets_;
    const PathCounts::Sends before = counts.now();
    for (double& sample : us) {
      const Clock::time_point begin = Clock::now();
      batch.add(direction, 0, local);
      batch.finish();
      sample = us_since(begin);
    }
    (local.bytes == kElementBytes ? row.short_path : row.path) = counts.since(before);
  }

  CopyRow between_row(const OwnMemory& here, const There& there, RmaDirection direction) const {
    const std::string mine(memory_kind_name(here.kind)), theirs = fmt::format("1:{}", memory_kind_name(there.kind));
    if (direction == RmaDirection::put) return row_of("put", mine, theirs, here.kind, there.kind);
    return row_of("get", theirs, mine, there.kind, here.kind);
  }

  /// The owner makes its memory ready and looks at it; in between the leader has its turn.
  void check_between(const CopyRow& row, RmaBatch& batch, Buffer local, RmaDirection direction) {
    const bool puts = direction == RmaDirection::put;
    for (const std::size_t bytes : {asked_.bytes, kElementBytes}) {
      const Buffer mine = part(local, bytes);
      puts ? images_.fill(mine, bytes) : images_.poison(mine, bytes);
      session_.barrier();
      batch.add(direction, 0, mine);
      batch.finish();
      if (!puts) expect(row, mine);
      session_.barrier();
    }
  }
  void check_at_target(Buffer memory, RmaDirection direction) {
    const bool puts = direction == RmaDirection::put;
    for (const std::size_t bytes : {asked_.bytes, kElementBytes}) {
      const Buffer mine = part(memory, bytes);
      puts ? images_.poison(mine, bytes) : images_.fill(mine, bytes);
      session_.barrier();
      session_.barrier();
      if (puts) expect(row_of("put", "rank 0", memory_kind_name(memory.kind), memory.kind, memory.kind), mine);
    }
  }

  void expect(const CopyRow& row, Buffer memory) {
    const std::optional<std::size_t> wrong = images_.first_wrong(memory, memory.bytes);
    if (!wrong) return;
    throw Error(Status::internal, fmt::format("check: a {} of {} bytes from {} to {} is wrong at rank {}: byte {}",
                                              row.how, memory.bytes, row.from, row.to, runtime_.rank().value, *wrong));
  }

  // --- The rival ----------------------------------------------------------------------------------------------------

  /// Both open it: for one memory of the other process. Null without one, and where it does not take that memory.
  UcxBaseline* open_rival(std::size_t other) {
    const MemoryKind kind = session_.leads() ? there_[other].kind : mine_.all[other].kind;
    if (!asked_.ucx || kind == MemoryKind::emulated) return nullptr;
    session_.barrier();  // the other process has ended with the one before
    UcxBaseline& ucx = session_.open_rival(UcxBaselineUse::one_sided);
    if (session_.leads()) {
      ucx.reach(session_.partner().receive_block());
    } else {
      session_.partner().send_block(ucx.expose(mine_.all[other].space.part(0, asked_.bytes).data, asked_.bytes));
    }
    return &ucx;
  }

  void report_rival(UcxBaseline& ucx, CopyRow row, RmaDirection direction, Buffer local) {
    const auto what = direction == RmaDirection::put ? UcxBaseline::OneSided::put : UcxBaseline::OneSided::get;
    measure(row, [&](std::size_t bytes, std::span<double> us) { ucx.one_sided(what, local.data, bytes, 1, us); });
    row.peer = row.path = row.short_path = "ucx";
    row.check = false;
    report(row);
  }

  // --- Accesses -----------------------------------------------------------------------------------------------------

  void accesses() {
    if (session_.leads()) fmt::print("{}\n", access_header());
    for (std::size_t i = 0; i < locals(); ++i) {
      if (session_.leads() && host_accessible(mine_.all[i].kind)) accesses_of(mine_.all[i]);
      session_.barrier();
    }
  }

  void accesses_of(const OwnMemory& memory) {
    const std::span words(static_cast<std::uint64_t*>(memory.space.part(0, asked_.bytes).data),
                          asked_.bytes / sizeof(std::uint64_t));
    const std::size_t few = std::max<std::size_t>(words.size() >> 8, 1);
    std::uint64_t kept = 1;
    // Each pass goes on where the last one ended, so that it does not find in the cache what that has left there.
    QuadraticSteps writes(power_of_two_within(words.size())), reads(power_of_two_within(words.size()));
    access(memory, "sequential write", words.size(), [&] { kept = write_in_order(words, kept); });
    access(memory, "sequential read", words.size(), [&] { kept = read_in_order(words, kept); });
    access(memory, "scattered write", few, [&] { kept = write_scattered(words, writes, few, kept); });
    access(memory, "scattered read", few, [&] { kept = read_scattered(words, reads, few, kept); });
    link_lines(words);
    kept = 0;
    access(memory, "pointer chase", few, [&] { kept = chase(words, few, kept); });
  }

  void access(const OwnMemory& memory, const char* what, std::size_t accesses, const std::function<void()>& pass) {
    AccessRow row;
    row.memory = memory_kind_name(memory.kind);
    row.kind = memory.kind;
    row.what = what;
    row.accesses = accesses;
    row.bytes = accesses * sizeof(std::uint64_t);
    row.ranks = session_.ranks();
    row.us = repeat(asked_.iterations, [&](std::span<double> us) {
      for (double& sample : us) {
        const Clock::time_point begin = Clock::now();
        pass();
        sample = us_since(begin);
      }
    });
    rows_.append(to_json(row, machine_));
    fmt::print("{}\n", access_line(row));
  }

  // --- Both ---------------------------------------------------------------------------------------------------------

  static Buffer part(Buffer whole, std::size_t bytes) noexcept { return {whole.data, bytes, whole.kind}; }

  CopyRow row_of(const char* how, std::string_view from, std::string_view to, MemoryKind from_kind,
                 MemoryKind to_kind) const {
    CopyRow row;
    row.how = how;
    row.from = from;
    row.to = to;
    row.from_kind = from_kind;
    row.to_kind = to_kind;
    row.bytes = asked_.bytes;
    row.ranks = session_.ranks();
    row.check = asked_.check;
    return row;
  }

  void measure(CopyRow& row, const Copy& copy) const {
    row.full_us = repeat(asked_.iterations, [&](std::span<double> us) { copy(asked_.bytes, us); });
    row.short_us = repeat(asked_.iterations * kShortCopies, [&](std::span<double> us) { copy(kElementBytes, us); });
  }

  void report(const CopyRow& row) {
    rows_.append(to_json(row, machine_));
    fmt::print("{}\n", copy_line(row));
    std::fflush(stdout);
  }

  const Memspeed& asked_;
  Session session_;
  Runtime& runtime_;
  const Machine machine_;
  Images images_;
  OwnMemories mine_;
  std::vector<Segment> segments_;  ///< Of the second process, in the order of its memories.
  std::vector<There> there_;       ///< The same as the first one reaches them.
  std::size_t mine_of_leader_ = 0;
  std::vector<std::string> missing_there_;
  const PathCounts puts_;
  const PathCounts gets_;
  RowFile rows_;
};

}  // namespace

void require_sense(const Memspeed& asked) {
  if (asked.bytes >= kMemoryBytesMin && asked.bytes % kElementBytes == 0) return;
  throw Error(Status::invalid_argument,
              fmt::format("--bytes {}: bandwidth is what a full copy takes longer than one of {} bytes; use a multiple "
                          "of that from 64K on",
                          format_size(asked.bytes), kElementBytes));
}

std::optional<double> rate_without_start(std::size_t bytes, double full_us, double short_us) noexcept {
  if (full_us <= short_us) return std::nullopt;
  return static_cast<double>(bytes) / (full_us - short_us) / 1e3;
}

void run_memspeed(const Memspeed& asked) { MemspeedRun(asked).run(); }

}  // namespace brant::bench
