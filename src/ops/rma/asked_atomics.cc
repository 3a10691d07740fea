#include "ops/rma/asked_atomics.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "base/log.h"
#include "ops/mover/mover.h"
#include "ops/rma/table.h"

namespace brant {
namespace {

/// The header of a question and of its answer.
struct AtomicWord {
  std::uint64_t id = 0;    ///< The asker's.
  std::uint64_t bits = 0;  ///< Of an answer: the value before.
  std::int32_t status = 0;
  std::uint32_t is_answer = 0;
};
static_assert(sizeof(AtomicWord) <= am::kHeaderBytesMax && std::is_trivially_copyable_v<AtomicWord>);

/// The payload of a question.
struct AtomicQuestion {
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
  Atomic what;
};
static_assert(std::is_trivially_copyable_v<AtomicQuestion>);

}  // namespace

AskedAtomics::AskedAtomics(RmaTable& table, Answered answered, void* self)
    : table_(table),
      messenger_(table.engine().service<am::Messenger>()),
      answered_(answered),
      self_(self),
      device_(std::in_place, table.engine(), table.mover().stages(),
              CopyEnd{[](void* asked, DeviceCopy& copy, Status status) noexcept {
                        static_cast<AskedAtomics*>(asked)->performed(static_cast<Served&>(copy), status);
                      },
                      this}) {
  const auto on_trouble = [](void* asked, Rank peer, Status status) noexcept {
    static_cast<AskedAtomics*>(asked)->end_where([&](const Peer& owner) { return owner.rank.value == peer.value; },
                                                 status);
  };
  messenger_.claim(am::ServiceId::rma, &AskedAtomics::on_message, on_trouble, this);
}

AskedAtomics::~AskedAtomics() {
  device_.reset();  // it waits for those that it performs
  while (waiting_.pop_front() != nullptr) {
  }
  while (Served* served = served_.pop_front()) records_.give_back(served);
}

void AskedAtomics::let_go() noexcept {
  messenger_.claim(am::ServiceId::rma, nullptr, nullptr, nullptr);
  for (Served* served = served_.front(); served != nullptr; served = decltype(served_)::next(*served))
    messenger_.release(*std::exchange(served->request, nullptr));
}

Status AskedAtomics::ask(AskedAtomic& atomic, Peer& owner, std::uint64_t segment, std::uint64_t offset,
                         const Atomic& what) noexcept {
  am::Message* const message = messenger_.make(sizeof(AtomicQuestion));
  if (message == nullptr) return Status::no_memory;
  const AtomicQuestion question{segment, offset, what};
  std::memcpy(message->data, &question, sizeof(question));
  atomic.id = ++last_id_;
  atomic.owner = &owner;
  message->set_header(AtomicWord{.id = atomic.id});
  Status status = Status::no_memory;
  try {
    asked_.emplace(atomic.id, &atomic);
    status = messenger_.send(owner.rank, am::ServiceId::rma, *message);
  } catch (const std::bad_alloc&) {
    // As any other question that was not sent.
  }
  if (status == Status::ok) return Status::in_progress;
  messenger_.release(*message);
  forget(atomic);
  return status;
}

void AskedAtomics::forget(AskedAtomic& atomic) noexcept { asked_.erase(std::exchange(atomic.id, 0)); }

void AskedAtomics::on_message(void* self, am::Message& message) noexcept {
  auto& asked = *static_cast<AskedAtomics*>(self);
  const bool has_header = message.wire.header_bytes == sizeof(AtomicWord);
  const bool is_answer = has_header && message.header<AtomicWord>().is_answer != 0;
  if (has_header && !is_answer && message.bytes == sizeof(AtomicQuestion)) return asked.serve(message);
  if (is_answer) {
    asked.take_answer(message);
  } else {
    asked.table_.engine().peers().distrust(message.peer, "an atomic that nobody of this job asks for");
  }
  asked.messenger_.release(message);
}

void AskedAtomics::serve(am::Message& request) noexcept {
  Served* const served = records_.take(*this, request);
  if (served == nullptr) {
    log::error("no memory for an atomic that rank {} asks for", request.peer);
    return messenger_.release(request);
  }
  served_.push_back(*served);
  const Status status = find(*served);
  if (status != Status::ok) return answer(*served, status, 0);
  start(*served);
}

/// What the asker says is looked at again: its ticket may be of another life of this process.
Status AskedAtomics::find(Served& served) noexcept {
  AtomicQuestion question;
  std::memcpy(&question, served.request->data, sizeof(question));
  served.segment = table_.find(question.segment);
  if (served.segment == nullptr) return Status::not_found;
  const Buffer memory = served.segment->memory;
  if (!question.what.exists() || host_accessible(memory.kind)) return Status::invalid_argument;
  const std::size_t bytes = question.what.bytes();
  const bool inside = question.offset <= memory.bytes && bytes <= memory.bytes - question.offset;
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(memory.data) + question.offset;
  if (!inside || address % bytes != 0) return Status::invalid_argument;
  served.word = reinterpret_cast<void*>(address);
  served.what = question.what;
  return Status::ok;
}

/// Where the device has too many under way, it waits until one of those has ended.
void AskedAtomics::start(Served& served) noexcept {
  const Status status = device_->start(served);
  if (status == Status::limit_reached) return waiting_.push_back(served);
  if (status != Status::in_progress) answer(served, status, 0);
}

/// There is room for one more. One that fails leaves it to the next: nothing that is under way may be left to end.
void AskedAtomics::performed(Served& served, Status status) noexcept {
  const std::uint64_t bits = status == Status::ok ? *served.before : 0;
  device_->give_back(served);
  answer(served, status, bits);
  while (Served* const next = waiting_.front()) {
    const Status started = device_->start(*next);
    if (started == Status::limit_reached) return;
    waiting_.remove(*next);
    if (started == Status::in_progress) return;
    answer(*next, started, 0);
  }
}

void AskedAtomics::answer(Served& served, Status status, std::uint64_t bits) noexcept {
  if (served.request != nullptr) {
    send_answer(*served.request, status, bits);
    messenger_.release(*served.request);
  }
  served_.remove(served);
  records_.give_back(&served);
}

void AskedAtomics::send_answer(const am::Message& request, Status status, std::uint64_t bits) noexcept {
  am::Message* const message = messenger_.make(0);
  if (message == nullptr) {
    log::error("no memory to answer an atomic that rank {} asked for: it waits in vain", request.peer);
    return;
  }
  auto word = request.header<AtomicWord>();
  word.bits = bits;
  word.status = static_cast<std::int32_t>(status);
  word.is_answer = 1;
  message->set_header(word);
  // One that cannot be told has gone.
  if (messenger_.send(Rank{request.peer}, am::ServiceId::rma, *message, am::Flow::urgent) != Status::ok)
    messenger_.release(*message);
}

void AskedAtomics::take_answer(const am::Message& message) noexcept {
  const auto word = message.header<AtomicWord>();
  const auto found = asked_.find(word.id);
  if (found == asked_.end() || found->second->owner->rank.value != message.peer) return;
  AskedAtomic& atomic = *found->second;
  forget(atomic);
  answered_(self_, atomic, static_cast<Status>(word.status), word.bits);
}

template <typename Gone>
void AskedAtomics::end_where(Gone&& gone, Status status) noexcept {
  const auto is_of_them = [&](const auto& each) { return gone(*each.second->owner); };
  for (auto next = std::ranges::find_if(asked_, is_of_them); next != asked_.end();
       next = std::ranges::find_if(asked_, is_of_them)) {
    AskedAtomic& atomic = *next->second;
    forget(atomic);
    answered_(self_, atomic, status, 0);
  }
}

void AskedAtomics::look_around() noexcept {
  if (asked_.empty()) return;
  end_where([](const Peer& owner) { return owner.lost || owner.ended; }, Status::peer_lost);
}

}  // namespace brant
