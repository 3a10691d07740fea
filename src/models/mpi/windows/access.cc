#include "models/mpi/windows/access.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "models/mpi/process.h"
#include "models/mpi/types/pack.h"
#include "models/mpi/types/reduce.h"
#include "models/mpi/windows/accumulation.h"
#include "models/mpi/windows/window.h"
#include "models/mpi/windows/window_messenger.h"

namespace brant::mpi {

namespace {

/// What a message carries at most, as it is packed: a run may be a byte, and costs 16.
constexpr std::size_t kMessageBytes = std::size_t{256} * 1024;
constexpr std::size_t kScatteredBytes = std::size_t{32} * 1024;

WindowMessenger& messenger_of(Window& window) { return window.rank.process.windows(); }

/// The bytes of a source, packed: where they are, or a copy.
class PackedSource {
 public:
  explicit PackedSource(const TypedBuffer& source) {
    if (source.contiguous() && host_accessible(source.kind())) {
      data_ = source.data();
      return;
    }
    copy_ = std::make_unique<std::byte[]>(source.bytes());
    source.pack_any(copy_.get());
    data_ = copy_.get();
  }
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }

 private:
  const std::byte* data_ = nullptr;
  std::unique_ptr<std::byte[]> copy_;
};

/// Enters a transfer, and ends the piece that the call itself is when that ends: what it has begun goes on, also where
/// the call fails.
class Begun {
 public:
  Begun(Window& window, int target, const TypedBuffer* landing, WindowRequest* request)
      : transfer_(*new Transfer(window, target, landing, request)) {}
  ~Begun() { transfer_.end_piece(MPI_SUCCESS); }
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;
  Transfer& operator*() const noexcept { return transfer_; }
  Transfer* operator->() const noexcept { return &transfer_; }

 private:
  Transfer& transfer_;
};

/// What a target gives back by a message: a piece of a transfer, which ends with it.
class GivenBack final : public Awaited {
 public:
  GivenBack(Transfer& transfer, std::byte* place, std::size_t bytes) noexcept
      : transfer_(transfer), place_(place), bytes_(bytes) {
    transfer.add_piece();
    ++transfer.window.peer(transfer.target).answers_due;
  }
  ~GivenBack() override {
    --transfer_.window.peer(transfer_.target).answers_due;
    transfer_.end_piece(error_);
  }
  GivenBack(const GivenBack&) = delete;
  GivenBack& operator=(const GivenBack&) = delete;

  void answered(int error, std::span<const std::byte> data) noexcept override {
    error_ = error == MPI_SUCCESS && data.size() != bytes_ ? MPI_ERR_INTERN : error;
    if (error_ == MPI_SUCCESS) std::memcpy(place_, data.data(), bytes_);
    delete this;
  }

 private:
  Transfer& transfer_;
  std::byte* const place_;
  const std::size_t bytes_;
  int error_ = MPI_ERR_NO_MEM;  ///< Of one that nobody could be asked for.
};

/// A message that asks the target for an access.
struct AskedAccess {
  AccessHead head;
  std::span<const WindowRun> runs;
  std::span<const std::byte> data;  ///< Packed, as `more_data` behind it.
  std::span<const std::byte> more_data;
};

void ask(Window& window, int target, const AskedAccess& access, std::uint64_t ticket) {
  AccessHead head = access.head;
  head.runs = access.runs.size();
  for (const WindowRun& run : access.runs) head.bytes += run.bytes;
  head.data_bytes = access.data.size() + access.more_data.size();
  WindowMessenger& messenger = messenger_of(window);
  am::Message& message = messenger.make(sizeof head + access.runs.size_bytes() + head.data_bytes);
  std::byte* place = message.data;
  const auto append = [&place](const void* from, std::size_t bytes) {
    if (bytes != 0) std::memcpy(place, from, bytes);
    place += bytes;
  };
  append(&head, sizeof head);
  append(access.runs.data(), access.runs.size_bytes());
  append(access.data.data(), access.data.size());
  append(access.more_data.data(), access.more_data.size());
  WindowHeader header = WindowMessenger::header_to(window, target, WindowWord::access);
  header.ticket = ticket;
  if (ticket == 0) window.peer(target).has_messages = true;
  messenger.send(window.process_of(target), header, message);
}

/// The same for an access that gives `bytes` back, to `place`.
void ask_back(Window& window, Transfer& transfer, const AskedAccess& access, std::byte* place, std::size_t bytes) {
  GivenBack& back = *std::make_unique<GivenBack>(transfer, place, bytes).release();
  std::uint64_t ticket = 0;
  try {
    ticket = messenger_of(window).await(window.process_of(transfer.target), back);
  } catch (const std::bad_alloc&) {
    delete &back;
    throw;
  }
  if (ticket != 0) ask(window, transfer.target, access, ticket);
}

/// Of a derived type less goes in a message than of one run.
std::size_t piece_bytes(const TargetData& there) noexcept {
  return there.contiguous() ? kMessageBytes : kScatteredBytes;
}

void require_same_bytes(const TypedBuffer& here, const TargetData& there) {
  require(here.bytes() == there.bytes(), MPI_ERR_TRUNCATE,
          "the origin has {} bytes and the target {}: the two datatypes with their counts must have equal signatures",
          here.bytes(), there.bytes());
}

/// The segment that carries data of one run at the target; null: there is none, or it does not reach such memory.
RemoteSegment* segment_for(Window& window, const TypedBuffer& here, const TargetData& there, RmaDirection direction) {
  if (!there.contiguous()) return nullptr;
  RemoteSegment* const segment = window.reach(there.member());
  if (segment == nullptr) return nullptr;
  const MemoryKind kind = here.contiguous() ? here.kind() : MemoryKind::host;
  if (segment->host_pointer() != nullptr && host_accessible(kind)) return segment;
  return segment->path_of(kind, here.bytes(), direction) ? segment : nullptr;
}

/// Again and again while too many are under way.
template <typename Post>
Status post_patiently(Window& window, const Post& post) {
  Status status = post();
  while (status == Status::limit_reached) {
    window.rank.progress();
    status = post();
  }
  return status;
}

}  // namespace

// Puts
// -------------------------------------------------------------------------------------------------------------------

namespace {

/// Both ends lie in one run, or the source is packed into one.
void put_by_segment(Window& window, RemoteSegment& segment, const TypedBuffer& source, const TargetData& there,
                    WindowRequest* request) {
  Begun transfer(window, there.member(), nullptr, request);
  Buffer from = source.run();
  if (!source.contiguous()) {
    transfer->packed = std::make_unique<std::byte[]>(source.bytes());
    source.pack_any(transfer->packed.get());
    from = {transfer->packed.get(), source.bytes(), MemoryKind::host};
  }
  const std::uint64_t offset = window.segment_offset(there.member()) + static_cast<std::uint64_t>(there.offset());
  if (segment.host_pointer() == nullptr) window.peer(there.member()).has_puts = true;
  transfer->add_piece();
  const Status status = post_patiently(window, [&] {
    transfer->op.source_free = {&Transfer::on_ended, &*transfer};
    return segment.post_put(offset, from, transfer->op);
  });
  if (status != Status::in_progress) transfer->end_piece(error_class_of(status));
}

void put_by_messages(Window& window, const TypedBuffer& source, const TargetData& there, WindowRequest* request) {
  const PackedSource packed(source);
  const Begun transfer(window, there.member(), nullptr, request);
  for (std::size_t begin = 0; begin < there.bytes(); begin += piece_bytes(there)) {
    const std::size_t end = std::min(begin + piece_bytes(there), there.bytes());
    ask(window, there.member(),
        {.head = {.kind = AccessKind::put},
         .runs = there.runs(begin, end),
         .data = {packed.data() + begin, end - begin},
         .more_data = {}},
        0);
  }
}

}  // namespace

void put(Window& window, const TypedBuffer& source, const TargetData& there, WindowRequest* request) {
  require_same_bytes(source, there);
  if (there.bytes() == 0) return static_cast<void>(Begun(window, there.member(), nullptr, request));
  if (window.is_dynamic()) return put_by_messages(window, source, there, request);
  if (RemoteSegment* segment = segment_for(window, source, there, RmaDirection::put); segment != nullptr)
    return put_by_segment(window, *segment, source, there, request);
  std::byte* const host = window.host_pointer(there.member());
  if (host == nullptr) return put_by_messages(window, source, there, request);
  const PackedSource packed(source);
  const Begun transfer(window, there.member(), nullptr, request);
  unpack({packed.data(), there.bytes()}, 0, host + there.offset(), there.count(), there.type());
}

// Gets
// -------------------------------------------------------------------------------------------------------------------

namespace {

void get_by_segment(Window& window, RemoteSegment& segment, const TypedBuffer& landing, const TargetData& there,
                    WindowRequest* request) {
  const bool whole = landing.contiguous();
  Begun transfer(window, there.member(), whole ? nullptr : &landing, request);
  const Buffer to = whole ? landing.run() : Buffer(transfer->room(), landing.bytes(), MemoryKind::host);
  const std::uint64_t offset = window.segment_offset(there.member()) + static_cast<std::uint64_t>(there.offset());
  transfer->add_piece();
  const Status status = post_patiently(window, [&] {
    transfer->op.delivered = {&Transfer::on_ended, &*transfer};
    return segment.post_get(offset, to, transfer->op);
  });
  if (status != Status::in_progress) transfer->end_piece(error_class_of(status));
}

void get_by_messages(Window& window, const TypedBuffer& landing, const TargetData& there, WindowRequest* request) {
  const Begun transfer(window, there.member(), &landing, request);
  std::byte* const room = transfer->room();
  for (std::size_t begin = 0; begin < there.bytes(); begin += piece_bytes(there)) {
    const std::size_t end = std::min(begin + piece_bytes(there), there.bytes());
    ask_back(window, *transfer,
             {.head = {.kind = AccessKind::get}, .runs = there.runs(begin, end), .data = {}, .more_data = {}},
             room + begin, end - begin);
  }
}

}  // namespace

void get(Window& window, const TypedBuffer& landing, const TargetData& there, WindowRequest* request) {
  require_same_bytes(landing, there);
  if (there.bytes() == 0) return static_cast<void>(Begun(window, there.member(), nullptr, request));
  if (window.is_dynamic()) return get_by_messages(window, landing, there, request);
  if (RemoteSegment* segment = segment_for(window, landing, there, RmaDirection::get); segment != nullptr)
    return get_by_segment(window, *segment, landing, there, request);
  const std::byte* const host = window.host_pointer(there.member());
  if (host == nullptr) return get_by_messages(window, landing, there, request);
  const Begun transfer(window, there.member(), &landing, request);
  pack(host + there.offset(), there.count(), there.type(), 0, {transfer->room(), there.bytes()});
}

// Accumulates
// -------------------------------------------------------------------------------------------------------------------

namespace {

/// This CPU does it, if all elements are words that it reaches, and no earlier accumulate is on its way in a message,
/// which it would overtake.
std::byte* words_of(Window& window, const Accumulation& how, const TargetData& there, std::span<const WindowRun> runs) {
  const WindowPeer& peer = window.peer(there.member());
  if (peer.has_messages || peer.answers_due != 0) return nullptr;
  std::byte* const host = window.host_pointer(there.member());
  if (host == nullptr) return nullptr;
  const bool all = std::ranges::all_of(runs, [&](const WindowRun& run) { return how.in_words(host + run.offset); });
  return all ? host : nullptr;
}

/// One piece of a combination: by this CPU, or by a message.
void combine_piece(Window& window, const Accumulation& how, const AccessHead& head, const TargetData& there,
                   std::span<const WindowRun> runs, const std::byte* in, Transfer& transfer, std::byte* back) {
  std::size_t bytes = 0;
  for (const WindowRun& run : runs) bytes += run.bytes;
  if (std::byte* const host = words_of(window, how, there, runs); host != nullptr) {
    for (const WindowRun& run : runs) {
      how.apply(host + run.offset, in, back, run.bytes);
      in += run.bytes;
      if (back != nullptr) back += run.bytes;
    }
    return;
  }
  const AskedAccess access{.head = head, .runs = runs, .data = {in, bytes}, .more_data = {}};
  if (back == nullptr) return ask(window, there.member(), access, 0);
  ask_back(window, transfer, access, back, bytes);
}

const Datatype& element_of(const mpi::Op& op, const TargetData& there) {
  const Fault fault = check_reduce(op, there.type(), ReduceUse::accumulate);
  require(fault.error == ErrorClass::success, static_cast<int>(fault.error), "{}", fault.text);
  const Datatype* element = there.type().element();
  require(element != nullptr && element->basic() != nullptr, MPI_ERR_TYPE,
          "the target's datatype {} is made of several predefined types: accumulates take one", there.type().name());
  return *element;
}

}  // namespace

void combine(Window& window, const Combination& how, const TargetData& there, WindowRequest* request) {
  if (how.source != nullptr) require_same_bytes(*how.source, there);
  if (how.landing != nullptr) require_same_bytes(*how.landing, there);
  if (there.bytes() == 0) return static_cast<void>(Begun(window, there.member(), nullptr, request));
  const Datatype& element = element_of(how.op, there);
  const Accumulation accumulation(how.op, element);
  const std::size_t piece = piece_bytes(there) / accumulation.size() * accumulation.size();
  // Without a source the message has bytes that nobody looks at.
  std::unique_ptr<std::byte[]> nothing;
  std::optional<PackedSource> packed;
  if (how.source != nullptr) packed.emplace(*how.source);
  if (how.source == nullptr) nothing = std::make_unique<std::byte[]>(std::min(piece, there.bytes()));
  const AccessHead head{.kind = how.landing != nullptr ? AccessKind::get_accumulate : AccessKind::accumulate,
                        .operation = how.op.number(),
                        .element = element.basic()->number};
  const Begun transfer(window, there.member(), how.landing, request);
  std::byte* const room = how.landing != nullptr ? transfer->room() : nullptr;
  for (std::size_t begin = 0; begin < there.bytes(); begin += piece) {
    const std::size_t end = std::min(begin + piece, there.bytes());
    const std::vector<WindowRun> runs =
        accumulation.has_gaps() ? there.elements(begin, end, accumulation.size()) : there.runs(begin, end);
    const std::byte* const in = packed ? packed->data() + begin : nothing.get();
    combine_piece(window, accumulation, head, there, runs, in, *transfer, room != nullptr ? room + begin : nullptr);
  }
}

void swap_if_equal(Window& window, const TypedBuffer& desired, const TypedBuffer& expected, const TypedBuffer& landing,
                   const TargetData& there) {
  const PackedSource next(desired);
  const PackedSource wanted(expected);
  const std::size_t bytes = there.bytes();
  const Begun transfer(window, there.member(), &landing, nullptr);
  std::byte* const room = transfer->room();
  const std::vector<WindowRun> runs{{there.offset(), bytes}};
  // Which words this CPU may change does not depend on the operation.
  const Accumulation how(*find_op(MPI_REPLACE), there.type());
  if (std::byte* const host = words_of(window, how, there, runs); host != nullptr)
    return compare_and_swap(host + there.offset(), wanted.data(), next.data(), room, bytes);
  ask_back(window, *transfer,
           {.head = {.kind = AccessKind::compare_and_swap},
            .runs = runs,
            .data = {wanted.data(), bytes},
            .more_data = {next.data(), bytes}},
           room, bytes);
}

}  // namespace brant::mpi
