#pragma once

#include <string_view>

#include "base/hmac.h"
#include "port/boot.h"

namespace brant {

/// What the processes of a job know and nobody else: rank 0 makes it, and it travels through the bootstrap alone, so
/// whoever the launcher lets take part in that has it. To be published before the exchange of addresses; throws if the
/// bootstrap refuses.
void publish_job_key(port::Boot& boot);

/// A key made of the job's for one purpose: who learns it knows neither the job's nor that of another purpose. After
/// the exchange. Throws Error with what the bootstrap says, or version_mismatch for a key of another length.
Digest job_key_for(port::Boot& boot, std::string_view purpose);

}  // namespace brant
