#include "models/mpi/typed_buffer.h"

#include <algorithm>
#include <cstring>

#include "models/mpi/call_error.h"
#include "models/mpi/process.h"
#include "models/mpi/types/pack.h"

namespace brant::mpi {

Datatype& datatype_of(MPI_Datatype handle) {
  Datatype* type = find_datatype(handle);
  require(type != nullptr, MPI_ERR_TYPE, "the datatype is MPI_DATATYPE_NULL, or none that exists");
  return *type;
}

namespace {

[[noreturn]] void fail_uncommitted(const Datatype& type) {
  fail(MPI_ERR_TYPE, "the datatype{}{} is not committed: call MPI_Type_commit first", type.name().empty() ? "" : " ",
       type.name());
}

void require_that_stays(const RankThreads& threads, const void* address) {
  require(
      !threads.moves(address), MPI_ERR_BUFFER,
      "the buffer at {} is a thread-local variable, whose bytes are put aside while other ranks of this process run: "
      "pass memory of another sort, or run with one rank a process",
      address);
}

}  // namespace

TypedBuffer::TypedBuffer(const void* address, MPI_Count count, MPI_Datatype type)
    : data_(static_cast<std::byte*>(const_cast<void*>(address))), count_(count) {
  require(count >= 0, MPI_ERR_COUNT, "the count {} is negative", count);
  Datatype& found = datatype_of(type);
  if (!found.committed()) [[unlikely]]
    fail_uncommitted(found);
  const Count bytes = found.bytes_of(count);
  require(bytes >= 0, MPI_ERR_COUNT, "{} elements of {} bytes are more than memory has", count, found.size());
  type_ = DatatypeRef(&found);
  bytes_ = static_cast<std::size_t>(bytes);
  contiguous_ = found.contiguous();
  if (bytes_ == 0) return;
  require(address != MPI_IN_PLACE, MPI_ERR_BUFFER, "MPI_IN_PLACE stands for no buffer here");
  // Data with gaps may lie in several allocations, so only its first byte is looked at.
  const std::byte* first = contiguous_ ? data_ : data_ + found.true_lb();
  Process& process = *mpi::process();
  if (process.threads() != nullptr) require_that_stays(*process.threads(), first);
  Engine& engine = process.engine();
  // Where no device is, all memory is the host's, and what was found last is found again without a search.
  kind_ = engine.device().capabilities().streams ? MemoryKind::detect : MemoryKind::host;
  const Status status = engine.memory_kinds().resolve(first, contiguous_ ? bytes_ : 1, kind_, memory_);
  if (status != Status::ok) [[unlikely]]
    fail(MPI_ERR_BUFFER, "the buffer at {} has no {} bytes of memory: {}", address, bytes_, status_text(status));
}

TypedBuffer TypedBuffer::partition(const void* address, int number, MPI_Count count, MPI_Datatype type) {
  const MPI_Count before = number * count * datatype_of(type).extent();
  return {static_cast<const std::byte*>(address) + before, count, type};
}

TypedBuffer TypedBuffer::packed_at(std::byte* copy) const noexcept {
  TypedBuffer packed = *this;
  packed.data_ = copy;
  packed.contiguous_ = true;
  packed.kind_ = MemoryKind::host;
  return packed;
}

bool TypedBuffer::overlaps(const std::byte* base, std::size_t bytes) const noexcept {
  if (bytes_ == 0) return false;
  if (contiguous_) return overlap(data_, bytes_, base, bytes);
  const Count last = (count_ - 1) * type_->extent();
  const Count low = type_->true_lb() + std::min<Count>(last, 0);
  const Count high = type_->true_lb() + type_->true_extent() + std::max<Count>(last, 0);
  return overlap(data_ + low, static_cast<std::size_t>(high - low), base, bytes);
}

void TypedBuffer::pack(std::byte* to) const noexcept {
  if (bytes_ == 0) return;
  if (contiguous_) {
    std::memcpy(to, data_, bytes_);
  } else {
    mpi::pack(data_, count_, *type_, 0, {to, bytes_});
  }
}

void TypedBuffer::unpack(const std::byte* from, std::size_t bytes) const noexcept {
  if (bytes == 0) return;
  if (contiguous_) {
    std::memcpy(data_, from, bytes);
  } else {
    mpi::unpack({from, bytes}, 0, data_, count_, *type_);
  }
}

TypeShape TypedBuffer::shape(std::size_t bytes) const {
  std::optional<TypeShape> shape = TypeShape::of(*type_, count_, 0, static_cast<Count>(bytes));
  require(shape && shape->shape().bytes() == bytes, MPI_ERR_UNSUPPORTED_OPERATION,
          "the data of {} elements of the datatype {} lies in more than {} runs of device memory: send it in parts",
          count_, type_->name(), TypeShape::kRunsMost);
  return *std::move(shape);
}

/// A device that packs does so into memory of its own kind; what comes by way of that is copied whole.
void TypedBuffer::pack_any(std::byte* to) const {
  if (host_accessible(kind_)) return pack(to);
  if (bytes_ == 0) return;
  Runtime& runtime = process()->runtime();
  if (contiguous_) return runtime.copy({to, bytes_, MemoryKind::host}, run());
  const TypeShape how = shape(bytes_);
  const Buffer on = ground(how);
  const auto image = std::make_unique<std::byte[]>(on.bytes);
  runtime.copy({image.get(), on.bytes, MemoryKind::host}, on);
  mpi::pack(image.get() - how.first(), count_, *type_, 0, {to, bytes_});
}

void TypedBuffer::unpack_any(const std::byte* from, std::size_t bytes) const {
  if (host_accessible(kind_)) return unpack(from, bytes);
  if (bytes == 0) return;
  Runtime& runtime = process()->runtime();
  if (contiguous_) return runtime.copy({data_, bytes, kind_}, {from, bytes, MemoryKind::host});
  const TypeShape how = shape(bytes_);
  const Buffer on = ground(how);
  const auto image = std::make_unique<std::byte[]>(on.bytes);
  runtime.copy({image.get(), on.bytes, MemoryKind::host}, on);
  mpi::unpack({from, bytes}, 0, image.get() - how.first(), count_, *type_);
  runtime.copy(on, {image.get(), on.bytes, MemoryKind::host});
}

}  // namespace brant::mpi
