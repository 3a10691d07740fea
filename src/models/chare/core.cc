#include "models/chare/core.h"

#include <utility>

#include <fmt/format.h>

namespace brant::detail {
namespace {

/// Numbers the programs of one runtime: all ranks make theirs in the same order, one after another.
struct Sessions final : Service {
  explicit Sessions(Engine&) noexcept {}
  std::uint16_t next(int rank) {
    if (running == nullptr) return ++made;
    throw Error(Status::invalid_argument,
                fmt::format("rank {}: this runtime has a Chares already, and a second one would take its messages: use "
                            "that one, or destroy it before another is made",
                            rank));
  }
  bool stalled(std::chrono::nanoseconds idle, bool) noexcept override {
    return running != nullptr && running->report().stalled(idle);
  }
  std::uint16_t made = 0;
  Core* running = nullptr;  ///< The last one made, while it lives.
};

}  // namespace

ProgramContext::ProgramContext(Core& core_of_it, Chares& of, Engine& on, const ChareOptions& with, std::uint16_t number)
    : core(core_of_it),
      chares(of),
      engine(on),
      messenger(on.service<am::Messenger>()),
      lanes(on.service<lane::DataLanes>()),
      channels(on.service<ChannelTable>()),
      registry(Registry::of_program()),
      options(with),
      rank(on.job().rank),
      ranks(on.job().size),
      session(number) {}

Core::Core(Chares& chares, Engine& engine, const ChareOptions& options)
    : context_(*this, chares, engine, options, engine.service<Sessions>().next(engine.job().rank)) {
  const std::string mine = fingerprint();
  const Status status = engine.boot().put("brant.chares", std::as_bytes(std::span(mine)));
  if (status != Status::ok) {
    throw Error(status, fmt::format("rank {}: the list of chare classes could not be published: {}. {}", context_.rank,
                                    status_text(status), engine.boot().last_error()));
  }
  collections_.make_gatherings().join(gatherings_neighbours_);
  arrivals_.open();
  engine.service<Sessions>().running = this;
}

Core::~Core() {
  ending_.tell_of_leaving();
  arrivals_.close();
  ending_.abandon();
  landings_.abandon();
  let_all_go();
  landings_.await_sources();
  Collections::ById dying = collections_.take_all();
  const auto gatherings =
      dying.extract(Gatherings::target_on(context_.rank).collection);  // goes last: others wait for it
  for (const auto& [id, collection] : dying) collection->destroy_all();
  answers_.fail_all_waiting(
      std::make_exception_ptr(Error(Status::shutting_down, "the program ended before the reply came")));
  context_.engine.service<Sessions>().running = nullptr;
}

/// What will not run any more.
void Core::let_all_go() noexcept {
  for (const auto& [id, collection] : collections_.all()) {
    for (auto& [key, list] : collection->waiting) {
      while (am::Message* message = list.pop_front()) messages_.let_go(*message);
    }
  }
  for (const auto& [id, collection] : collections_.all()) {
    am::MessageList following = following_.take_all(*collection);
    while (am::Message* message = following.pop_front()) messages_.let_go(*message);
  }
  while (am::Message* message = queue_.pop()) messages_.let_go(*message);
  sending_.let_all_go();
  latecomers_.let_all_go();
  enrolment_.let_all_go();
}

/// Equal where the programs are equal.
std::string Core::fingerprint() const {
  return fmt::format("{:016x} {}", context_.registry.fingerprint(), context_.registry.size());
}

void Core::connect() {
  port::Boot& boot = context_.engine.boot();
  // Others may still wait for what this process has sent in an earlier program: the network goes on meanwhile.
  const TimePoint deadline = deadline_after(context_.engine.options().boot_timeout);
  Status status = Status::timed_out;
  for (int round = 0; status == Status::timed_out && Clock::now() < deadline; ++round) {
    const auto patience = std::chrono::milliseconds(round < 10 ? 1 : 20);
    status = boot.fence(patience);
    if (status == Status::timed_out) context_.engine.progress().step_while_moving(patience);
  }
  const std::string mine = fingerprint();
  for (int other = 0; status == Status::ok && other < context_.ranks; ++other) {
    const auto published = boot.get(other, "brant.chares");
    status = published.status();
    if (!published.ok()) break;
    const std::string theirs(reinterpret_cast<const char*>(published.value().data()), published.value().size());
    if (theirs == mine) continue;
    throw Error(Status::version_mismatch,
                fmt::format("rank {} runs another program than rank {}: their chare classes and entry methods differ "
                            "({} against {}). Start the same binary on all ranks",
                            other, context_.rank, theirs, mine));
  }
  if (status != Status::ok) {
    throw Error(status, fmt::format("rank {}: the lists of chare classes could not be compared: {}. {}", context_.rank,
                                    status_text(status), boot.last_error()));
  }
  ending_.note_connected();
}

ChareCounts Core::counts() const noexcept {
  ChareCounts counts{activity_.calls_sent, activity_.calls_run, activity_.held_back, queue_.size(), 0};
  for (const auto& [id, collection] : collections_.all()) counts.elements += collection->size();
  --counts.elements;  // our own
  counts.data_coming = data_calls_.coming();
  return counts;
}

}  // namespace brant::detail
