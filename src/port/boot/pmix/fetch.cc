#include "port/boot/pmix/fetch.h"

#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>

namespace brant::port::pmix {
namespace {

using Bytes = std::vector<std::byte>;

std::optional<Bytes> bytes_of(const Value& value) {
  if (value.type != kTypeByteObject) return std::nullopt;  // not brant's
  const auto* first = reinterpret_cast<const std::byte*>(value.data.bytes.bytes);
  return Bytes(first, first + value.data.bytes.size);
}

Proc owner(const Proc& self, Rank rank) noexcept {
  Proc result = self;
  result.rank = rank;
  return result;
}

/// What this host's server has. It has all values of its own processes; those of other hosts came with the fence,
/// except under PRRTE.
std::optional<Bytes> at_hand(const Library& library, const Proc& self, const Wanted& wanted) {
  const Proc proc = owner(self, wanted.rank);
  const Info immediate = directive(kImmediate);
  Value* value = nullptr;
  if (library.get(&proc, wanted.key.c_str(), &immediate, 1, &value) != kSuccess) return std::nullopt;
  const std::unique_ptr<Value, decltype(&std::free)> owned(value, &std::free);
  std::optional<Bytes> bytes = bytes_of(*value);
  if (value->type == kTypeByteObject) std::free(value->data.bytes.bytes);
  return bytes;
}

/// Requests on their way. PMIx answers on a thread of its own, perhaps after we stopped waiting, so every request holds
/// a share of this.
struct Requests {
  explicit Requests(std::size_t count) : answers(count), open(count) {}

  std::mutex mutex;
  std::condition_variable answered;
  std::vector<std::optional<Bytes>> answers;
  std::size_t open;

  void answer(std::size_t index, std::optional<Bytes> bytes) {
    const std::lock_guard lock(mutex);
    answers[index] = std::move(bytes);
    --open;
    answered.notify_all();
  }
  /// Until all are answered, or none was for as long as `patience`.
  void wait(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex);
    while (open > 0) {
      const std::size_t before = open;
      if (!answered.wait_for(lock, patience, [&] { return open != before; })) return;
    }
  }
};

struct Request {
  std::shared_ptr<Requests> all;
  std::size_t index = 0;
};

void on_answer(Code code, Value* value, void* context) {
  const std::unique_ptr<Request> request(static_cast<Request*>(context));
  try {
    request->all->answer(request->index, code == kSuccess && value != nullptr ? bytes_of(*value) : std::nullopt);
  } catch (...) {  // no memory for the bytes
    request->all->answer(request->index, std::nullopt);
  }
}

}  // namespace

void fetch(const Library& library, const Proc& self, std::span<Wanted> wanted, std::chrono::milliseconds patience) {
  std::vector<Wanted*> elsewhere;
  for (Wanted& one : wanted) {
    one.value = at_hand(library, self, one);
    if (!one.value) elsewhere.push_back(&one);
  }
  const auto requests = std::make_shared<Requests>(elsewhere.size());
  const Info refresh = directive(kRefreshCache);
  for (std::size_t i = 0; i < elsewhere.size(); ++i) {
    const Proc proc = owner(self, elsewhere[i]->rank);
    auto request = std::make_unique<Request>(Request{requests, i});
    if (library.get_nb(&proc, elsewhere[i]->key.c_str(), &refresh, 1, on_answer, request.get()) == kSuccess) {
      static_cast<void>(request.release());  // now the callback's
    } else {
      requests->answer(i, std::nullopt);
    }
  }
  requests->wait(patience);
  const std::lock_guard lock(requests->mutex);
  for (std::size_t i = 0; i < elsewhere.size(); ++i) elsewhere[i]->value = std::move(requests->answers[i]);
}

}  // namespace brant::port::pmix
