#include "models/chare/mail.h"

#include <fmt/format.h>

#include "models/chare/core.h"

namespace brant::detail {

void Mail::Box::take_out(std::size_t place) noexcept {
  if (place != front) {
    calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(place));
  } else if (++front == calls.size()) {
    calls.clear();
    front = 0;
  } else if (front * 2 > calls.size() && front > 16) {  // moved once for every time that it was taken from
    calls.erase(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(front));
    front = 0;
  }
}

Mail& Mail::of(ChareBase& chare) {
  if (chare.mail_ == nullptr) chare.mail_ = new Mail;
  return *chare.mail_;
}

Mail::Box& Mail::box_of(const EntryInfo& entry) {
  for (Box& box : boxes) {
    if (box.entry == &entry) return box;
  }
  boxes.emplace_back().entry = &entry;
  return boxes.back();
}

void Mail::close(ChareBase& chare) noexcept {
  const std::unique_ptr<Mail> mail(std::exchange(chare.mail_, nullptr));
  // Left are those that wait in coroutines which are not the chare's: they wait for ever.
  while (WhenWaiter* waiter = mail->waiters.pop_front()) waiter->chare = nullptr;
  Core& core = core_of(chare);
  for (Box& box : mail->boxes) {
    for (std::size_t i = box.front; i < box.calls.size(); ++i) {
      Invocation& invocation = box.calls[i].invocation;
      --core.activity().kept;
      if (!core.ending().leaving()) {
        try {
          const std::string text = fmt::format(
              "{} on rank {} was destroyed while it kept {} calls of {} (one from rank {}) that no when had "
              "taken: await them first, or let its callers finish before destroy",
              name_of(chare), core.context().rank, box.size(), box.entry->name, invocation.source);
          invocation.chare = nullptr;
          core.answers().fail(invocation, std::make_exception_ptr(Error(Status::not_found, text)));
        } catch (...) {
          core.ending().fail_job("a call that nobody awaited could not be reported: memory is exhausted");
        }
      }
      drop_message(invocation);
    }
  }
}

namespace {

void end_waiting(Mail& mail, WhenWaiter& waiter) {
  mail.waiters.remove(waiter);
  WhenJoin& join = *waiter.join;
  if (--join.remaining == 0) join.waiter.resume();
}

/// Ends those whose predicates threw when the call that they threw at has found its place. They stay enlisted until
/// then: whoever resumes first may destroy another.
struct FailuresAfterwards {
  Mail& mail;
  bool any = false;

  ~FailuresAfterwards() {
    while (WhenWaiter* failed = any ? first() : nullptr) end_waiting(mail, *failed);
  }
  [[nodiscard]] WhenWaiter* first() const noexcept {
    WhenWaiter* waiter = mail.waiters.front();
    while (waiter != nullptr && !waiter->failure) waiter = mail.waiters.next(*waiter);
    return waiter;
  }
};

}  // namespace

void offer_to_whens(const Invocation& invocation, const ReadArchive& arguments) {
  Mail& mail = Mail::of(*invocation.chare);
  FailuresAfterwards failures{mail};
  for (WhenWaiter* waiter = mail.waiters.front(); waiter != nullptr; waiter = mail.waiters.next(*waiter)) {
    if (waiter->entry != invocation.entry || waiter->failure) continue;
    if (waiter->take(*waiter, arguments, invocation)) return end_waiting(mail, *waiter);
    if (waiter->failure) failures.any = true;
  }
  Mail::Box& box = mail.box_of(*invocation.entry);
  if (box.size() >= Mail::kKeptMax) {
    throw Error(Status::limit_reached,
                fmt::format("it keeps {} calls of this entry already that no when has taken: await them, or let their "
                            "senders wait for answers",
                            box.size()));
  }
  box.calls.push_back({arguments, invocation});
  retain_message(invocation);
  ++invocation.core->activity().kept;
}

bool take_kept(WhenWaiter& waiter) {
  Mail* mail = waiter.chare != nullptr ? Mail::find(*waiter.chare) : nullptr;
  if (mail == nullptr) return false;
  Mail::Box& box = mail->box_of(*waiter.entry);
  for (std::size_t i = box.front; i < box.calls.size();) {
    const Mail::Kept kept = box.calls[i];
    std::exception_ptr error;
    bool taken = false;
    try {
      taken = waiter.take(waiter, kept.arguments, kept.invocation);
    } catch (...) {
      error = std::current_exception();
    }
    if (waiter.failure) return true;  // the call stays for another
    if (!taken && !error) {
      ++i;
      continue;
    }
    box.take_out(i);
    --kept.invocation.core->activity().kept;
    if (error) fail_invocation(kept.invocation, error);
    drop_message(kept.invocation);
    if (taken) return true;
    i = std::max(i, box.front);
    if (box.front == 0) i = 0;  // what stood before was looked at, but the places have moved
  }
  return false;
}

void enlist(WhenWaiter& waiter) {
  if (waiter.chare == nullptr) return;
  waiter.since = coarse_now();
  Mail::of(*waiter.chare).waiters.push_back(waiter);
}

void leave(WhenWaiter& waiter) noexcept {
  if (waiter.chare == nullptr || !waiter.hook.linked()) return;
  Mail::find(*waiter.chare)->waiters.remove(waiter);
}

std::string first_kept(const std::unordered_map<std::uint32_t, std::unique_ptr<Collection>>& collections) {
  for (const auto& [id, collection] : collections) {
    for (const ChareBase* chare : collection->slots()) {
      const Mail* mail = chare != nullptr ? Mail::find(*chare) : nullptr;
      if (mail == nullptr) continue;
      for (const Mail::Box& box : mail->boxes) {
        if (box.size() == 0) continue;
        return fmt::format("{}::{} on rank {}, which no when has taken", Mail::name_of(*chare), box.entry->name,
                           collection->core().context().rank);
      }
    }
  }
  return {};
}

}  // namespace brant::detail
