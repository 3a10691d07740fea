#include "star.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace jacobi {
namespace {

/// What a rank reports of an action.
struct Verdict {
  brant::Status status = brant::Status::ok;
  std::array<char, 1020> text{};
};

Verdict verdict_of(const std::function<void()>& action) {
  Verdict verdict;
  const auto failed = [&](brant::Status status, std::string_view text) {
    verdict.status = status;
    std::copy_n(text.data(), std::min(text.size(), verdict.text.size() - 1), verdict.text.data());
  };
  try {
    action();
  } catch (const brant::Error& error) {
    failed(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    failed(brant::Status::no_memory, "out of host memory");
  } catch (const std::exception& error) {
    failed(brant::Status::internal, error.what());
  }
  return verdict;
}

}  // namespace

Star::Star(brant::Runtime& runtime) : runtime_(runtime) {
  const int rank = runtime.rank().value;
  const auto open = [&](int peer, int leaf) {
    const brant::ChannelId id{brant::kChannelIdMax - static_cast<std::uint32_t>(leaf)};
    channels_.push_back(brant::Channel::open(runtime, brant::Rank{peer}, id));
  };
  if (rank != 0) open(0, rank);
  for (int leaf = 1; rank == 0 && leaf < runtime.size(); ++leaf) open(leaf, leaf);
}

brant::Channel& Star::channel_of(int rank) noexcept {
  return channels_[rank == 0 ? 0 : static_cast<std::size_t>(rank) - 1];
}

void Star::wait(brant::Operation& operation, int peer) {
  static_cast<void>(runtime_.worker().wait_until([&] { return operation.done(); }));
  if (!operation.result().ok()) {
    throw brant::Error(operation.result().status,
                       fmt::format("talking to rank {}: {}", peer, brant::status_text(operation.result().status)));
  }
}

void Star::send_to_root(brant::ConstBuffer message) {
  brant::Operation sent = channel_of(0).send(message);
  wait(sent, 0);
}

void Star::receive_from(int rank, brant::Buffer landing) {
  brant::Operation received = channel_of(rank).recv(landing);
  wait(received, rank);
}

void Star::broadcast(brant::Buffer value) {
  if (!is_root()) return receive_from(0, value);
  for (int rank = 1; rank < size(); ++rank) {
    brant::Operation sent = channel_of(rank).send(value);
    wait(sent, rank);
  }
}

double Star::reduce(double mine, double (*combine)(double, double)) {
  if (!is_root()) send_to_root({&mine, sizeof mine, brant::MemoryKind::host});
  for (int rank = 1; is_root() && rank < size(); ++rank) {
    double theirs = 0.0;
    receive_from(rank, {&theirs, sizeof theirs, brant::MemoryKind::host});
    mine = combine(mine, theirs);
  }
  return from_root(mine);
}

double Star::largest(double mine) {
  return reduce(mine, [](double a, double b) { return std::isnan(a) || a > b ? a : b; });
}

double Star::sum(double mine) {
  return reduce(mine, [](double a, double b) { return a + b; });
}

void Star::agree(const std::function<void()>& action) {
  Verdict verdict = verdict_of(action);
  if (!is_root()) send_to_root({&verdict, sizeof verdict, brant::MemoryKind::host});
  for (int rank = 1; is_root() && rank < size(); ++rank) {
    Verdict theirs;
    receive_from(rank, {&theirs, sizeof theirs, brant::MemoryKind::host});
    if (verdict.status == brant::Status::ok) verdict = theirs;
  }
  verdict = from_root(verdict);
  if (verdict.status != brant::Status::ok) throw AgreedError(verdict.status, verdict.text.data());
}

}  // namespace jacobi
