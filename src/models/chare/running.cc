#include "models/chare/running.h"

#include <exception>

#include <fmt/format.h>

#include "base/error_text.h"
#include "core/batch_time.h"
#include "models/chare/busy_mark.h"

namespace brant::detail {

Running::Running(const ProgramContext& context, Activity& activity, Messages& messages, ReadyQueue& queue,
                 Ending& ending, Answers& answers, Arrivals& arrivals, Making& making, Calls& calls,
                 Moving& moving) noexcept
    : context_(context),
      activity_(activity),
      messages_(messages),
      queue_(queue),
      ending_(ending),
      answers_(answers),
      arrivals_(arrivals),
      making_(making),
      calls_(calls),
      moving_(moving) {}

unsigned Running::run_ready(unsigned limit) {
  unsigned done = 0;
  BatchTime time;
  activity_.time_used_up = false;
  while (done < limit && !ending_.leaving()) {
    am::Message* message = queue_.pop();
    if (message == nullptr) break;
    run(*message);
    ++done;
    if (activity_.time_used_up || (!queue_.empty() && time.over(done))) break;
  }
  return done;
}

void Running::run(am::Message& message) noexcept {
  ++activity_.ran;
  const CountMark mark(activity_.running);
  const auto envelope = message.header<Envelope>();
  try {
    switch (envelope.kind) {
      case MessageKind::call: return calls_.run_call(message, envelope);
      case MessageKind::broadcast: return calls_.run_broadcast(message, envelope);
      case MessageKind::multicast: return calls_.run_multicast(message, envelope);
      case MessageKind::create: return making_.run_create(message, envelope);
      case MessageKind::insert: return making_.run_insert(message, envelope);
      case MessageKind::destroy: return making_.run_destroy(message, envelope);
      case MessageKind::destroy_all: return making_.run_destroy_all(message, envelope);
      case MessageKind::reply: return answers_.run(message, envelope);
      case MessageKind::depart: return moving_.run_depart(message, envelope);
      case MessageKind::moved: return moving_.run_moved(message, envelope);
      case MessageKind::hello: return calls_.run_hello(message, envelope);
      default: arrivals_.obey(message, envelope); return messages_.drop(message);
    }
  } catch (...) {
    const auto say = [this, error = std::current_exception()] {
      Status status;
      return fmt::format("rank {}: {}", context_.rank, text_of(error, status));
    };
    ending_.fail_job(say, "a message could not be run: memory is exhausted");
  }
}

}  // namespace brant::detail
