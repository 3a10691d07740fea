#include "ops/coll/device/stream_team.h"

#include <algorithm>
#include <atomic>
#include <new>

#include <fmt/format.h>

#include "base/log.h"
#include "ops/mapping/opening.h"

namespace brant::coll {

StreamTeam::StreamTeam(Engine& engine, const StreamKernels& kernels, const Members& members,
                       std::span<Peer* const> peers, const TeamOptions& options, const StreamBands& bands)
    : engine_(engine),
      kernels_(kernels),
      members_(members),
      peers_(peers.begin(), peers.end()),
      patience_(options.patience),
      way_(options.stream_way),
      bands_(bands),
      mappings_(MappingTable::of(engine)) {}

StreamTeam::~StreamTeam() {
  abort();
  port::Device& device = engine_.device();
  for (void* memory : {static_cast<void*>(boards_[members_.self]), static_cast<void*>(talk_)}) {
    if (memory != nullptr) static_cast<void>(device.free(memory));
  }
}

/// Of device memory that all members' devices reach.
MemoryKind StreamTeam::kind() const noexcept {
  for (Peer* const peer : peers_) {
    if (peer != nullptr) return engine_.peers().mutual_kind(*peer);
  }
  const port::DeviceCapabilities& device = engine_.device().capabilities();
  for (const MemoryKind one : {MemoryKind::cuda, MemoryKind::emulated}) {
    if (device.offers(one)) return one;
  }
  return MemoryKind::detect;
}

const char* StreamTeam::obstacle() const noexcept {
  if (members_.count > kStreamMembersMax) return "the team has more than 8 members";
  const MemoryKind common = kind();
  if (common == MemoryKind::detect || common == MemoryKind::host)
    return "it has no device that maps the others' memory";
  for (Peer* const peer : peers_) {
    if (peer == nullptr) continue;
    if (peer->same_process) return "two members are in one process";
    if (peer->joined) return "a member is in a process that has joined";
    if (peer->link == nullptr) return "two members share no memory (another host)";
    if (engine_.peers().mutual_kind(*peer) != common) return "it has no device that maps the others' memory";
  }
  return nullptr;
}

/// Blocks of its own: see StreamMemory::mailbox_bytes.
std::size_t StreamTeam::board_bytes() const noexcept {
  const std::size_t block = engine_.device().capabilities().export_block_bytes;
  return (static_cast<std::size_t>(StreamBoard::bytes()) + block - 1) / block * block;
}

Status StreamTeam::allocate() noexcept {
  port::Device& device = engine_.device();
  const Result<void*> talk = device.allocate(MemoryKind::pinned, sizeof(StreamTalk));
  if (!talk) return talk.status();
  talk_ = new (*talk) StreamTalk{};
  talk_->patience_ns = static_cast<Word>(patience_.count());
  const Result<void*> board = device.allocate(kind(), board_bytes());
  if (!board) return board.status();
  boards_[members_.self] = static_cast<StreamBoard*>(*board);
  port::Streams& streams = *device.streams();
  const Result<port::Stream*> stream = streams.create_stream(port::StreamPriority::normal);
  if (!stream) return stream.status();
  Status status = streams.fill(*board, std::byte{0}, board_bytes(), *stream);
  if (status == Status::ok) status = streams.synchronize(*stream);
  streams.destroy_stream(*stream);
  return status;
}

StreamOffer StreamTeam::make() noexcept {
  StreamOffer offer;
  offer.status = allocate();
  if (offer.status != Status::ok || members_.count == 1) return offer;
  StreamBoard* const own = boards_[members_.self];
  offer.address = reinterpret_cast<std::uint64_t>(own);
  for (Peer* const peer : peers_) {
    if (peer == nullptr) continue;
    try {
      const Result<port::ExportRecord> record = mappings_->with(*peer).exports.lend(own);
      if (record) offer.record = *record;
      if (!record) offer.status = record.status();
    } catch (const std::bad_alloc&) {
      offer.status = Status::no_memory;
    }
  }
  return offer;
}

Status StreamTeam::map(std::span<const StreamOffer> offers, std::string& why) noexcept {
  try {
    for (unsigned m = 0; m < members_.count; ++m) {
      if (m == members_.self) continue;
      Imports& imports = mappings_->with(*peers_[m]).imports;
      MappedMemory mapped = open_or_wait(engine_, imports, offers[m].record, StreamBoard::bytes(), offers[m].address,
                                         fmt::format("the board of member {}", m));
      if (!mapped.lease.reach_by_device()) {
        why = fmt::format("this device does not reach the board of member {}", m);
        return Status::not_supported;
      }
      boards_[m] = reinterpret_cast<StreamBoard*>(mapped.address);
      leases_[m] = std::move(mapped.lease);
    }
    return Status::ok;
  } catch (const Error& error) {
    why = error.what();
    return error.status();
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

bool StreamTeam::reaches(MemoryKind memory) const noexcept {
  return memory == kind() || memory == MemoryKind::pinned || memory == MemoryKind::cuda_managed;
}

Status StreamTeam::enqueue(const Work& work, const StreamPlan& plan, port::Stream* stream) noexcept {
  StreamCall call{};
  call.kind = static_cast<std::uint8_t>(work.kind);
  call.type = static_cast<std::uint8_t>(work.folding.type);
  call.op = static_cast<std::uint8_t>(work.folding.op);
  call.algorithm = plan.algorithm;
  call.members = static_cast<std::uint8_t>(members_.count);
  call.root = static_cast<std::uint8_t>(work.root);
  call.bytes = work.bytes;
  call.share = plan.share;
  call.piece = plan.piece;
  call.rounds = plan.rounds;
  call.low = work.words.low;
  call.high = work.words.high;
  call.self = static_cast<std::uint8_t>(members_.self);
  call.in = work.in;
  call.out = work.out;
  call.talk = talk_;
  std::copy(boards_.begin(), boards_.end(), call.boards);
  return kernels_.launch(call, plan.blocks, stream);
}

void StreamTeam::abort() noexcept {
  aborted_ = true;
  if (talk_ != nullptr) std::atomic_ref(talk_->abort).store(1, std::memory_order_release);
}

bool StreamTeam::find_fault(Fault& fault) const noexcept {
  const auto why = static_cast<StreamWhy>(std::atomic_ref(talk_->why).load(std::memory_order_acquire));
  if (why == StreamWhy::none) return false;
  const auto read = [](Word& word) { return std::atomic_ref(word).load(std::memory_order_relaxed); };
  fault.why = why == StreamWhy::late ? Fault::Why::late : Fault::Why::other_call;
  fault.on_stream = 1;
  fault.member = static_cast<std::uint32_t>(read(talk_->member));
  fault.call = read(talk_->call);
  fault.last_call = why == StreamWhy::late ? fault.call - 1 : fault.call;
  fault.theirs = {read(talk_->their_high), static_cast<std::uint32_t>(read(talk_->their_low))};
  fault.ours = {read(talk_->our_high), static_cast<std::uint32_t>(read(talk_->our_low))};
  return true;
}

bool StreamTeam::find_wait(std::uint64_t& call, unsigned& member) const noexcept {
  call = std::atomic_ref(talk_->waits_call).load(std::memory_order_relaxed);
  member = static_cast<unsigned>(std::atomic_ref(talk_->waits_member).load(std::memory_order_relaxed));
  return call != 0;
}

}  // namespace brant::coll
