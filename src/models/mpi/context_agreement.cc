#include "models/mpi/context_agreement.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "models/mpi/communicators.h"
#include "models/mpi/posting.h"
#include "models/mpi/process.h"
#include "models/mpi/rank_state.h"

namespace brant::mpi {

namespace {

/// What members say instead of a number, larger than any: that threads may make several communicators at once, and that
/// it is not this one's turn.
constexpr std::uint32_t kThreads = 1u << 31;
constexpr std::uint32_t kNotNow = ~std::uint32_t{0};

/// Finds the largest of the numbers that the members of a making have.
class LargestNumber {
 public:
  LargestNumber(RankState& rank, std::span<const RankId> ids, const Making& making)
      : rank_(rank),
        among_(make_communicator_later(rank.id, std::make_shared<Members>(std::vector(ids.begin(), ids.end())), 0)),
        own_(static_cast<std::size_t>(among_->rank)),
        size_(ids.size()),
        context_(context_of(making)),
        tag_(std::max(making.tag, 0)) {}

  [[nodiscard]] std::uint32_t among(std::uint32_t number) {
    std::size_t bit = 1;
    for (; bit < size_ && (own_ & bit) == 0; bit *= 2) {
      if (own_ + bit < size_) number = std::max(number, receive(own_ + bit));
    }
    if (own_ != 0) {
      send(own_ - bit, number);
      number = receive(own_ - bit);
    }
    for (bit /= 2; bit != 0; bit /= 2) {
      if (own_ + bit < size_) send(own_ + bit, number);
    }
    return number;
  }

 private:
  void send(std::size_t to, std::uint32_t number) {
    SendRequest request(rank_, *among_, typed(number), static_cast<int>(to), tag_, SendMode::standard);
    request.context = context_;
    request.start();
    complete(request);
  }
  std::uint32_t receive(std::size_t from) {
    std::uint32_t number = 0;
    ReceiveRequest request(rank_, *among_, typed(number), static_cast<int>(from), tag_);
    request.wanted.context = context_;
    request.start();
    complete(request);
    return number;
  }
  /// No tag of the program is another one's.
  static std::uint32_t context_of(const Making& making) noexcept {
    const std::uint32_t without_tag = making.tag == Making::kNoTag ? Communicator::kOwnContext : 0;
    return making.parent | Communicator::kMakingContext | without_tag;
  }
  static TypedBuffer typed(std::uint32_t& number) { return {&number, 1, MPI_UINT32_T}; }

  RankState& rank_;
  const std::unique_ptr<Communicator> among_;  ///< Its members number each other alike, whatever jobs they are of.
  const std::size_t own_;                      ///< The place of this rank among them.
  const std::size_t size_;
  const std::uint32_t context_;
  const std::int32_t tag_;
};

/// One of the makings of a rank that choose their numbers.
class Choosing {
 public:
  Choosing(ContextNumbers& numbers, const Making& making) : numbers_(numbers), making_(making) {
    numbers_.begin(making_);
  }
  ~Choosing() { numbers_.end(making_); }
  Choosing(const Choosing&) = delete;
  Choosing& operator=(const Choosing&) = delete;

  [[nodiscard]] std::uint32_t own() noexcept { return numbers_.take(making_) ? numbers_.next() : kNotNow; }
  void give_back() noexcept { numbers_.give_back(making_); }

 private:
  ContextNumbers& numbers_;
  const Making making_;
};

/// A number counts if it is the turn of this making at all members.
std::uint32_t choose(RankState& rank, LargestNumber& largest, const Making& making) {
  Choosing choosing(rank.contexts, making);
  for (;;) {
    const std::uint32_t number = largest.among(choosing.own());
    if (number != kNotNow) return number;
    choosing.give_back();
    rank.progress();
  }
}

}  // namespace

std::uint32_t agree_on_context(RankState& rank, std::span<const RankId> ids, const Making& making) {
  LargestNumber largest(rank, ids, making);
  const std::uint32_t threads = rank.thread_level() == MPI_THREAD_MULTIPLE ? kThreads : 0;
  std::uint32_t context = largest.among(rank.contexts.next() | threads);
  if ((context & kThreads) != 0) context = choose(rank, largest, making);
  require(context < Communicator::kHandedOut, MPI_ERR_OTHER,
          "{} communicators were made: there is no number for one more", context);
  rank.contexts.use(context);
  return context;
}

}  // namespace brant::mpi
