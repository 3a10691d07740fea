// Reductions: contributions of this rank's elements, reports of the ranks below, the result.
#include <algorithm>

#include <fmt/format.h>

#include "brant/chare/callback.h"
#include "brant/chare/detail/mail.h"
#include "core/batch_time.h"
#include "models/chare/busy_mark.h"
#include "models/chare/gatherings.h"
#include "models/chare/latecomers.h"
#include "models/chare/quiet.h"

namespace brant::detail {

std::string Gatherings::name_of(const Contributor& who, const GatheringId& id) const {
  return fmt::format("{} on rank {}", with_->collections.name_of({id.collection, who.key}), who.rank);
}

std::string Gatherings::round_text(const GatheringId& id, std::uint32_t number) const {
  return fmt::format("reduction {} of {}{}", number, id.section != 0 ? "a section of " : "",
                     with_->collections.name_of_array(id.collection));
}

std::size_t Gatherings::alive(const Gathering& gathering, const GatheringId& id) const {
  if (id.section != 0) return gathering.counts.size();
  const Collection* collection = with_->collections.ready(id.collection);
  return collection != nullptr ? collection->size() : 0;
}

/// Nothing is closed while elements are being made.
bool Gatherings::settled(const Gathering& gathering, const GatheringId& id) const {
  if (!gathering.known) return false;
  if (id.section != 0) return true;
  return with_->collections.ready(id.collection) != nullptr && present_birth().collection == nullptr;
}

Gatherings::Round& Gatherings::open_round(Gathering& gathering, const GatheringId& id, std::uint32_t number) {
  place(gathering, id);
  while (static_cast<std::int32_t>(number - gathering.next()) >= 0) {
    const std::uint32_t opened = gathering.next();
    gathering.rounds.emplace_back().since = coarse_now();
    for (const Child& child : gathering.children) {
      if (child.lazy) tell<&Gatherings::poke>(core(), child.rank, id, opened);
    }
  }
  return gathering.rounds[number - gathering.first];
}

/// The first contribution says what the reduction is; the others must agree.
void Gatherings::fit(Round& round, const GatheringId& id, std::uint32_t number, const ReducerInfo& reducer,
                     const CallbackTarget& target, const Contributor& from) const {
  if (round.reducer == nullptr) {
    round.reducer = &reducer;
    round.partial = reducer.make();
    round.target = target;
    round.example = from;
    return;
  }
  const auto refuse = [&](const std::string& one, const std::string& other) {
    throw Error(Status::invalid_argument,
                fmt::format("{} does not fit together: {} contributed {}, {} contributed {}. The n-th contributions of "
                            "all elements belong to one reduction",
                            round_text(id, number), name_of(round.example, id), one, name_of(from, id), other));
  };
  const auto text = [](const ReducerInfo& info) { return fmt::format("{} of {}", info.owner, info.detail); };
  if (round.reducer != &reducer) refuse(text(*round.reducer), text(reducer));
  if (round.target == target) return;
  const auto where = [&](const CallbackTarget& to) {
    switch (to.kind) {
      case CallbackKind::everyone: return std::string("with the result to everyone");
      case CallbackKind::element:
        return fmt::format("with the result to {}", with_->collections.name_of({to.collection, to.key}));
      case CallbackKind::future: return fmt::format("with the result to a future of rank {}", to.rank);
      default: return fmt::format("with the result to callback kind {}", static_cast<int>(to.kind));
    }
  };
  refuse(where(round.target), "with another target: " + where(target));
}

std::string Gatherings::lengths_text(const LengthsDiffer& lengths, const Round& round, const GatheringId& id,
                                     std::uint32_t number, const Contributor& from) const {
  return fmt::format(
      "{} ({} of {}) does not fit together: {} contributed {} values, {} contributed {}: all contributions have one "
      "length",
      round_text(id, number), round.reducer->owner, round.reducer->detail, name_of(round.example, id), lengths.first,
      name_of(from, id), lengths.second);
}

void Gatherings::contribute_here(const Contribution& contribution) {
  const CountMark work(at_work_);
  const GatheringId& id = contribution.gathering;
  Gathering& gathering = gathering_of(id);
  ChareBase& chare = *contribution.chare;
  const Contributor self{chare.key_, with_->context.rank};
  std::uint32_t* counter = &chare.reductions_;
  if (id.section != 0) {
    if (chare.collection_->home_of(chare.key_) != with_->context.rank) {
      throw Error(Status::invalid_argument,
                  fmt::format("{} contributes to a section, but it has moved from rank {}: reductions of sections take "
                              "elements at their homes only; reduce over the array, or move it back first",
                              name_of(self, id), chare.collection_->home_of(chare.key_)));
    }
    const auto found = gathering.counts.find(chare.key_);
    if (chare.collection_id() != id.collection || (gathering.known && found == gathering.counts.end())) {
      throw Error(Status::invalid_argument, fmt::format("{} contributes to a section of {} that it is no member of",
                                                        name_of(self, {0, chare.collection_id(), 0}),
                                                        with_->collections.name_of_array(id.collection)));
    }
    counter = found != gathering.counts.end() ? &found->second : &gathering.counts[chare.key_];
  }
  const std::uint32_t number = *counter;
  if (static_cast<std::int32_t>(number - gathering.first) < 0) {
    throw Error(Status::invalid_argument,
                fmt::format("{} comes too late to {}, which rank {} closed before the element moved there: move "
                            "elements between reductions, not while one is under way",
                            name_of(self, id), round_text(id, number), with_->context.rank));
  }
  Round& round = open_round(gathering, id, number);
  fit(round, id, number, *contribution.reducer, *contribution.target, self);
  try {
    round.partial->add(contribution.value, chare.key_);
  } catch (const LengthsDiffer& lengths) {
    throw Error(Status::invalid_argument, lengths_text(lengths, round, id, number, self));
  }
  ++*counter;
  ++round.passed;
  close_rounds(gathering, id);
  // The result comes by message, so it is not here yet. Only now, so that an error above leaves it to the caller.
  if (contribution.waiting != nullptr) gathering.waiting[number].push_back(*contribution.waiting);
}

void Gatherings::close_rounds(Gathering& gathering, const GatheringId& id) {
  if (!settled(gathering, id)) return;
  place(gathering, id);
  while (!gathering.rounds.empty()) {
    Round& round = gathering.rounds.front();
    if (round.passed != alive(gathering, id) || round.reported.size() != gathering.children.size()) return;
    const std::uint32_t number = gathering.first++;
    Round closed = std::move(round);
    gathering.rounds.pop_front();
    if (gathering.parent >= 0) {
      report(gathering, id, number, closed);
    } else {
      deliver(id, number, closed);
    }
  }
}

void Gatherings::report(Gathering& gathering, const GatheringId& id, std::uint32_t number, Round& round) {
  PartialHeader header;
  header.gathering = id;
  header.round = number;
  header.from = with_->context.rank;
  gathering.told_lazy = alive(gathering, id) == 0 || std::any_of(gathering.children.begin(), gathering.children.end(),
                                                                 [](const Child& child) { return child.lazy; });
  header.lazy = gathering.told_lazy ? 1 : 0;
  std::vector<std::byte> bytes;
  if (round.reducer != nullptr) {
    header.reducer = number_of(*round.reducer);
    header.example = round.example;
    header.target = round.target;
    SizeArchive size;
    round.partial->measure(size, false);
    bytes.resize(size.size());
    WriteArchive write(bytes.data());
    round.partial->write(write, false);
  }
  tell<&Gatherings::partial>(core(), gathering.parent, header, Blob{bytes});
}

void Gatherings::partial(const PartialHeader& header, Blob values) {
  const CountMark work(at_work_);
  if (with_->collections.has_gone(header.gathering.collection))
    return give_up(header.gathering, header.round, header.target);
  Gathering& gathering = gathering_of(header.gathering);
  Round& round = open_round(gathering, header.gathering, header.round);
  for (Child& child : gathering.children) {
    if (child.rank == header.from) child.lazy = header.lazy != 0;
  }
  round.reported.push_back(header.from);
  try {
    if (header.reducer != 0xffff) {
      const auto* reducer = with_->context.registry.find<ReducerInfo>(header.reducer, RegisteredKind::reducer);
      if (reducer == nullptr) throw Error(Status::internal, "a reduction names an operation that is none");
      fit(round, header.gathering, header.round, *reducer, header.target, header.example);
      ReadArchive read(&chares(), values.bytes.data(), values.bytes.size());
      round.partial->merge(read);
    }
  } catch (const LengthsDiffer& lengths) {
    return with_->ending.fail_job(lengths_text(lengths, round, header.gathering, header.round, header.example));
  } catch (const Error& error) {
    return with_->ending.fail_job(error.what());
  }
  close_rounds(gathering, header.gathering);
}

void Gatherings::poke(GatheringId id, std::uint32_t number) {
  const CountMark work(at_work_);
  if (with_->collections.has_gone(id.collection)) return;
  Gathering& gathering = gathering_of(id);
  if (static_cast<std::int32_t>(number - gathering.first) < 0) return;  // answered already
  open_round(gathering, id, number);
  close_rounds(gathering, id);
}

void Gatherings::deliver(const GatheringId& id, std::uint32_t number, Round& round) {
  if (round.reducer == nullptr || round.target.kind == CallbackKind::ignore) return;
  SizeArchive size;
  round.partial->measure(size, true);
  if (round.target.kind == CallbackKind::everyone) {
    std::vector<std::byte> bytes(size.size());
    WriteArchive write(bytes.data());
    round.partial->write(write, true);
    // By message, to this rank too: no coroutine resumes inside another's call.
    tell<&Gatherings::result>(core(), with_->context.rank, id, number, Blob{bytes});
    return;
  }
  Outgoing outgoing = open_callback(core(), round.target, size.size());
  if (outgoing.message == nullptr) return;
  WriteArchive write(outgoing.args);
  round.partial->write(write, true);
  post(core(), outgoing);
}

void Gatherings::result(GatheringId id, std::uint32_t number, Blob value) {
  const CountMark work(at_work_);
  if (with_->collections.has_gone(id.collection)) return;
  Gathering& gathering = gathering_of(id);
  for (const Child& child : gathering.children) {
    tell<&Gatherings::result>(core(), child.rank, id, number, value);
  }
  tell_waiting(id, number, value);
}

void Gatherings::tell_waiting(GatheringId id, std::uint32_t number, Blob value) {
  const CountMark work(at_work_);
  if (with_->collections.has_gone(id.collection)) return;
  auto& waiting_for = gathering_of(id).waiting;
  const auto found = waiting_for.find(number);
  if (found == waiting_for.end()) return;
  std::vector<Waiting> due = std::move(found->second);
  waiting_for.erase(found);
  BatchTime time;
  unsigned told = 0;
  while (told < due.size() && !time.over(told)) {
    Waiting& waiting = due[told++];
    ReadArchive read(&chares(), value.bytes.data(), value.bytes.size());
    waiting.deliver(waiting.storage, &read, nullptr);
  }
  if (told == due.size()) return;
  with_->activity.time_used_up = true;
  due.erase(due.begin(), due.begin() + told);
  gathering_of(id).waiting.emplace(number, std::move(due));
  tell<&Gatherings::tell_waiting>(core(), with_->context.rank, id, number, value);
}

std::uint32_t Gatherings::first_round(std::uint32_t collection) noexcept {
  if (gatherings_.empty()) return 0;
  const auto found = gatherings_.find({0, collection, 0});
  return found == gatherings_.end() ? 0 : found->second.next();
}

/// An element takes no part in what had begun here before it. (What it contributed in its constructor is counted.)
void Gatherings::born(const Collection& collection, std::uint32_t first_round) {
  if (gatherings_.empty()) return;
  const CountMark work(at_work_);
  const GatheringId id{0, collection.id(), 0};
  const auto found = gatherings_.find(id);
  if (found == gatherings_.end()) return;
  Gathering& gathering = found->second;
  for (std::uint32_t number = gathering.first; number != gathering.next(); ++number) {
    if (static_cast<std::int32_t>(first_round - number) > 0) ++gathering.rounds[number - gathering.first].passed;
  }
  close_rounds(gathering, id);
}

void Gatherings::gone(const Collection& collection, const ChareBase& element, Gone how) noexcept {
  const CountMark work(at_work_);
  for (auto& [id, gathering] : gatherings_) {
    if (id.collection != collection.id()) continue;
    std::uint32_t next = element.reductions_;
    if (id.section != 0) {
      if (how == Gone::elsewhere) continue;
      const auto member = gathering.counts.find(element.key_);
      if (member == gathering.counts.end()) continue;
      next = member->second;
      gathering.counts.erase(member);
    }
    for (std::uint32_t number = gathering.first; number != gathering.next(); ++number) {
      if (static_cast<std::int32_t>(next - number) > 0) --gathering.rounds[number - gathering.first].passed;
    }
    try {
      close_rounds(gathering, id);
      tell_if_lazy(gathering, id);
    } catch (const std::exception& error) {
      with_->ending.fail_job(fmt::format("{} could not go on after a chare was destroyed: {}",
                                         round_text(id, gathering.first), error.what()));
    }
  }
}

/// Every rank that knows where a result was to go says that there is none: who waits takes the first.
void Gatherings::give_up(const GatheringId& id, std::uint32_t number, const CallbackTarget& target) {
  if (target.kind != CallbackKind::future) return;
  with_->answers.fail_future(
      target, Error(Status::not_found, fmt::format("{} has no result: the array was destroyed before all "
                                                   "had contributed",
                                                   round_text(id, number))));
}

void Gatherings::forget(std::uint32_t collection, std::vector<Waiting>& unanswered) {
  const CountMark work(at_work_);
  for (auto at = gatherings_.begin(); at != gatherings_.end();) {
    auto& [id, gathering] = *at;
    if (id.collection != collection) {
      ++at;
      continue;
    }
    for (std::uint32_t number = gathering.first; number != gathering.next(); ++number) {
      give_up(id, number, gathering.rounds[number - gathering.first].target);
    }
    for (auto& [number, list] : gathering.waiting) unanswered.insert(unanswered.end(), list.begin(), list.end());
    at = gatherings_.erase(at);
  }
  std::erase_if(early_definitions_, [&](const Definition& early) { return early.gathering.collection == collection; });
}

/// A rank whose last element has gone hears of reductions from its parent only, which must know.
void Gatherings::tell_if_lazy(Gathering& gathering, const GatheringId& id) {
  if (gathering.told_lazy || gathering.parent < 0) return;
  const bool lazy = alive(gathering, id) == 0 || std::any_of(gathering.children.begin(), gathering.children.end(),
                                                             [](const Child& child) { return child.lazy; });
  if (!lazy) return;
  gathering.told_lazy = true;
  tell<&Gatherings::became_lazy>(core(), gathering.parent, id, with_->context.rank);
}

void Gatherings::became_lazy(GatheringId id, std::int32_t rank) {
  const CountMark work(at_work_);
  if (with_->collections.has_gone(id.collection)) return;
  Gathering& gathering = gathering_of(id);
  for (Child& child : gathering.children) {
    if (child.rank == rank) child.lazy = true;
  }
  for (std::uint32_t number = gathering.first; number != gathering.next(); ++number) {
    tell<&Gatherings::poke>(core(), rank, id, number);
  }
  tell_if_lazy(gathering, id);
}

void Gatherings::collection_ready(std::uint32_t collection) {
  const CountMark work(at_work_);
  for (std::size_t i = 0; i < early_definitions_.size();) {
    if (early_definitions_[i].gathering.collection != collection) {
      ++i;
      continue;
    }
    const Definition definition = std::move(early_definitions_[i]);
    early_definitions_.erase(early_definitions_.begin() + static_cast<std::ptrdiff_t>(i));
    install(gathering_of(definition.gathering), definition.gathering, definition.members,
            *with_->collections.find(collection));
  }
  const GatheringId id{0, collection, 0};
  if (const auto found = gatherings_.find(id); found != gatherings_.end()) close_rounds(found->second, id);
}

void Gatherings::describe(std::vector<std::string>& lines, std::size_t limit) {
  for (auto& [id, gathering] : gatherings_) {
    for (std::uint32_t number = gathering.first; number != gathering.next() && lines.size() < limit; ++number) {
      const Round& round = gathering.rounds[number - gathering.first];
      std::string missing;
      std::size_t count = 0;
      const auto lacks = [&](const ElementKey& key, std::uint32_t next) {
        if (static_cast<std::int32_t>(next - number) > 0) return;
        if (++count == 1) missing = with_->collections.name_of({id.collection, key});
      };
      if (id.section != 0) {
        for (const auto& [key, next] : gathering.counts) lacks(key, next);
      } else if (const Collection* collection = with_->collections.ready(id.collection)) {
        for (const ChareBase* chare : collection->slots()) {
          if (chare != nullptr) lacks(chare->key_, chare->reductions_);
        }
      }
      if (count == 0) continue;  // others are awaited, on other ranks
      lines.push_back(fmt::format(
          "{}{} on rank {} waits for {}{} to contribute, since {:.1f} s", round_text(id, number),
          round.reducer != nullptr ? fmt::format(" ({} of {})", round.reducer->owner, round.reducer->detail) : "",
          with_->context.rank, missing, count > 1 ? fmt::format(" and {} more", count - 1) : "",
          static_cast<double>(coarse_now() - round.since) / 1e9));
    }
  }
}

}  // namespace brant::detail
