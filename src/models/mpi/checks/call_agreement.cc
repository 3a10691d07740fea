#include "models/mpi/checks/call_agreement.h"

#include <memory>
#include <new>
#include <vector>

#include <fmt/format.h>

#include "models/mpi/checks/checks.h"
#include "models/mpi/rank_state.h"

namespace brant::mpi {

namespace {

ConstBuffer given(const SaidCall& own) noexcept { return {&own, sizeof own, MemoryKind::host}; }

Buffer gathered(std::vector<SaidCall>& all) noexcept {
  return {all.data(), all.size() * sizeof(SaidCall), MemoryKind::host};
}

/// "ranks 0 to 3, 5 and 2 more": those who say the same as `first`.
std::string members_like(std::span<const SaidCall> all, std::size_t first) {
  constexpr std::size_t kNamed = 8;
  std::string text;
  std::size_t count = 0;
  for (std::size_t member = first; member < all.size(); ++member) {
    if (all[member].compare(all[first]) != MPI_SUCCESS) continue;
    if (++count <= kNamed) text += fmt::format("{}{}", count == 1 ? "" : ", ", member);
  }
  if (count > kNamed) text += fmt::format(" and {} more", count - kNamed);
  return fmt::format("{} {}", count == 1 ? "rank" : "ranks", text);
}

/// Who calls what, each call once.
std::string differing(std::span<const SaidCall> all) {
  constexpr int kNamed = 6;
  std::string text;
  int calls = 0;
  for (std::size_t member = 0; member < all.size(); ++member) {
    bool is_new = true;
    for (std::size_t earlier = 0; is_new && earlier < member; ++earlier)
      is_new = all[earlier].compare(all[member]) != MPI_SUCCESS;
    if (!is_new) continue;
    if (++calls > kNamed) return text + ", and others something else";
    text += fmt::format("{}{} called {}", calls == 1 ? "" : "; ", members_like(all, member), all[member].text());
  }
  return text;
}

}  // namespace

Status CallAgreement::compare(std::span<const SaidCall> all) noexcept {
  fault_.clear();
  for (const SaidCall& said : all) {
    error_class_ = all.front().compare(said);
    if (error_class_ == MPI_SUCCESS) continue;
    fault_ = fmt::format(
        "the members of a communicator have called different collectives: {}. All members have to call the same, in "
        "the same order, and none was carried out",
        differing(all));
    return Status::invalid_argument;
  }
  return Status::ok;
}

Status CallAgreement::settle(const SaidCall& own) noexcept {
  std::vector<SaidCall> all(static_cast<std::size_t>(team_.size()));
  checks()->wait_in_collective(own.text());
  const Status status = team_.run(allgather(given(own), gathered(all))).status;
  // What was posted before comes to the other team before this does, at all members.
  rank_.wait([this] { return posted_ == 0; });
  checks()->wait_in_collective({});
  return status == Status::ok ? compare(all) : status;
}

struct CallAgreement::Posted {
  CallAgreement& agreement;
  RankTeam& carrying_out;
  Collective call;
  brant::Op& op;
  SaidCall own;
  std::vector<SaidCall> all;
  brant::Op telling;

  static void on_told(void* self, const OpResult& result) noexcept {
    const std::unique_ptr<Posted> posted(static_cast<Posted*>(self));
    Status status = result.status == Status::ok ? posted->agreement.compare(posted->all) : result.status;
    const Completion delivered = posted->op.delivered;
    if (status == Status::ok) status = posted->carrying_out.carry_out(posted->call, posted->op);
    --posted->agreement.posted_;
    if (status != Status::in_progress) delivered.fire(delivered.self, {status, 0});
  }
};

Status CallAgreement::post(const SaidCall& own, RankTeam& carrying_out, const Collective& call,
                           brant::Op& op) noexcept {
  try {
    auto posted = std::unique_ptr<Posted>(new Posted{
        *this, carrying_out, call, op, own, std::vector<SaidCall>(static_cast<std::size_t>(team_.size())), {}});
    posted->telling.delivered = {&Posted::on_told, posted.get()};
    const Status status = team_.post(allgather(given(posted->own), gathered(posted->all)), posted->telling);
    if (status != Status::in_progress) return status;
    ++posted_;
    static_cast<void>(posted.release());  // NOLINT(bugprone-unused-return-value): `on_told` deletes it
    return Status::in_progress;
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

}  // namespace brant::mpi
