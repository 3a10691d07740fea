#include "models/mpi/dynamic/talk.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "models/mpi/posting.h"
#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

TypedBuffer typed(std::span<const std::byte> bytes) {
  return {bytes.data(), static_cast<MPI_Count>(bytes.size()), MPI_BYTE};
}

}  // namespace

Talk::Talk(RankState& rank, RankId other, std::int32_t tag)
    : rank_(rank),
      own_(std::make_unique<Communicator>(Communicator::kMeeting, std::make_shared<Members>(std::vector{rank.id}),
                                          std::make_shared<Members>(std::vector{other}), 0, RankTeam())),
      between_(*own_),
      other_(0),
      tag_(tag) {}

Talk::Talk(RankState& rank, Communicator& common, int other, std::int32_t tag) noexcept
    : rank_(rank), between_(common), other_(other), tag_(tag) {}

std::vector<std::byte> Talk::swap(std::span<const std::byte> given) {
  std::uint64_t size = given.size();
  std::uint64_t others = 0;
  swap(std::as_bytes(std::span(&size, 1)), std::as_writable_bytes(std::span(&others, 1)));
  std::vector<std::byte> got(static_cast<std::size_t>(others));
  swap(given, got);
  return got;
}

void Talk::swap(std::span<const std::byte> given, std::span<std::byte> got) {
  ReceiveRequest receive(rank_, between_, typed(got), other_, tag_);
  receive.wanted.context = between_.own_context();
  receive.start();
  SendRequest send(rank_, between_, typed(given), other_, tag_, SendMode::standard);
  send.context = between_.own_context();
  send.start();
  rank_.wait_for_end([&] { return send.ended() && receive.ended(); });
  complete(send);
  complete(receive);
}

namespace {

/// How many bytes the longest of all members has.
std::size_t longest(RankTeam& team, std::size_t own) {
  std::uint64_t size = own;
  const std::span<std::uint64_t> value(&size, 1);
  team.run(allreduce(value, value, ReduceOp::max)).or_throw("the members did not tell each other who they are");
  return static_cast<std::size_t>(size);
}

}  // namespace

std::vector<std::vector<std::byte>> gather_bytes(Communicator& communicator, std::span<const std::byte> own) {
  RankTeam& team = communicator.team();
  const auto count = static_cast<std::size_t>(team.size());
  const std::size_t room = longest(team, own.size()) + sizeof(std::uint64_t);
  std::vector<std::byte> mine(room);
  const std::uint64_t size = own.size();
  std::memcpy(mine.data(), &size, sizeof size);
  if (!own.empty()) std::memcpy(mine.data() + sizeof size, own.data(), own.size());
  std::vector<std::byte> all(room * count);
  team.run(
          allgather(ConstBuffer(mine.data(), room, MemoryKind::host), Buffer(all.data(), all.size(), MemoryKind::host)))
      .or_throw("the members did not tell each other who they are");
  std::vector<std::vector<std::byte>> result;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, all.data() + i * room, sizeof bytes);
    const std::byte* first = all.data() + i * room + sizeof bytes;
    result.emplace_back(first, first + std::min<std::size_t>(bytes, room - sizeof bytes));
  }
  return result;
}

std::vector<std::byte> spread_bytes(Communicator& communicator, int root, std::vector<std::byte> bytes) {
  const auto from_root = [&](Buffer values) {
    communicator.team().run(broadcast(values, root)).or_throw("the root told nothing of the other group");
  };
  std::uint64_t size = bytes.size();
  from_root(Buffer(std::span(&size, 1)));
  bytes.resize(static_cast<std::size_t>(size));
  if (size != 0) from_root(Buffer(bytes.data(), bytes.size(), MemoryKind::host));
  return bytes;
}

int spread_number(Communicator& communicator, int root, int number) {
  const auto value = std::as_bytes(std::span(&number, 1));
  const std::vector<std::byte> told = spread_bytes(communicator, root, {value.begin(), value.end()});
  std::memcpy(&number, told.data(), sizeof number);
  return number;
}

}  // namespace brant::mpi
