#include "models/mpi/files/memory_pieces.h"

#include <memory>

#include "models/mpi/call_error.h"
#include "models/mpi/process.h"
#include "models/mpi/types/pack.h"

namespace brant::mpi {

template <typename Copy>
void MemoryPieces::with_images(std::size_t position, std::size_t bytes, bool changes, const Copy& copy) const {
  Runtime& runtime = process()->runtime();
  const std::size_t end = position + bytes;
  while (position < end) {
    const auto shape =
        TypeShape::of(buffer_.type(), buffer_.count(), static_cast<Count>(position), static_cast<Count>(end));
    require(shape && shape->shape().bytes() != 0, MPI_ERR_TYPE,
            "elements of the datatype {} reach further than addresses do", buffer_.type().name());
    const Buffer ground = buffer_.ground(*shape);
    const auto image = std::make_unique<std::byte[]>(ground.bytes);
    runtime.copy({image.get(), ground.bytes, MemoryKind::host}, ground);
    const std::size_t some = shape->shape().bytes();
    copy(image.get() - shape->first(), position, some);
    if (changes) runtime.copy(ground, {image.get(), ground.bytes, MemoryKind::host});
    position += some;
  }
}

void MemoryPieces::load(std::size_t position, std::span<std::byte> to) const {
  if (host_accessible(buffer_.kind()))
    return pack(buffer_.data(), buffer_.count(), buffer_.type(), static_cast<Count>(position), to);
  if (buffer_.contiguous()) {
    return process()->runtime().copy({to.data(), to.size(), MemoryKind::host},
                                     {buffer_.data() + position, to.size(), buffer_.kind()});
  }
  with_images(position, to.size(), false, [&](const std::byte* image, std::size_t at, std::size_t bytes) {
    pack(image, buffer_.count(), buffer_.type(), static_cast<Count>(at), to.subspan(at - position, bytes));
  });
}

void MemoryPieces::store(std::size_t position, std::span<const std::byte> from) const {
  if (host_accessible(buffer_.kind()))
    return unpack(from, static_cast<Count>(position), buffer_.data(), buffer_.count(), buffer_.type());
  if (buffer_.contiguous()) {
    return process()->runtime().copy({buffer_.data() + position, from.size(), buffer_.kind()},
                                     {from.data(), from.size(), MemoryKind::host});
  }
  with_images(position, from.size(), true, [&](std::byte* image, std::size_t at, std::size_t bytes) {
    unpack(from.subspan(at - position, bytes), static_cast<Count>(at), image, buffer_.count(), buffer_.type());
  });
}

}  // namespace brant::mpi
