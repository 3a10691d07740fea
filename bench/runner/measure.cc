#include "bench/runner/measure.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "bench/runner/channel_contender.h"
#include "bench/runner/message_contender.h"
#include "bench/runner/nccl_contender.h"
#include "bench/runner/plan.h"
#include "bench/runner/raw_contender.h"
#include "bench/runner/rma_contender.h"
#include "bench/runner/row.h"
#include "bench/runner/rpc_contender.h"
#include "bench/runner/session.h"
#include "bench/runner/statistics.h"
#include "bench/runner/stream_contender.h"
#include "bench/runner/table.h"
#include "bench/runner/told_put_contender.h"

namespace brant::bench {
namespace {

class Benchmark {
 public:
  Benchmark(const Options& options, Meeting& meeting, const Machine& machine, const Contenders& contenders)
      : options_(options),
        meeting_(meeting),
        machine_(machine),
        rows_(meeting.reports() ? options.json : std::string()),
        table_(options.kind, rival_name(options.rival)),
        contenders_(contenders) {}

  void run() {
    print_title();
    for (const std::size_t bytes : options_.sizes) run_size(bytes);
    meeting_.barrier();
  }

 private:
  /// What a time is, in words.
  [[nodiscard]] std::string timed() const {
    const bool latency = options_.kind == Kind::latency;
    switch (options_.model) {
      case Model::put:
        return latency ? "from the post until the bytes are visible at the target, seen by who puts"
                       : fmt::format("{} puts a window, until all are visible; GB = 1e9 bytes", options_.window);
      case Model::get:
        return latency ? "from the post until the bytes have landed"
                       : fmt::format("{} gets a window, until all have landed; GB = 1e9 bytes", options_.window);
      case Model::fetch_add:
        return latency ? "from the post until the value before is here"
                       : fmt::format("{} a window, until all have told theirs; GB = 1e9 bytes", options_.window);
      case Model::told_put:
        return latency ? "from the post until the target's CPU sees the word behind the bytes = round trip / 2"
                       : fmt::format("{} puts a window, each told by a word, then one back; GB = 1e9 bytes",
                                     options_.window);
      case Model::rpc:
        return latency ? "from the call of a function until its answer of 8 bytes is here"
                       : fmt::format("{} calls a window, until all are answered; GB = 1e9 bytes", options_.window);
      default:
        if (options_.kind == Kind::bidirectional)
          return fmt::format("{} messages a window each way at once, both counted; GB = 1e9 bytes", options_.window);
        return latency ? "one way = round trip / 2"
                       : fmt::format("{} messages a window, then a reply of 4 bytes; GB = 1e9 bytes", options_.window);
    }
  }

  /// By whom, where it is a rival in processes of its own.
  [[nodiscard]] std::string by() const {
    const Contender& first = *contenders_.front();
    return first.peer().empty() ? "" : " of " + first.peer_version();
  }

  void print_title() {
    if (!meeting_.reports()) return;
    fmt::print("# brant {}: {} ranks, {} memory of {}, path {}, model {}{}, trigger {}; {}\n",
               command_name(options_.kind), meeting_.ranks(), memory_kind_name(options_.memory),
               alloc_name(options_.alloc), path_name(options_.path), model_name(options_.model), by(),
               trigger_name(options_.trigger), timed());
    const std::string ucx = machine_.ucx.empty() ? "none" : machine_.ucx;
    fmt::print("# brant {}{}, {}{}{}\n", machine_.brant, options_.model == Model::mpi ? "" : ", UCX " + ucx,
               machine_.cpu, machine_.gpu.empty() ? "" : ", ", machine_.gpu);
    if (options_.rival == Rival::nccl) fmt::print("# NCCL {} ({})\n", nccl::library().version, nccl::library().path);
    if (options_.rival == Rival::ucx && contenders_.size() < 2)
      fmt::print("# raw UCX does not take {} memory: not measured\n", memory_kind_name(options_.memory));
    fmt::print("{}\n", table_.header());
    std::fflush(stdout);
  }

  void run_size(std::size_t bytes) {
    const Plan plan = plan_for(options_, bytes);
    meeting_.barrier();
    for (const std::unique_ptr<Contender>& contender : contenders_) {
      if (options_.check) contender->check(bytes, plan.checked);
    }
    std::vector<std::vector<double>> samples(contenders_.size());
    for (const std::unique_ptr<Contender>& contender : contenders_) {
      meeting_.barrier();
      std::vector<double> ignored(plan.warmup);
      measure(*contender, bytes, ignored);
    }
    for (std::size_t round = 0; round < plan.rounds; ++round) {
      const std::size_t part = plan.iterations * (round + 1) / plan.rounds - plan.iterations * round / plan.rounds;
      for (std::size_t i = 0; i < contenders_.size(); ++i) {
        std::vector<double> batch(part);
        meeting_.barrier();
        measure(*contenders_[i], bytes, batch);
        samples[i].insert(samples[i].end(), batch.begin(), batch.end());
      }
    }
    report(bytes, samples);
  }

  void measure(Contender& contender, std::size_t bytes, std::vector<double>& samples) {
    if (options_.kind != Kind::latency) {
      contender.windows(bytes, options_.window, samples);
      return;
    }
    contender.ping_pong(bytes, samples);
    if (is_timed_whole(options_.model)) return;
    for (double& sample : samples) sample /= 2;
  }

  void report(std::size_t bytes, const std::vector<std::vector<double>>& samples) {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      std::vector<double> all = meeting_.gather(samples[i]);
      if (meeting_.reports()) rows.push_back(row_of(*contenders_[i], bytes, all));
    }
    if (rows.empty()) return;
    for (const Row& row : rows) rows_.append(to_json(row, machine_));
    fmt::print("{}\n", table_.line(rows.front(), rows.size() > 1 ? std::optional(rows.back()) : std::nullopt));
    std::fflush(stdout);
  }

  [[nodiscard]] Row row_of(const Contender& contender, std::size_t bytes, std::vector<double>& samples) const {
    Row row;
    row.kind = options_.kind;
    row.peer = contender.peer();
    row.peer_version = contender.peer_version();
    row.model = options_.model;
    row.trigger = contender.trigger();
    row.memory = options_.memory;
    row.alloc = options_.alloc;
    row.path = contender.path();
    row.bytes = bytes;
    row.window = options_.kind == Kind::latency ? 1 : options_.window;
    row.ranks = meeting_.ranks();
    row.us = summarize(samples);
    return row;
  }

  const Options& options_;
  Meeting& meeting_;
  const Machine machine_;
  RowFile rows_;
  const Table table_;
  const Contenders& contenders_;
};

/// What the loaded UCX takes; the emulated device is ours alone.
bool raw_ucx_takes_memory(const Options& options) {
  if (options.model == Model::fetch_add) return host_accessible(options.memory);  // its CPUs would touch a device's
  return options.memory != MemoryKind::emulated;
}

std::unique_ptr<Contender> open_raw_ucx(Session& session, const Options& options) {
  if (is_one_sided(options.model)) return std::make_unique<RawRmaContender>(session, options);
  return std::make_unique<RawContender>(session);
}

std::unique_ptr<Contender> make_brant(Session& session, const Options& options) {
  if (options.trigger == Trigger::stream) return std::make_unique<StreamContender>(session, options);
  if (is_one_sided(options.model)) return std::make_unique<RmaContender>(session, options);
  if (options.model == Model::told_put) return std::make_unique<ToldPutContender>(session, options);
  if (options.model == Model::rpc) return std::make_unique<RpcContender>(session, options);
  if (options.model == Model::message) return std::make_unique<MessageContender>(session, options);
  return std::make_unique<ChannelContender>(session, options);
}

}  // namespace

void run_contenders(const Options& options, Meeting& meeting, const Machine& machine, const Contenders& contenders) {
  Benchmark(options, meeting, machine, contenders).run();
}

void run_benchmark(const Options& options) {
  Session session(options);
  Contenders contenders;
  contenders.push_back(make_brant(session, options));
  if (options.rival == Rival::ucx && raw_ucx_takes_memory(options))
    contenders.push_back(open_raw_ucx(session, options));
  if (options.rival == Rival::nccl) contenders.push_back(std::make_unique<NcclContender>(session, options));
  run_contenders(options, session, describe_machine(session.runtime()), contenders);
}

}  // namespace brant::bench
