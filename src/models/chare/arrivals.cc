#include "models/chare/arrivals.h"

#include <exception>

#include <fmt/format.h>

#include "models/chare/message_check.h"

namespace brant::detail {
namespace {

/// Messages of the runtime to itself, which the program knows nothing of.
constexpr bool is_upkeep(MessageKind kind) noexcept {
  return kind == MessageKind::wave || kind == MessageKind::wave_answer;
}

}  // namespace

Arrivals::Arrivals(const ProgramContext& context, Activity& activity, Sending& sending, ReadyQueue& queue,
                   Ending& ending, DataLandings& landings, WaitReport& report, Quiet& quiet, Enrolment& enrolment,
                   Following& following) noexcept
    : context_(context),
      activity_(activity),
      sending_(sending),
      queue_(queue),
      ending_(ending),
      landings_(landings),
      report_(report),
      quiet_(quiet),
      enrolment_(enrolment),
      following_(following) {}

void Arrivals::open() {
  context_.messenger.claim(am::ServiceId::chare, &Arrivals::on_message, &Arrivals::on_trouble, this);
}

void Arrivals::close() {
  context_.messenger.claim(am::ServiceId::chare, &Arrivals::receive_late, nullptr, &context_.engine);
}

void Arrivals::on_message(void* self, am::Message& message) noexcept {
  auto& arrivals = *static_cast<Arrivals*>(self);
  if (arrivals.drop_if_damaged(message)) [[unlikely]]
    return;
  if (message.wire.session != arrivals.context_.session)
    return receive_late(&arrivals.context_.engine, message);  // of an earlier program
  const auto envelope = message.header<Envelope>();
  if (!envelope.urgent()) ++arrivals.activity_.wire_taken;
  if (is_upkeep(envelope.kind)) arrivals.context_.engine.silence().note_upkeep();
  arrivals.take_in(message);
}

void Arrivals::take_in(am::Message& message) {
  try {
    const auto envelope = message.header<Envelope>();
    if (following_.may_concern(envelope) && following_.take(message, envelope)) [[unlikely]]
      return;
    if (enrolment_.must_wait(message, envelope)) [[unlikely]]
      return enrolment_.park(message);
    if (envelope.has_data() && envelope.by_tree()) {  // it goes on when its data is here
      set_notes(message, {});
      return landings_.stage(message, envelope, true);
    }
    if (envelope.by_tree()) sending_.forward_by_tree(message, envelope);
    if (envelope.urgent() && envelope.kind != MessageKind::stop) {
      obey(message, envelope);
      context_.messenger.release(message);
    } else {
      set_notes(message, {});
      queue_.push(message, envelope);
    }
  } catch (const std::exception& error) {
    const auto say = [&] {
      return fmt::format("rank {}: a message from rank {} could not be taken in: {}", context_.rank,
                         message.wire.source, error.what());
    };
    ending_.fail_job(say, "a message could not be taken in: memory is exhausted");
  }
}

bool Arrivals::drop_if_damaged(am::Message& message) noexcept {
  if (is_sound(message, context_.ranks, context_.registry)) [[likely]]
    return false;
  drop_damaged(context_.engine, message);
  return true;
}

void Arrivals::drop_damaged(Engine& engine, am::Message& message) noexcept {
  engine.peers().distrust(message.wire.source, "a message of chares that contradicts itself");
  engine.service<am::Messenger>().release(message);
}

void Arrivals::receive_late(void* engine, am::Message& message) noexcept {
  auto& of = *static_cast<Engine*>(engine);
  if (!is_sound(message, of.job().size, Registry::of_program())) [[unlikely]]
    return drop_damaged(of, message);
  const auto envelope = message.header<Envelope>();
  if (envelope.has_data()) {
    const DataHeader header = data_header(message, envelope);
    of.service<lane::DataLanes>().swallow(message.wire.source, header.place, data_metas(message, envelope),
                                          header.count);
  }
  of.service<am::Messenger>().release(message);
}

void Arrivals::on_trouble(void* self, Rank peer, Status status) noexcept {
  auto& arrivals = *static_cast<Arrivals*>(self);
  if (peer.value < arrivals.context_.ranks) arrivals.sending_.note_trouble(peer, status);  // others have no chares
}

template <typename T>
T Arrivals::value_in(const am::Message& message) const {
  T value;
  ReadArchive read(&context_.chares, message.data, message.bytes);
  read(value);
  return value;
}

void Arrivals::obey(const am::Message& message, const Envelope& envelope) {
  switch (envelope.kind) {
    case MessageKind::exit_asked: return ending_.exit(static_cast<std::int64_t>(envelope.key));
    case MessageKind::stop: return ending_.stop(report_.first_undelivered());
    case MessageKind::stopped: return ending_.add_tally(value_in<Tally>(message));
    case MessageKind::wave: return quiet_.answer(envelope.key);
    case MessageKind::wave_answer: return quiet_.take_answer(envelope.key, value_in<WaveAnswer>(message));
    case MessageKind::report_asked: return quiet_.answer_report();
    case MessageKind::report: return quiet_.take_report(value_in<std::vector<std::string>>(message));
    case MessageKind::numbers_asked:
      return enrolment_.answer(message.wire.source, value_in<std::vector<LateName>>(message));
    case MessageKind::numbers_given: return enrolment_.take_answer(value_in<std::vector<LateNumber>>(message));
    case MessageKind::left:
      return ending_.fail_job(
          fmt::format("rank {}'s program ended without running its chares (rank {} heard of it): call Chares::run on "
                      "every rank, or progress until the program has ended",
                      message.wire.source, context_.rank));
    case MessageKind::ended: return ending_.leave(static_cast<int>(envelope.key));
    default: return ending_.leave(1);
  }
}

}  // namespace brant::detail
