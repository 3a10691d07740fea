#include "ops/lane/data_sources.h"

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace brant::lane {
namespace {

/// Null: `why` says so.
DataOrigin* take_origin(DataLanes& lanes, const std::optional<Shape>& shape, Status& why) noexcept {
  DataOrigin* const origin = lanes.take_origin();
  if (origin == nullptr) why = lanes.origin_refusal();
  if (origin == nullptr || !shape) return origin;
  origin->shape = lanes.keep(*shape);
  if (origin->shape != nullptr) return origin;
  why = lanes.shape_refusal();
  lanes.release_one(*origin, Status::canceled);
  return nullptr;
}

std::string cure(const detail::DataSource& source, const DataMeta& meta, Status status) {
  if (status == Status::limit_reached) return "Wait for some that are under way";
  if (status == Status::no_memory) return "Free some, or wait for those that are under way";
  if (meta.host_only) return "no_copy takes host memory; use device(...) for other kinds";
  if (source.shape && source.shape->end() > source.buffer.bytes) {
    return fmt::format("Its shape ends at byte {}: pass all of the memory that it is laid on", source.shape->end());
  }
  return "Pass a live buffer of the kind that it declares";
}

/// Finds out the kind.
Status judge(DataLanes& lanes, detail::DataSource& source, const DataMeta& meta, AskedMemory& answer) noexcept {
  ConstBuffer& buffer = source.buffer;
  const Status status = lanes.engine().memory_kinds().resolve(buffer.data, buffer.bytes, buffer.kind, answer);
  if (status != Status::ok) return status;
  if (meta.host_only && !host_accessible(buffer.kind)) return Status::wrong_kind;
  const bool outside = source.shape && source.shape->bytes() != 0 && source.shape->end() > buffer.bytes;
  return outside ? Status::invalid_argument : Status::ok;
}

}  // namespace

DataOrigin* take_sources(DataLanes& lanes, std::string_view owner, std::string_view name, detail::DataSource* sources,
                         DataMeta* metas, std::size_t count) {
  DataOrigin* first = nullptr;
  DataOrigin** end = &first;
  for (std::size_t i = 0; i < count; ++i) {
    detail::DataSource& source = sources[i];
    const ConstBuffer& buffer = source.buffer;
    AskedMemory answer;
    Status status = judge(lanes, source, metas[i], answer);
    DataOrigin* origin = status == Status::ok ? take_origin(lanes, source.shape, status) : nullptr;
    if (origin == nullptr) {
      lanes.release(std::exchange(first, nullptr), Status::canceled);
      throw Error(status,
                  fmt::format("rank {}: data argument {} of a call of {}{}{} ({} bytes of {} memory) cannot be "
                              "sent: {}. {}",
                              lanes.engine().job().rank, i, owner, owner.empty() ? "" : "::", name, buffer.bytes,
                              memory_kind_name(buffer.kind), status_text(status), cure(source, metas[i], status)));
    }
    metas[i].bytes = source.shape ? source.shape->bytes() : buffer.bytes;
    metas[i].kind = buffer.kind;
    origin->buffer = buffer;
    origin->memory = answer;
    origin->free = source.free;
    origin->promise = std::move(source.promise);
    *end = origin;
    end = &origin->following;
  }
  return first;
}

}  // namespace brant::lane
