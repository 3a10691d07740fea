#include "cli/explain/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::cli::explain {
namespace {

void require_device(const Place& place, const Facts& facts) {
  const auto count = static_cast<int>(facts.gpus.size());
  if (place.kind != MemoryKind::cuda || count == 0 || place.ordinal < count) return;
  throw Error(Status::invalid_argument,
              fmt::format("there is no {}: this machine has cuda:0{}", place_name(place),
                          count == 1 ? std::string() : fmt::format(" to cuda:{}", count - 1)));
}

/// Within one process whoever moves the bytes reaches both ends, and nothing leaves it.
void reach_both_ends(PathQuery& query, MemoryKind device) noexcept {
  const bool on_host = host_accessible(device);
  query.one_sided = true;
  query.mapped_source = query.wire_takes_kind = false;
  query.shm_open = on_host;
  query.peer_maps = !on_host;
  query.pinned_here = query.kind == MemoryKind::pinned || query.other_kind == MemoryKind::pinned;
  if (on_host && query.forced == Path::staged) query.forced = Path::automatic;
}

PathQuery query_for(const Question& question, const Facts& facts, bool imagined_gpus) {
  const MemoryKind from = question.from.kind;
  const MemoryKind to = question.to.kind;
  const auto takes = [&](MemoryKind kind) {
    const bool imagined = imagined_gpus && (kind == MemoryKind::cuda || kind == MemoryKind::cuda_managed);
    return imagined || facts.takes(kind);
  };
  PathQuery query;
  query.kind = from;
  query.other_kind = to;
  query.bytes = question.bytes;
  query.locality = question.one_process  ? Locality::same_process
                   : question.other_host ? Locality::other_host
                                         : Locality::same_host;
  query.wire_takes_kind = takes(from) && takes(to);
  query.shm_open = facts.shares_memory && !question.other_host;
  query.mapped_source = from == MemoryKind::host && !question.from.is_heap;
  const MemoryKind device = host_accessible(from) ? to : from;
  query.peer_maps = query.shm_open && (host_accessible(from) || host_accessible(to) || from == to) &&
                    (device == MemoryKind::cuda || device == MemoryKind::emulated);
  if (query.peer_maps)
    query.courier_bytes = device == MemoryKind::cuda ? facts.courier_bytes : facts.emulated_courier_bytes;
  query.mapped_landing = query.shm_open && to == MemoryKind::host && !question.to.is_heap;
  query.forced = question.forced;
  if (question.one_process && question.forced != Path::ucx) reach_both_ends(query, device);
  return query;
}

/// Of memory whose origin decides whether, and when, others can map it.
std::string about_files(PathQuery query, const PathOrder& order) {
  query.peer_maps = false;
  query.forced = Path::automatic;
  return fmt::format(
      "a landing of a pool or of cuMemCreate is mapped by means of a file: until that has come, and for good where it "
      "was made without a POSIX file descriptor (as a default pool is) or lies in several allocations, it goes by {}",
      path_name(choose_path(query, order).path));
}

}  // namespace

std::optional<double> Report::predicted_us() const noexcept {
  const auto chosen =
      std::find_if(paths.begin(), paths.end(), [&](const PathVerdict& each) { return each.path == choice.path; });
  return chosen == paths.end() || choice.status != Status::ok ? std::nullopt : chosen->us;
}

void check_devices(const Question& question, const Facts& facts) {
  for (const Place& place : {question.from, question.to}) require_device(place, facts);
}

CalibratedMachine machine_for(const Question& question, const Facts& facts) {
  CalibratedMachine machine;
  machine.brant = brant_release();
  machine.ucx = facts.ucx_version;
  machine.cuda = facts.cuda_driver;
  for (const Place& place : {question.from, question.to}) {
    if (place.kind == MemoryKind::emulated) machine.gpus.emplace_back("emulated");
    if (place.kind != MemoryKind::cuda || facts.gpus.empty()) continue;
    machine.gpus.push_back(facts.gpus.at(static_cast<std::size_t>(std::max(place.ordinal, 0))));
  }
  return machine;
}

Report make_report(const Question& question, const Facts& facts, CalibrationInUse numbers) {
  Report report;
  report.question = question;
  const auto is = [&](MemoryKind kind) { return question.from.kind == kind || question.to.kind == kind; };
  const bool imagined_gpus = facts.gpus.empty() && (is(MemoryKind::cuda) || is(MemoryKind::cuda_managed));
  if (imagined_gpus) {
    report.notes.push_back(fmt::format(
        "this machine has no GPU ({}): answered for GPUs that map each other and that UCX takes", facts.gpu_reason));
  } else if (is(MemoryKind::cuda) && !question.other_host && !question.one_process && facts.shares_memory) {
    report.notes.emplace_back("that the two GPUs map each other is seen when two processes try; assumed here");
  }
  // The built-in numbers are those of GPUs.
  const bool unlike = !numbers.measured && is(MemoryKind::emulated);
  const PathOrder order = numbers.measured ? PathOrder(numbers.calibration) : PathOrder::defaults();
  const PathQuery query = query_for(question, facts, imagined_gpus);
  report.choice = choose_path(query, order);
  report.paths = judge_paths(query, order, unlike ? Calibration{} : numbers.calibration);
  const bool maps_landing = report.choice.path == Path::copy_engine || report.choice.path == Path::courier;
  if (question.to.kind == MemoryKind::cuda && maps_landing && query.locality == Locality::same_host)
    report.notes.push_back(about_files(query, order));
  if (question.other_host) report.notes.emplace_back("nothing was measured between hosts: no times");
  if (question.one_process) report.notes.emplace_back("nothing was measured within one process: no times");
  const bool by_owner = is(MemoryKind::host) && question.from.kind == MemoryKind::host &&
                        host_accessible(question.to.kind) && question.bytes >= kOfferedBytes && query.shm_open &&
                        !query.one_sided;
  if (by_owner && question.from.is_heap) {
    report.notes.emplace_back("from memory of Runtime::allocate it goes otherwise: ask with --from host");
  } else if (by_owner) {
    report.notes.emplace_back(
        "from memory of Runtime::allocate, in an allocation of 16 KB or more; from other memory (malloc, a "
        "std::vector) it goes otherwise: ask with --from heap");
  }
  if (question.forced == Path::staged && report.choice.path != Path::staged) {
    report.notes.emplace_back("between host memories there is nothing to stage: it goes as if nothing was forced");
  }
  if (unlike) report.notes.emplace_back("the built-in numbers say nothing about emulated memory: no times");
  // A forced path may carry more than it would be asked for, as a courier does: then it has a time all the same.
  for (PathVerdict& verdict : report.paths) {
    if (verdict.path != report.choice.path || report.choice.status != Status::ok || verdict.refusal == nullptr)
      continue;
    verdict.refusal = nullptr;
    if (query.locality == Locality::same_host && !unlike)
      verdict.us = predicted_us(verdict.path, query, numbers.calibration);
  }
  report.numbers = std::move(numbers);
  return report;
}

}  // namespace brant::cli::explain
