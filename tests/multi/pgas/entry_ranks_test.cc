// Runs as every rank of a job (`brant run -n N`): entries of chares as what happens at the target of a put.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/chare.h"
#include "brant/pgas.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using test::job;

constexpr std::size_t kWords = 3000;  // more than a message of chares holds in one piece

/// One on each rank, with a part of the global space.
class Cell : public Chare<Cell, Index<1>> {
 public:
  Cell()
      : part_(GlobalSpace::of(job()).create(job().device_kind(), kWords * 8 + 512)),
        row_(part_.allocate<Word>(kWords)) {}

  GlobalPtr<std::uint64_t> place() { return row_; }

  /// Puts a row into the part of another cell, and has that cell, or all of them, told behind it.
  Task<int> send(int to, GlobalPtr<std::uint64_t> there, std::uint64_t step) {
    const std::vector<Word> row(kWords, step);
    const Array<Cell> cells = this_array();
    AtTarget told = step % 2 == 0 ? AtTarget::entry<&Cell::landed>(cells[{to}], to, step)
                                  : AtTarget::entry<&Cell::landed>(cells, to, step);
    if (step % 3 == 0) {
      // In two halves, of which the second one tells of both.
      const std::span<const Word> words(row);
      Operation first = GlobalSpace::of(job()).put(there, words.first(kWords / 2));
      Operation rest = GlobalSpace::of(job()).put(there + kWords / 2, words.subspan(kWords / 2),
                                                  {.at_target = std::move(told).behind_all()});
      EXPECT_TRUE((co_await rest).ok()) << "step " << step;
      EXPECT_TRUE((co_await first).ok()) << "step " << step;
      co_return 0;
    }
    Operation put = GlobalSpace::of(job()).put(there, row, {.at_target = std::move(told)});
    EXPECT_TRUE((co_await put).ok()) << "step " << step;
    co_return 0;
  }

  void landed(int at, std::uint64_t step) {
    ++told_;
    if (at != index()[0]) return;
    std::vector<Word> seen(kWords);
    job().copy(Buffer(std::span(seen)), ConstBuffer(part_.local(row_), kWords * 8, job().device_kind()));
    EXPECT_TRUE(std::ranges::all_of(seen, [&](Word word) { return word == step; })) << "the bytes of step " << step;
  }

  int told() { return told_; }

 private:
  using Word = std::uint64_t;
  GlobalSegment part_;
  GlobalPtr<Word> row_;
  int told_ = 0;
};

Task<void> put_and_tell(Chares& chares) {
  constexpr std::uint64_t kSteps = 40;
  const int size = job().size();
  const Array<Cell> cells = create_array<Cell>(chares, {size}, Placement::round_robin());
  std::vector<GlobalPtr<std::uint64_t>> places;
  for (int i = 0; i < size; ++i) places.push_back(co_await cells[{i}].ask<&Cell::place>());
  for (std::uint64_t step = 1; step <= kSteps; ++step) {
    std::vector<Future<int>> sent;
    for (int i = 0; i < size; ++i) {
      const int right = (i + 1) % size;
      sent.push_back(cells[{i}].ask<&Cell::send>(right, places[static_cast<std::size_t>(right)], step));
    }
    for (Future<int>& each : sent) static_cast<void>(co_await each);
    co_await chares.quiescence();  // all have looked: the rows may be written over
  }
  const int halves = static_cast<int>(kSteps) / 2;
  for (int i = 0; i < size; ++i) EXPECT_EQ(co_await cells[{i}].ask<&Cell::told>(), halves + halves * size);
}

TEST(EntryAtTarget, runs_behind_the_bytes_of_the_put) {
  GlobalSpace space(job());
  {
    Chares chares(job());
    EXPECT_EQ(chares.run(put_and_tell(chares)), 0) << chares.failure();
  }
}

Task<void> fail_to_tell(Chares& chares, GlobalPtr<std::uint64_t> there) {
  static_cast<void>(chares);
  Operation put = GlobalSpace::of(job()).put_value(
      there, 7, {.at_target = AtTarget::entry<&Cell::landed>(Element<Cell>(), 0, std::uint64_t{1})});
  EXPECT_EQ((co_await put).status, Status::invalid_argument) << "a proxy that was never assigned";
}

TEST(EntryAtTarget, that_cannot_be_called_fails_the_copy) {
  GlobalSpace space(job());
  GlobalSegment segment = space.create(MemoryKind::host, 4096);
  Chares chares(job());
  EXPECT_EQ(chares.run(fail_to_tell(chares, segment.allocate<std::uint64_t>())), 0) << chares.failure();
}

}  // namespace
}  // namespace brant
