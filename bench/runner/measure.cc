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
#include "bench/runner/session.h"
#include "bench/runner/statistics.h"
#include "bench/runner/stream_contender.h"
#include "bench/runner/table.h"

namespace brant::bench {
namespace {

class Benchmark {
 public:
  explicit Benchmark(const Options& options)
      : options_(options),
        session_(options),
        machine_(describe_machine(session_.runtime())),
        rows_(session_.reports() ? options.json : std::string()),
        table_(options.kind, rival_name(options.rival)) {
    if (options.trigger == Trigger::stream) {
      contenders_.push_back(std::make_unique<StreamContender>(session_, options));
    } else if (is_one_sided(options.model)) {
      contenders_.push_back(std::make_unique<RmaContender>(session_, options));
    } else if (options.model == Model::message) {
      contenders_.push_back(std::make_unique<MessageContender>(session_, options));
    } else {
      contenders_.push_back(std::make_unique<ChannelContender>(session_, options));
    }
    if (options.rival == Rival::ucx && raw_ucx_takes_memory()) contenders_.push_back(open_raw_ucx());
    if (options.rival == Rival::nccl) contenders_.push_back(std::make_unique<NcclContender>(session_, options));
  }

  void run() {
    print_title();
    for (const std::size_t bytes : options_.sizes) run_size(bytes);
    session_.barrier();
  }

 private:
  /// What the loaded UCX takes; the emulated device is ours alone.
  [[nodiscard]] bool raw_ucx_takes_memory() {
    if (options_.model == Model::fetch_add) return host_accessible(options_.memory);  // its CPUs would touch a device's
    return options_.memory != MemoryKind::emulated;
  }

  std::unique_ptr<Contender> open_raw_ucx() {
    if (is_one_sided(options_.model)) return std::make_unique<RawRmaContender>(session_, options_);
    return std::make_unique<RawContender>(session_);
  }

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
      default:
        return latency ? "one way = round trip / 2"
                       : fmt::format("{} messages a window, then a reply of 4 bytes; GB = 1e9 bytes", options_.window);
    }
  }

  void print_title() {
    if (!session_.reports()) return;
    fmt::print("# brant bench {}: {} ranks, {} memory of {}, path {}, model {}, trigger {}; {}\n",
               kind_name(options_.kind), session_.ranks(), memory_kind_name(options_.memory),
               alloc_name(options_.alloc), path_name(options_.path), model_name(options_.model),
               trigger_name(options_.trigger), timed());
    fmt::print("# brant {}, UCX {}, {}{}{}\n", machine_.brant, machine_.ucx.empty() ? "none" : machine_.ucx,
               machine_.cpu, machine_.gpu.empty() ? "" : ", ", machine_.gpu);
    if (options_.rival == Rival::nccl) fmt::print("# NCCL {} ({})\n", nccl::library().version, nccl::library().path);
    if (options_.rival == Rival::ucx && contenders_.size() < 2)
      fmt::print("# raw UCX does not take {} memory: not measured\n", memory_kind_name(options_.memory));
    fmt::print("{}\n", table_.header());
    std::fflush(stdout);
  }

  void run_size(std::size_t bytes) {
    const Plan plan = plan_for(options_, bytes);
    session_.barrier();
    for (const std::unique_ptr<Contender>& contender : contenders_) {
      if (options_.check) contender->check(bytes, plan.checked);
    }
    std::vector<std::vector<double>> samples(contenders_.size());
    for (const std::unique_ptr<Contender>& contender : contenders_) {
      session_.barrier();
      std::vector<double> ignored(plan.warmup);
      measure(*contender, bytes, ignored);
    }
    for (std::size_t round = 0; round < plan.rounds; ++round) {
      const std::size_t part = plan.iterations * (round + 1) / plan.rounds - plan.iterations * round / plan.rounds;
      for (std::size_t i = 0; i < contenders_.size(); ++i) {
        std::vector<double> batch(part);
        session_.barrier();
        measure(*contenders_[i], bytes, batch);
        samples[i].insert(samples[i].end(), batch.begin(), batch.end());
      }
    }
    report(bytes, samples);
  }

  void measure(Contender& contender, std::size_t bytes, std::vector<double>& samples) {
    if (options_.kind == Kind::bandwidth) {
      contender.windows(bytes, options_.window, samples);
      return;
    }
    contender.ping_pong(bytes, samples);
    if (is_one_sided(options_.model)) return;  // nothing comes back
    for (double& sample : samples) sample /= 2;
  }

  void report(std::size_t bytes, const std::vector<std::vector<double>>& samples) {
    std::optional<Row> ours, rival;
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      std::vector<double> all = session_.gather(samples[i]);
      if (!session_.reports()) continue;
      Row row;
      row.kind = options_.kind;
      row.peer = contenders_[i]->peer();
      row.model = options_.model;
      if (row.peer == rival_name(Rival::nccl)) row.peer_version = nccl::library().version;
      row.trigger = contenders_[i]->trigger();
      row.memory = options_.memory;
      row.alloc = options_.alloc;
      row.path = contenders_[i]->path();
      row.bytes = bytes;
      row.window = options_.kind == Kind::latency ? 1 : options_.window;
      row.ranks = session_.ranks();
      row.us = summarize(all);
      rows_.append(to_json(row, machine_));
      (row.peer.empty() ? ours : rival) = row;
    }
    if (!ours) return;
    fmt::print("{}\n", table_.line(*ours, rival));
    std::fflush(stdout);
  }

  const Options& options_;
  Session session_;
  const Machine machine_;
  RowFile rows_;
  const Table table_;
  std::vector<std::unique_ptr<Contender>> contenders_;
};

}  // namespace

void run_benchmark(const Options& options) { Benchmark(options).run(); }

}  // namespace brant::bench
