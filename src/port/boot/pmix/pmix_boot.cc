#include "port/boot/pmix/pmix_boot.h"

#include "base/env.h"

namespace brant::port {

bool pmix_server_present() noexcept { return !env("PMIX_NAMESPACE").empty(); }

std::unique_ptr<Boot> open_pmix_boot() {
  throw Error(Status::not_supported, "the PMIx bootstrap is not part of this build: start with `brant run`");
}

}  // namespace brant::port
