#include "core/job_key.h"

#include <span>

#include <fmt/format.h>

#include "base/random_bytes.h"
#include "brant/base/result.h"
#include "core/peer_record.h"

namespace brant {
namespace {

constexpr const char* kJobKey = "brant.job_key";

}  // namespace

void publish_job_key(port::Boot& boot) {
  if (boot.job().rank != 0) return;
  Digest key;
  fill_with_random_bytes(key, "the key of the job");
  publish(boot, kJobKey, key);
}

Digest job_key_for(port::Boot& boot, std::string_view purpose) {
  const auto packed = boot.get(0, kJobKey);
  if (!packed || packed->size() != sizeof(Digest)) {
    throw Error(packed ? Status::version_mismatch : packed.status(),
                fmt::format("rank {} did not get the key of the job, which rank 0 publishes: {}. {}", boot.job().rank,
                            status_text(packed.status()), boot.last_error()));
  }
  return hmac_sha256(*packed, std::as_bytes(std::span(purpose)));
}

}  // namespace brant
