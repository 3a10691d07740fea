#include "port/boot/detect.h"

#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/read_number.h"
#include "port/boot/launcher/launcher_boot.h"

namespace brant::port {
namespace {

/// One thing that a launcher left, and what it says. Starter::nobody: it is there, but says nothing.
struct Mark {
  Starter starter = Starter::nobody;
  std::string evidence;
  std::string launcher{};
  std::string cure{};
};

std::string_view value(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string_view{} : found->second;
}

/// "NAME=value, NAME=value" of those that are set.
std::string shown(const Environment& environment, std::initializer_list<std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    const std::string_view set = value(environment, name);
    if (!set.empty()) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, set);
  }
  return text;
}

/// True if the variable says one; a size that nobody wrote, or that is no number, may be any.
bool says_one(const Environment& environment, std::string_view name) {
  int number = 0;
  return read_number(value(environment, name), number) && number == 1;
}

/// A launcher that brant does not speak: for a single process that does not matter.
Mark not_spoken(const Environment& environment, std::string launcher, std::string_view size_variable,
                std::string evidence) {
  if (says_one(environment, size_variable)) return {Starter::nobody, evidence + ": one process"};
  return {Starter::not_spoken, std::move(evidence), std::move(launcher)};
}

std::optional<Mark> brant_run(const Environment& environment, bool socket) {
  const std::string evidence = shown(environment, {"BRANT_BOOT_FD", "BRANT_RANK", "BRANT_SIZE"});
  if (value(environment, "BRANT_BOOT_FD").empty()) return std::nullopt;
  if (socket) return Mark{Starter::brant_run, evidence};
  return Mark{Starter::nobody, evidence + ": no open socket of `brant run`"};
}

std::optional<Mark> pmix(const Environment& environment) {
  if (value(environment, "PMIX_NAMESPACE").empty() || value(environment, "PMIX_RANK").empty()) return std::nullopt;
  const std::string evidence = shown(environment, {"PMIX_NAMESPACE", "PMIX_RANK"});
  // One variable for every version of the protocol that the server speaks: PMIX_SERVER_URI2, ...URI41.
  const auto address = environment.lower_bound("PMIX_SERVER_URI");
  if (address != environment.end() && address->first.starts_with("PMIX_SERVER_URI"))
    return Mark{Starter::pmix, fmt::format("{}, {}={}", evidence, address->first, address->second)};
  return Mark{Starter::nobody, evidence + ": without PMIX_SERVER_URI there is no server to ask"};
}

std::optional<Mark> pmi(const Environment& environment) {
  std::string evidence = shown(environment, {"PMI_FD", "PMI_PORT", "PMI_RANK", "PMI_SIZE"});
  if (!value(environment, "PMI_FD").empty()) {
    if (says_one(environment, "PMI_SIZE")) return Mark{Starter::nobody, evidence + ": one process"};
    return Mark{Starter::pmi, std::move(evidence)};
  }
  if (value(environment, "PMI_PORT").empty()) return std::nullopt;
  return not_spoken(environment, "MPICH's mpiexec with -pmi-port", "PMI_SIZE", std::move(evidence));
}

std::optional<Mark> torchrun(const Environment& environment) {
  if (value(environment, "RANK").empty() || value(environment, "WORLD_SIZE").empty()) return std::nullopt;
  std::string evidence = shown(
      environment, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE"});
  Mark mark = not_spoken(environment, "torchrun, or something that sets the same variables", "WORLD_SIZE", evidence);
  if (mark.starter == Starter::nobody) return mark;
  // Without an agent's store the port is for rank 0 to listen on, which PyTorch does.
  if (value(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True") return Mark{Starter::torchrun, std::move(evidence)};
  mark.cure =
      "No agent keeps a store for the processes (TORCHELASTIC_USE_AGENT_STORE is not True). Start with torchrun, whose "
      "rendezvous c10d and static have one; or, where a TCPStore listens at MASTER_ADDR:MASTER_PORT all the same, as "
      "after torch.distributed.init_process_group, set BRANT_BOOTSTRAP=torchrun";
  return mark;
}

std::optional<Mark> open_mpi(const Environment& environment) {
  if (value(environment, "OMPI_COMM_WORLD_SIZE").empty()) return std::nullopt;
  return not_spoken(environment, "Open MPI without a PMIx server", "OMPI_COMM_WORLD_SIZE",
                    shown(environment, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}));
}

std::optional<Mark> pals(const Environment& environment) {
  const std::string evidence = shown(environment, {"PALS_APID", "PALS_RANKID"});
  if (value(environment, "PALS_RANKID").empty()) return std::nullopt;
  return Mark{Starter::not_spoken, evidence, "HPE's PALS without a PMIx server"};
}

std::optional<Mark> slurm(const Environment& environment) {
  if (value(environment, "SLURM_JOB_ID").empty() && value(environment, "SLURM_PROCID").empty()) return std::nullopt;
  const std::string evidence =
      shown(environment, {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"});
  if (value(environment, "SLURM_STEP_ID").empty() || value(environment, "SLURM_STEP_NUM_TASKS").empty())
    return Mark{Starter::nobody, evidence + ": a batch script or a shell of an allocation, which is no rank"};
  return not_spoken(environment, "Slurm's srun without a PMIx server", "SLURM_STEP_NUM_TASKS", evidence);
}

std::optional<Mark> leader_worker_set(const Environment& environment) {
  if (value(environment, "LWS_GROUP_SIZE").empty()) return std::nullopt;
  return not_spoken(environment, "a LeaderWorkerSet of Kubernetes", "LWS_GROUP_SIZE",
                    shown(environment, {"LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"}));
}

}  // namespace

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

Detection detect_starter(const Environment& environment, bool launcher_socket) {
  Detection detection;
  for (std::optional<Mark> mark :
       {brant_run(environment, launcher_socket), pmix(environment), pmi(environment), torchrun(environment),
        open_mpi(environment), pals(environment), slurm(environment), leader_worker_set(environment)}) {
    if (!mark) continue;
    const bool decides = detection.starter == Starter::nobody && mark->starter != Starter::nobody;
    detection.evidence.insert(decides ? detection.evidence.begin() : detection.evidence.end(),
                              std::move(mark->evidence));
    if (!decides) continue;
    detection.starter = mark->starter;
    detection.launcher = std::move(mark->launcher);
    detection.cure = std::move(mark->cure);
  }
  // A descendant of a rank has the variable without the socket; taking it for a job of one would hide a lost rank.
  const bool orphan = !value(environment, "BRANT_BOOT_FD").empty() && detection.starter == Starter::nobody;
  if (orphan) detection.starter = Starter::brant_run;
  return detection;
}

Detection detect_starter() { return detect_starter(process_environment(), launcher_present()); }

}  // namespace brant::port
