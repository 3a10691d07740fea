#include "models/mpi/files/exchanged_access.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "brant/coll/collectives.h"
#include "models/mpi/files/agreement.h"

namespace brant::mpi {

namespace {

template <typename T>
void append(std::vector<std::byte>& to, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Teams take null for something else.
std::byte g_no_bytes[1];

Buffer buffer_of(std::vector<std::byte>& bytes) noexcept {
  return {bytes.empty() ? g_no_bytes : bytes.data(), bytes.size(), MemoryKind::host};
}
ConstBuffer buffer_of(const std::vector<std::byte>& bytes) noexcept {
  return {bytes.empty() ? g_no_bytes : bytes.data(), bytes.size(), MemoryKind::host};
}

constexpr const char* kNoExchange = "the ranks of a file did not exchange their data";

/// Calls `visit(block)` for the block of each member.
template <typename Visit>
void for_each_block(std::span<const std::byte> bytes, std::span<const std::uint64_t> sizes, const Visit& visit) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < sizes.size(); begin += sizes[i++]) visit(i, bytes.subspan(begin, sizes[i]));
}

}  // namespace

ExchangedAccess::ExchangedAccess(File& file, std::uint64_t position, const MemoryPieces& memory,
                                 std::span<const AccessPart> parts)
    : file_(file), position_(position), memory_(memory), stretches_(parts), file_bytes_(parts[0].file_bytes) {}

template <typename Body>
void ExchangedAccess::attempt(const Body& body) {
  if (error_) return;
  if (const std::optional<CallError> error = error_in(body)) error_.emplace(*error);
}

ExchangedAccess::Share ExchangedAccess::share_of(std::uint64_t round, std::size_t member) const noexcept {
  const FileLayout& layout = file_.view.layout();
  const std::uint64_t end = position_ + memory_.bytes();
  const std::int64_t stretch = stretches_.begin(round, member);
  const auto within = [&](std::int64_t offset) { return std::clamp(layout.position_at(offset), position_, end); };
  return {within(stretch), within(stretch + static_cast<std::int64_t>(stretches_.bytes()))};
}

void ExchangedAccess::append_runs(Blocks& blocks, const Share& share, std::int64_t stretch) const {
  std::vector<Run> runs;
  file_.view.layout().for_each_run(share.begin, share.end, [&](std::int64_t offset, std::uint64_t bytes) {
    const auto at = static_cast<std::uint32_t>(offset - stretch);
    if (!runs.empty() && runs.back().offset + runs.back().bytes == at) {
      runs.back().bytes += static_cast<std::uint32_t>(bytes);
    } else {
      runs.push_back({at, static_cast<std::uint32_t>(bytes)});
    }
  });
  append(blocks.bytes, static_cast<std::uint64_t>(runs.size()));
  const auto bytes = std::as_bytes(std::span(runs));
  blocks.bytes.insert(blocks.bytes.end(), bytes.begin(), bytes.end());
}

std::span<const ExchangedAccess::Run> ExchangedAccess::runs_in(std::span<const std::byte> block) noexcept {
  std::uint64_t count = 0;
  std::memcpy(&count, block.data(), sizeof count);
  return {reinterpret_cast<const Run*>(block.data() + sizeof count), count};
}

/// Members do not know how much others give.
void ExchangedAccess::exchange(const Blocks& given, Blocks& taken) {
  taken.sizes.resize(given.sizes.size());
  file_.communicator.team()
      .run(alltoall(ConstBuffer(std::span(given.sizes), MemoryKind::host),
                    Buffer(std::span(taken.sizes), MemoryKind::host)))
      .or_throw(kNoExchange);
  exchange_sized(given, taken);
}

void ExchangedAccess::exchange_sized(const Blocks& given, Blocks& taken) {
  taken.bytes.resize(std::reduce(taken.sizes.begin(), taken.sizes.end(), std::uint64_t{0}));
  file_.communicator.team()
      .run(alltoallv(buffer_of(given.bytes), given.sizes, buffer_of(taken.bytes), taken.sizes))
      .or_throw(kNoExchange);
}

// Writing
// -------------------------------------------------------------------------------------------------------------------

/// A member that cannot read its own memory gives nothing any more.
ExchangedAccess::Blocks ExchangedAccess::blocks_to_write(std::uint64_t round) {
  Blocks given;
  for (std::size_t member = 0; member < stretches_.members(); ++member) {
    const std::size_t before = given.bytes.size();
    const Share share = error_ ? Share{position_, position_} : share_of(round, member);
    append_runs(given, share, stretches_.begin(round, member));
    const std::size_t data = given.bytes.size();
    const std::size_t bytes = share.end - share.begin;
    given.bytes.resize(data + (bytes + 7) / 8 * 8);
    attempt([&] { memory_.load(share.begin - position_, std::span(given.bytes).subspan(data, bytes)); });
    if (error_) {
      given.bytes.resize(before);
      append_runs(given, {position_, position_}, 0);
    }
    given.sizes.push_back(given.bytes.size() - before);
  }
  return given;
}

/// Where members write the same bytes, any of them may win.
void ExchangedAccess::write_stretch(std::int64_t stretch, const Blocks& taken) {
  std::ranges::fill(covered_, std::byte{0});
  for_each_block(taken.bytes, taken.sizes, [&](std::size_t, std::span<const std::byte> block) {
    const std::span<const Run> runs = runs_in(block);
    const std::byte* data = block.data() + sizeof(std::uint64_t) + runs.size_bytes();
    for (const Run& run : runs) {
      std::memcpy(stretch_.data() + run.offset, data, run.bytes);
      std::memset(covered_.data() + run.offset, 1, run.bytes);
      data += run.bytes;
    }
  });
  const auto end = covered_.end();
  for (auto begin = std::find(covered_.begin(), end, std::byte{1}); begin != end;) {
    const auto behind = std::find(begin, end, std::byte{0});
    const auto at = static_cast<std::size_t>(begin - covered_.begin());
    file_.disk.write(stretch + static_cast<std::int64_t>(at),
                     std::span(stretch_).subspan(at, static_cast<std::size_t>(behind - begin)));
    begin = std::find(behind, end, std::byte{1});
  }
}

std::size_t ExchangedAccess::write() {
  const auto own = static_cast<std::size_t>(file_.communicator.rank);
  stretch_.resize(stretches_.bytes());
  covered_.resize(stretches_.bytes());
  Blocks taken;
  for (std::uint64_t round = 0; round < stretches_.rounds(); ++round) {
    exchange(blocks_to_write(round), taken);
    attempt([&] { write_stretch(stretches_.begin(round, own), taken); });
  }
  agree(file_.communicator, error_);
  return memory_.bytes();
}

// Reading
// -------------------------------------------------------------------------------------------------------------------

/// All that others want of this stretch is read at once; where the file ends before, nobody looks at what they get.
ExchangedAccess::Blocks ExchangedAccess::answers_from_stretch(std::int64_t stretch, const Blocks& asked) {
  std::size_t begin = stretches_.bytes(), end = 0;
  for_each_block(asked.bytes, asked.sizes, [&](std::size_t, std::span<const std::byte> block) {
    const std::span<const Run> runs = runs_in(block);
    if (runs.empty()) return;
    begin = std::min<std::size_t>(begin, runs.front().offset);
    end = std::max<std::size_t>(end, runs.back().offset + runs.back().bytes);
  });
  attempt([&] {
    if (begin < end) {
      static_cast<void>(
          file_.disk.read(stretch + static_cast<std::int64_t>(begin), std::span(stretch_).subspan(begin, end - begin)));
    }
  });
  Blocks answers;
  for_each_block(asked.bytes, asked.sizes, [&](std::size_t, std::span<const std::byte> block) {
    const std::size_t before = answers.bytes.size();
    for (const Run& run : runs_in(block)) {
      const auto from = stretch_.begin() + run.offset;
      answers.bytes.insert(answers.bytes.end(), from, from + run.bytes);
    }
    answers.sizes.push_back(answers.bytes.size() - before);
  });
  return answers;
}

void ExchangedAccess::store_answers(std::uint64_t round, const Blocks& answers) {
  const std::uint64_t file_end = file_.view.layout().position_at(file_bytes_);
  for_each_block(answers.bytes, answers.sizes, [&](std::size_t member, std::span<const std::byte> block) {
    const Share share = share_of(round, member);
    const std::uint64_t end = std::clamp(file_end, share.begin, share.end);
    memory_.store(share.begin - position_, block.first(end - share.begin));
  });
}

std::size_t ExchangedAccess::read() {
  const auto own = static_cast<std::size_t>(file_.communicator.rank);
  stretch_.resize(stretches_.bytes());
  Blocks asked, answers;
  for (std::uint64_t round = 0; round < stretches_.rounds(); ++round) {
    Blocks wanted;
    answers.sizes.clear();
    for (std::size_t member = 0; member < stretches_.members(); ++member) {
      const std::size_t before = wanted.bytes.size();
      const Share share = share_of(round, member);
      append_runs(wanted, share, stretches_.begin(round, member));
      wanted.sizes.push_back(wanted.bytes.size() - before);
      answers.sizes.push_back(share.end - share.begin);
    }
    exchange(wanted, asked);
    exchange_sized(answers_from_stretch(stretches_.begin(round, own), asked), answers);
    attempt([&] { store_answers(round, answers); });
  }
  agree(file_.communicator, error_);
  const std::uint64_t file_end = file_.view.layout().position_at(file_bytes_);
  return std::clamp(file_end, position_, position_ + memory_.bytes()) - position_;
}

}  // namespace brant::mpi
