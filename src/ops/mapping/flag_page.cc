#include "ops/mapping/flag_page.h"

#include <utility>

#include "base/log.h"

namespace brant {

void FlagPage::open() noexcept {
  const std::span<std::uint64_t> flags = peer_.link->flags_there();
  port::Streams* streams = engine_.device().streams();
  const Status status =
      streams == nullptr ? Status::not_supported : streams->register_host(flags.data(), flags.size_bytes());
  state_ = status == Status::ok ? State::reached : State::out_of_reach;
  if (status == Status::ok) {
    words_ = flags;
    return;
  }
  log::info("the device does not reach the flags of rank {} ({}): word of its messages goes by the CPU",
            peer_.rank.value, status_text(status));
}

void FlagPage::close() noexcept {
  if (std::exchange(state_, State::out_of_reach) != State::reached) return;
  static_cast<void>(engine_.device().streams()->unregister_host(std::exchange(words_, {}).data()));
}

}  // namespace brant
