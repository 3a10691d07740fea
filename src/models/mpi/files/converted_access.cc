#include "models/mpi/files/converted_access.h"

#include <algorithm>
#include <memory>
#include <span>

#include "models/mpi/call_error.h"
#include "models/mpi/files/atomic_range.h"
#include "models/mpi/files/run_access.h"
#include "models/mpi/types/pack.h"

namespace brant::mpi {

namespace {

constexpr Count kConvertedBytes = Count{4} << 20;  ///< Of the file, at once.

/// Items of memory in which the CPU finds them: the program's own, or a copy of those of a device, gaps and all.
class HostItems {
 public:
  explicit HostItems(const TypedBuffer& buffer) : buffer_(buffer), items_(buffer.data()) {
    if (host_accessible(buffer.kind())) return;
    const Datatype& type = buffer.type();
    const Count reach = (buffer.count() - 1) * type.extent();
    const Count low = type.true_lb() + std::min<Count>(reach, 0);
    const Count high = type.true_lb() + type.true_extent() + std::max<Count>(reach, 0);
    copy_ = std::make_unique<std::byte[]>(static_cast<std::size_t>(high - low));
    packed_ = std::make_unique<std::byte[]>(buffer.bytes());
    items_ = copy_.get() - low;
  }
  [[nodiscard]] std::byte* item(Count index) const noexcept { return items_ + index * buffer_.type().extent(); }
  /// From the device, and back to it: the first `bytes` of the data.
  void fetch() {
    if (copy_ == nullptr) return;
    buffer_.pack_any(packed_.get());
    unpack({packed_.get(), buffer_.bytes()}, 0, items_, buffer_.count(), buffer_.type());
  }
  void bring_back(std::size_t bytes) {
    if (copy_ == nullptr) return;
    pack(items_, buffer_.count(), buffer_.type(), 0, {packed_.get(), bytes});
    buffer_.unpack_any(packed_.get(), bytes);
  }

 private:
  const TypedBuffer& buffer_;
  std::byte* items_;
  std::unique_ptr<std::byte[]> copy_;
  std::unique_ptr<std::byte[]> packed_;
};

/// How items of a buffer are cut into pieces.
struct Pieces {
  Pieces(const File& file, const TypedBuffer& buffer)
      : type(*find_datatype(buffer.type().handle())),
        item_bytes(file.view.representation().in_file(type)->size()),
        items(std::clamp<Count>(kConvertedBytes / std::max<Count>(item_bytes, 1), 1, buffer.count())),
        staging(std::make_unique<std::byte[]>(static_cast<std::size_t>(items * item_bytes))) {}

  [[nodiscard]] std::span<std::byte> room(Count count) const noexcept {
    return {staging.get(), static_cast<std::size_t>(count * item_bytes)};
  }
  [[nodiscard]] std::uint64_t offset(Count item) const noexcept {
    return static_cast<std::uint64_t>(item * item_bytes);
  }

  Datatype& type;
  const Count item_bytes;  ///< In the file.
  const Count items;       ///< In a piece.
  const std::unique_ptr<std::byte[]> staging;
};

/// Of an item of which the file has the first `there` bytes alone: brings the elements that are whole to memory. How
/// many bytes of memory they are. Types of several sorts of elements have none.
std::size_t read_part_of_item(const File& file, const Pieces& pieces, std::size_t there, std::byte* item) {
  const Datatype* const element = pieces.type.element();
  if (element == nullptr || there == 0) return 0;
  const DataRepresentation& how = file.view.representation();
  const auto stored = static_cast<std::size_t>(how.in_file(*find_datatype(element->handle()))->size());
  const std::size_t bytes = there / std::max<std::size_t>(stored, 1) * static_cast<std::size_t>(element->size());
  std::ranges::fill(pieces.room(1).subspan(there), std::byte{0});
  const auto whole = std::make_unique<std::byte[]>(static_cast<std::size_t>(pieces.type.true_extent()));
  std::byte* const ground = whole.get() - pieces.type.true_lb();
  how.from_file(pieces.room(1), ground, 1, pieces.type);
  const auto packed = std::make_unique<std::byte[]>(bytes);
  pack(ground, 1, pieces.type, 0, {packed.get(), bytes});
  unpack({packed.get(), bytes}, 0, item, 1, pieces.type);
  return bytes;
}

}  // namespace

std::size_t read_converted(File& file, std::uint64_t position, const TypedBuffer& buffer) {
  const Pieces pieces(file, buffer);
  if (pieces.item_bytes == 0) return 0;
  HostItems memory(buffer);
  memory.fetch();  // what lies behind the end of the file stays as it is
  const FileLayout& layout = file.view.layout();
  Count done = 0;
  std::size_t part = 0;  // of an item
  {
    const AtomicRange range(file, DiskFile::Lock::shared, position, pieces.offset(buffer.count()));
    while (done < buffer.count()) {
      const Count some = std::min(buffer.count() - done, pieces.items);
      const std::size_t got = read_runs(file.disk, layout, position + pieces.offset(done), pieces.room(some));
      const Count whole = static_cast<Count>(got) / pieces.item_bytes;
      if (whole != 0) file.view.representation().from_file(pieces.room(whole), memory.item(done), whole, pieces.type);
      done += whole;
      if (whole == some) continue;
      const std::size_t there = got - pieces.offset(whole);
      std::ranges::copy(pieces.room(some).subspan(pieces.offset(whole), there), pieces.room(1).begin());
      part = read_part_of_item(file, pieces, there, memory.item(done));
      break;
    }
  }
  const auto bytes = static_cast<std::size_t>(buffer.type().bytes_of(done)) + part;
  memory.bring_back(bytes);
  return bytes;
}

void write_converted(File& file, std::uint64_t position, const TypedBuffer& buffer) {
  const Pieces pieces(file, buffer);
  if (pieces.item_bytes == 0) return;
  HostItems memory(buffer);
  memory.fetch();
  const AtomicRange range(file, DiskFile::Lock::exclusive, position, pieces.offset(buffer.count()));
  for (Count done = 0; done < buffer.count(); done += pieces.items) {
    const Count some = std::min(buffer.count() - done, pieces.items);
    file.view.representation().to_file(memory.item(done), some, pieces.type, pieces.room(some));
    write_runs(file.disk, file.view.layout(), position + pieces.offset(done), pieces.room(some));
  }
}

}  // namespace brant::mpi
