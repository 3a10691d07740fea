#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/object_pool.h"
#include "ops/am/messenger.h"
#include "ops/rma/device_atomics.h"
#include "ops/rma/exposed.h"

namespace brant {

class RmaTable;

/// An atomic that the owner of the memory is asked for. Its maker keeps it in place until it is told of the end.
struct AskedAtomic {
  std::uint64_t id = 0;  ///< 0: the owner has not been asked.
  Peer* owner = nullptr;
};

/// Atomics on device memory that is not mapped where they are posted: the owner is asked by a message, and its device
/// performs them, in the owner's progress. Both sides of it. What an asker has under way is bounded by the messenger's
/// window: the owner gives a message back when it has answered.
class AskedAtomics {
 public:
  using Answered = void (*)(void* self, AskedAtomic& atomic, Status status, std::uint64_t bits) noexcept;

  /// `answered` is called from progress.
  AskedAtomics(RmaTable& table, Answered answered, void* self);
  ~AskedAtomics();
  AskedAtomics(const AskedAtomics&) = delete;
  AskedAtomics& operator=(const AskedAtomics&) = delete;

  /// in_progress; else nobody was asked: limit_reached, no_memory, peer_lost.
  Status ask(AskedAtomic& atomic, Peer& owner, std::uint64_t segment, std::uint64_t offset,
             const Atomic& what) noexcept;
  /// Its answer is not waited for any more.
  void forget(AskedAtomic& atomic) noexcept;
  /// Those whose owners have died or ended end as peer_lost.
  void look_around() noexcept;
  /// See Service::let_go: nothing is taken or answered any more.
  void let_go() noexcept;

 private:
  struct Served : DeviceAtomic {
    Served(AskedAtomics& owner_in, am::Message& request_in) noexcept : owner(owner_in), request(&request_in) {}
    AskedAtomics& owner;
    am::Message* request;  ///< Null: nobody is answered any more.
    std::shared_ptr<ExposedSegment> segment;
    ListHook<Served> served_hook;
    ListHook<Served> waiting_hook;
  };

  static void on_message(void* self, am::Message& message) noexcept;
  void serve(am::Message& request) noexcept;
  /// ok: word and operation are set.
  Status find(Served& served) noexcept;
  void start(Served& served) noexcept;
  void performed(Served& served, Status status) noexcept;
  void answer(Served& served, Status status, std::uint64_t bits) noexcept;
  void send_answer(const am::Message& request, Status status, std::uint64_t bits) noexcept;
  /// Those of owners that answer no more.
  template <typename Gone>
  void end_where(Gone&& gone, Status status) noexcept;
  void take_answer(const am::Message& message) noexcept;

  RmaTable& table_;
  am::Messenger& messenger_;
  const Answered answered_;
  void* const self_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, AskedAtomic*> asked_;  ///< By id.
  ObjectPool<Served> records_{SIZE_MAX};                   ///< As many as messages.
  IntrusiveList<Served, &Served::served_hook> served_;
  IntrusiveList<Served, &Served::waiting_hook> waiting_;  ///< Those of them for which the device has no room yet.
  std::optional<DeviceAtomics> device_;
};

}  // namespace brant
