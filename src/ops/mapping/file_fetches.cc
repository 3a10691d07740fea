#include "ops/mapping/file_fetches.h"

#include <utility>

#include "base/log.h"
#include "ops/mapping/imports.h"

namespace brant {
namespace {

const char* cure_of(Status why) noexcept {
  switch (why) {
    case Status::limit_reached: return "Raise the limit of open files (ulimit -n) of both processes";
    case Status::peer_rejected:
      return "The two must share a network namespace (containers: one pod, or --network=host) and run as one user";
    case Status::io_error: return "The system must allow Unix sockets (a seccomp profile may forbid them)";
    default: return "Memory of Runtime::allocate or of cudaMalloc is shared without a file";
  }
}

}  // namespace

Status FileFetches::begin(Mapping& mapping) noexcept {
  const Peer& peer = mapping.imports.peer();
  if (mapping.file != Mapping::File::here_or_none || peer.link == nullptr || peer.lost) return Status::not_supported;
  if (under_way_ < kAtOnce) return ask(mapping);
  mapping.file = Mapping::File::wanted;
  wanted_.push_back(mapping);
  return Status::in_progress;
}

Status FileFetches::ask(Mapping& mapping) noexcept {
  if (!box_) {
    Result<FileBox> box = FileBox::open();
    if (!box) return say_why(mapping, box.status()), box.status();
    box_.emplace(std::move(*box));
  }
  MappingMessage message;
  message.kind = MappingMessage::Kind::fetch;
  message.buffer_id = mapping.record.buffer_id;
  message.address = mapping.address;
  message.number = ++last_number_;
  message.box = box_->name();
  if (!post(*mapping.imports.peer().link, message)) return Status::no_memory;
  mapping.file = Mapping::File::asked_for;
  mapping.file_number = message.number;
  mapping.asked_at = engine_.clock().recently();
  asked_for_.push_back(mapping);
  ++under_way_;
  return Status::in_progress;
}

Result<UniqueFd> FileFetches::receive(const Peer& peer, const MappingMessage& handed) noexcept {
  const auto outcome = static_cast<Status>(handed.outcome);
  if (outcome != Status::ok) return outcome;
  Result<UniqueFd> file = box_ ? box_->take(peer.record.pid, handed.number) : Status::not_found;
  if (file.status() == Status::not_found) return Status::io_error;  // not as one that was freed
  return file;
}

bool FileFetches::end(Mapping& mapping) noexcept {
  const Mapping::File was = std::exchange(mapping.file, Mapping::File::here_or_none);
  if (was == Mapping::File::asked_for) {
    asked_for_.remove(mapping);
    --under_way_;
    ask_next();
  } else if (was == Mapping::File::wanted) {
    wanted_.remove(mapping);
  }
  return was == Mapping::File::asked_for || was == Mapping::File::late;
}

void FileFetches::forget(Mapping& mapping) noexcept { static_cast<void>(end(mapping)); }

void FileFetches::ask_next() noexcept {
  while (under_way_ < kAtOnce) {
    Mapping* next = wanted_.pop_front();
    if (next == nullptr) return;
    next->file = Mapping::File::here_or_none;
    const Peer& peer = next->imports.peer();
    if (!peer.lost) static_cast<void>(ask(*next));  // what fails is asked for again when it is needed
  }
}

void FileFetches::discard(const Peer& peer) noexcept {
  if (box_) box_->discard(peer.record.pid);
}

void FileFetches::look_for_late() noexcept {
  const TimePoint now = engine_.clock().recently();
  while (Mapping* oldest = asked_for_.front()) {
    if (now - oldest->asked_at < patience_) return;
    static_cast<void>(end(*oldest));
    oldest->file = Mapping::File::late;
    if (std::exchange(said_late_, true)) continue;
    log::warn(
        "rank {} has not handed over the file of {} bytes of {} memory for {} ms, by means of which they are mapped: "
        "until it makes progress, what lies there goes other ways",
        oldest->imports.peer().rank.value, oldest->record.bytes, memory_kind_name(oldest->record.kind),
        patience_.count());
  }
}

void FileFetches::say_why(Mapping& mapping, Status why) noexcept {
  const bool first = !std::exchange(said_, true);
  log::line(first ? log::Level::warn : log::Level::debug,
            "the file of {} bytes of {} memory of rank {}, by means of which they are mapped, did not come ({}): what "
            "lies there goes other ways, over the network as a rule. {}.{}",
            mapping.record.bytes, memory_kind_name(mapping.record.kind), mapping.imports.peer().rank.value,
            status_text(why), cure_of(why), first ? " Said once; BRANT_LOG=debug names all such memory" : "");
}

}  // namespace brant
