#include "models/pgas/served_copies.h"

#include <new>
#include <utility>

#include "models/pgas/space_state.h"

namespace brant {

ServedCopies::~ServedCopies() {
  while (Served* served = under_way_.pop_front()) records_.give_back(served);  // which detaches it
}

void ServedCopies::answer(std::int32_t asker, std::uint64_t id, Status status) noexcept {
  // One that cannot be told has gone.
  static_cast<void>(space_.say(
      Rank{asker}, {.word = pgas::SpaceWord::copied, .status = static_cast<std::int32_t>(status), .id = id}, {}));
}

Status ServedCopies::keep(Served& served, std::span<const std::byte> shapes) noexcept {
  try {
    served.shapes = std::make_unique<KeptShapes>();
    return served.shapes->unpack(shapes);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

void ServedCopies::serve(std::int32_t asker, std::uint64_t id, const pgas::CopyRequest& request,
                         std::span<const std::byte> shapes) noexcept {
  const bool is_sound = request.from.rank() == space_.rank() && static_cast<int>(request.path) < kPathCount &&
                        shapes.size() <= KeptShapes::kBytesMost;
  if (!is_sound) return answer(asker, id, Status::invalid_argument);
  Served* served = records_.take(space_, asker, id);
  if (served == nullptr) return answer(asker, id, records_.refusal());
  served->op.delivered = {&ServedCopies::on_done, served};
  under_way_.push_back(*served);
  CopyOptions options;
  options.path = request.path;
  Status status = request.has_shapes != 0 ? keep(*served, shapes) : Status::ok;
  if (served->shapes != nullptr) options.shapes = &served->shapes->shapes();
  if (status == Status::ok)
    status = space_.post_copy(request.from, request.to, static_cast<std::size_t>(request.bytes), served->op,
                              std::move(options));
  if (status != Status::in_progress) on_done(served, {status, 0});
}

void ServedCopies::on_done(void* record, const OpResult& result) noexcept {
  auto& served = *static_cast<Served*>(record);
  ServedCopies& self = served.space.served();
  // The asker has withdrawn nothing: this space ends, and its segments with it.
  self.answer(served.asker, served.id, result.status == Status::canceled ? Status::not_found : result.status);
  self.under_way_.remove(served);
  self.records_.give_back(&served);
}

}  // namespace brant
