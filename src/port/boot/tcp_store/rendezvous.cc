#include "port/boot/tcp_store/rendezvous.h"

#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/env.h"

namespace brant::port::tcp_store {
namespace {

constexpr int kMaxRanks = 1 << 20;

int number(const char* name, int least, int most) {
  const std::optional<std::int64_t> value = env_int(name);
  if (value && *value >= least && *value <= most) return static_cast<int>(*value);
  throw Error(
      Status::invalid_argument,
      fmt::format("bootstrap with torchrun: {}='{}' should be a number from {} to {}: torchrun sets it; who sets "
                  "its variables by hand has to set all of RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, "
                  "MASTER_ADDR and MASTER_PORT",
                  name, env(name), least, most));
}

std::string_view or_else(std::string_view text, std::string_view other) { return text.empty() ? other : text; }

}  // namespace

Rendezvous rendezvous_from_environment() {
  Rendezvous meeting;
  meeting.host = env("MASTER_ADDR");
  if (meeting.host.empty())
    throw Error(Status::invalid_argument,
                "bootstrap with torchrun: MASTER_ADDR is not set; torchrun sets it to the host that keeps its store");
  meeting.port = number("MASTER_PORT", 1, 65535);
  meeting.prefix = fmt::format("brant/{}/{}/", or_else(env("TORCHELASTIC_RUN_ID"), "none"),
                               or_else(env("TORCHELASTIC_RESTART_COUNT"), "0"));
  JobInfo& job = meeting.job;
  job.size = number("WORLD_SIZE", 1, kMaxRanks);
  job.rank = number("RANK", 0, job.size - 1);
  job.local_size = number("LOCAL_WORLD_SIZE", 1, job.size);
  job.local_rank = number("LOCAL_RANK", 0, job.local_size - 1);
  job.launcher = "torchrun";
  return meeting;
}

}  // namespace brant::port::tcp_store
