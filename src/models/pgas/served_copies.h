#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/object_pool.h"
#include "brant/core/op.h"
#include "models/pgas/kept_shapes.h"
#include "models/pgas/words.h"

namespace brant {

class SpaceState;

/// Copies that this process makes for others, of its own memory.
class ServedCopies {
 public:
  static constexpr std::size_t kServedMax = 4096;

  explicit ServedCopies(SpaceState& space) noexcept : space_(space) {}
  ServedCopies(const ServedCopies&) = delete;
  ServedCopies& operator=(const ServedCopies&) = delete;
  ~ServedCopies();

  /// Answers now or later.
  void serve(std::int32_t asker, std::uint64_t id, const pgas::CopyRequest& request,
             std::span<const std::byte> shapes) noexcept;

 private:
  struct Served {
    Served(SpaceState& space_in, std::int32_t asker_in, std::uint64_t id_in) noexcept
        : space(space_in), asker(asker_in), id(id_in) {}
    SpaceState& space;
    std::int32_t asker;
    std::uint64_t id;
    Op op;
    std::unique_ptr<KeptShapes> shapes;  ///< None: in one run at either end.
    ListHook<Served> hook;
  };

  /// Keeps the shapes of a copy until it has ended.
  static Status keep(Served& served, std::span<const std::byte> shapes) noexcept;
  void answer(std::int32_t asker, std::uint64_t id, Status status) noexcept;
  static void on_done(void* served, const OpResult& result) noexcept;

  SpaceState& space_;
  ObjectPool<Served> records_{kServedMax};
  IntrusiveList<Served, &Served::hook> under_way_;
};

}  // namespace brant
