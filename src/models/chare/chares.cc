#include "brant/chare/chares.h"

#include "core/engine.h"
#include "models/chare/core.h"

namespace brant {
namespace {

Task<int> with_code_0(Task<void> main) {
  co_await std::move(main);
  co_return 0;
}

}  // namespace

Chares::Chares(Runtime& runtime, const ChareOptions& options)
    : runtime_(runtime), core_(std::make_unique<detail::Core>(*this, runtime.worker().engine(), options)) {
  if (options.connect) connect();
}

Chares::~Chares() = default;

void Chares::connect() { core_->connect(); }

int Chares::run(Task<int> main) {
  start(std::move(main));
  core_->scheduler().run_until_ended();
  return exit_code();
}
int Chares::run(Task<void> main) { return run(with_code_0(std::move(main))); }

void Chares::start(Task<int> main) { core_->ending().start(std::move(main)); }
void Chares::start(Task<void> main) { start(with_code_0(std::move(main))); }

void Chares::exit(int code) { core_->ending().exit(code); }
void Chares::on_quiescence(const Callback<>& to) {
  Element<detail::Gatherings>(*core_, detail::Gatherings::target_on(0)).call<&detail::Gatherings::await_quiescence>(to);
}
Future<> Chares::quiescence() {
  auto [to, future] = future_callback<>(*this);
  on_quiescence(to);
  return std::move(future);
}
Future<> Chares::enroll_late() {
  auto [to, enrolled] = future_callback<>(*this);
  core_->enrolment().begin(to);
  return std::move(enrolled);
}
Future<> Chares::until_exit() { return core_->ending().never().future(); }
unsigned Chares::progress() { return core_->scheduler().step(); }
void Chares::wait(const std::function<bool()>& until, std::chrono::nanoseconds longest) {
  core_->scheduler().wait(until, longest);
}
std::chrono::nanoseconds Chares::longest_sleep() const noexcept { return core_->scheduler().longest_sleep(); }
bool Chares::ended() const noexcept { return core_->ending().ended(); }
int Chares::exit_code() const noexcept { return core_->ending().exit_code(); }
const std::string& Chares::failure() const noexcept { return core_->ending().failure(); }
ChareCounts Chares::counts() const noexcept { return core_->counts(); }

}  // namespace brant
