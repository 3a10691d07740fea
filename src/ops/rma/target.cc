#include "ops/rma/target.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "ops/rma/table.h"

namespace brant {
namespace {

/// A run may have been made that begins or ends beyond all addresses.
bool is_sound(const Shape& shape) noexcept {
  constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max();
  return shape.lowest() <= shape.end() && shape.end() <= kMost && shape.bytes() <= kMost;
}

}  // namespace

RmaTarget::RmaTarget(RmaTable& table, Rank rank, const TicketContent& content)
    : table_(table),
      engine_(table.engine()),
      peer_(engine_.peers().connect(rank)),
      segment_(content.id),
      address_(content.address),
      bytes_(static_cast<std::size_t>(content.bytes)),
      kind_(content.kind),
      way_{peer_} {
  if (content.rank != peer_.rank_in_its_job || content.pid != peer_.record.pid) {
    throw Error(
        Status::invalid_argument,
        fmt::format("the ticket is of rank {} (pid {}), not of rank {} (pid {}): pass the rank that exposed the "
                    "segment, of this job or joined",
                    content.rank, content.pid, peer_.rank_in_its_job, peer_.record.pid));
  }
  if (peer_.same_process) {
    own_ = table.find(content.id);
    if (own_ == nullptr)
      throw Error(Status::not_found, "the segment of this process is closed: keep it open while it is used");
    const bool same = content.address == reinterpret_cast<std::uintptr_t>(own_->memory.data) &&
                      content.bytes == own_->memory.bytes && content.kind == own_->memory.kind;
    if (!same)
      throw Error(Status::invalid_argument, "the ticket says other memory than its segment of this process has");
    mapped_ = reinterpret_cast<std::byte*>(own_->memory.data);
  } else if (content.exported && peer_.same_host) {
    map(content);
  }
  // Where freed memory is in the way, the network library would end this process.
  if (!is_in_the_way_ && engine_.wire().remote_memory() != nullptr)
    packed_key_.assign(content.key.begin(), content.key.end());
  if (mapped_ != nullptr || file_ || reach_over_network()) return;
  if (is_in_the_way_) {
    throw Error(Status::device_failed,
                fmt::format("{} bytes of {} memory of rank {} cannot be mapped: memory that was freed there is mapped "
                            "here and in use still, or its owner does not answer. Close what uses it, call "
                            "Runtime::tidy, and open the ticket again",
                            bytes_, memory_kind_name(kind_), rank.value));
  }
  throw Error(
      peer_.lost ? Status::peer_lost : Status::not_supported,
      fmt::format(
          "{} bytes of {} memory of rank {} cannot be reached: they cannot be mapped here ({}), and the network "
          "({}) does not take them. Use memory of Runtime::allocate on one host, or a kind that the network "
          "takes (brant info)",
          bytes_, memory_kind_name(kind_), rank.value,
          !peer_.same_host   ? "another host"
          : content.exported ? "see the log"
                             : "not exported",
          engine_.wire().capabilities().version));
}

RmaTarget::~RmaTarget() {
  engine_.pollers().detach(*this);
  if (way_.key != nullptr) engine_.wire().remote_memory()->release_key(way_.key);
}

Mover& RmaTarget::mover() noexcept { return table_.mover(); }

void RmaTarget::map(const TicketContent& content) {
  Imports& imports = table_.mappings().with(peer_).imports;
  Result<MappedMemory> memory = imports.open(content.exports, bytes_, address_);
  for (bool heard = true; memory.status() == Status::in_progress && heard;) {
    if (imports.awaits(content.exports.buffer_id)) {
      file_ = content.exports;
      return;
    }
    heard = !imports.has_heard(content.exports.buffer_id) && hear_of_freed(imports, content.exports.buffer_id);
    engine_.deferrals().run_if_safe();
    memory = imports.open(content.exports, bytes_, address_);
  }
  is_in_the_way_ = !memory && imports.is_hindered(content.exports.buffer_id);
  note_mapped(std::move(memory));
}

void RmaTarget::note_mapped(Result<MappedMemory> memory) noexcept {
  if (memory) {
    mapped_ = memory->address;
    lease_ = std::move(memory->lease);
    return;
  }
  log::info("a segment of {} bytes of {} memory of rank {} cannot be mapped: {}; it is reached over the network",
            bytes_, memory_kind_name(kind_), peer_.rank.value, status_text(memory.status()));
}

void RmaTarget::look_for_file() noexcept {
  if (!file_) return;
  Imports& imports = table_.mappings().with(peer_).imports;
  if (imports.awaits(file_->buffer_id)) return;
  Result<MappedMemory> memory = imports.open(*file_, bytes_, address_);
  if (memory.status() == Status::in_progress) return;
  file_.reset();
  note_mapped(std::move(memory));
}

/// Waits for the owner's answer; false: none came.
bool RmaTarget::hear_of_freed(Imports& imports, std::uint64_t buffer_id) noexcept {
  struct Heard {
    Imports& imports;
    std::uint64_t buffer_id;
  } heard{imports, buffer_id};
  const auto done = [](void* context) noexcept {
    const auto& wanted = *static_cast<Heard*>(context);
    return wanted.imports.has_heard(wanted.buffer_id);
  };
  return engine_.waiting().wait_quietly(done, &heard, kPatience);
}

/// The network may be the way. Its library maps device memory as well, and keeps it: so it is asked when it is needed.
bool RmaTarget::reach_over_network() noexcept {
  if (way_.key != nullptr || packed_key_.empty()) return way_.key != nullptr;
  const std::vector<std::byte> packed = std::exchange(packed_key_, {});
  const Result<port::WireKey*> key = engine_.wire().remote_memory()->import_key(peer_.endpoint, packed);
  if (key) {
    way_.key = *key;
    return true;
  }
  log::info("the network does not take the key of a segment of {} bytes of {} memory of rank {}: {}", bytes_,
            memory_kind_name(kind_), peer_.rank.value, status_text(key.status()));
  return false;
}

PathQuery RmaTarget::query(MemoryKind local, std::size_t bytes, RmaDirection direction, Path forced) noexcept {
  const bool device_here = !host_accessible(local), device_there = !host_accessible(kind_);
  PathQuery query;
  query.one_sided = true;
  query.kind = direction == RmaDirection::put ? local : kind_;
  query.other_kind = direction == RmaDirection::put ? kind_ : local;
  query.bytes = bytes;
  query.locality = peer_.same_process ? Locality::same_process
                   : peer_.same_host  ? Locality::same_host
                                      : Locality::other_host;
  query.shm_open = mapped_ != nullptr && !device_there;
  const bool mapped = mapped_ != nullptr || file_.has_value();
  const bool reached = device_there || (device_here && is_reached_by_device());
  query.peer_maps = mapped && (reached || peer_.same_process);
  query.pinned_here = device_there ? local == MemoryKind::pinned : reached;
  const bool by_courier =
      query.peer_maps && (device_here || device_there) && (device_here == device_there || query.pinned_here);
  if (by_courier) query.courier_bytes = mover().courier_bytes();
  if (device_here != device_there) {
    const bool reads_host = (direction == RmaDirection::put) == device_there;
    query.courier_bytes = std::min(query.courier_bytes, reads_host ? Mover::kCourierFromHost : Mover::kCourierToHost);
  }
  query.wire_takes_kind = (way_.key != nullptr || !packed_key_.empty()) && engine_.wire().capabilities().takes(local);
  query.forced = forced != Path::automatic ? forced : engine_.options().path;
  return query;
}

PathChoice RmaTarget::choose(MemoryKind local, std::size_t bytes, RmaDirection direction, Path forced) noexcept {
  PathQuery asked = query(local, bytes, direction, forced);
  const PathChoice choice = choose_path(asked, engine_.path_order());
  if (choice.path != Path::ucx || choice.status != Status::ok || reach_over_network()) return choice;
  asked.wire_takes_kind = false;
  return choose_path(asked, engine_.path_order());
}

/// Host memory over there. What another process pinned is not pinned here: its mapping is, once it is registered.
bool RmaTarget::is_reached_by_device() noexcept {
  return peer_.same_process ? kind_ == MemoryKind::pinned : lease_.reach_by_device();
}

void* RmaTarget::device_pointer(std::size_t lock_at_most) noexcept {
  if (mapped_ == nullptr || lease_.bytes_to_lock() > lock_at_most) return nullptr;
  return !host_accessible(kind_) || is_reached_by_device() ? mapped_ : nullptr;
}

MoveEnd RmaTarget::place(std::uint64_t offset, Path path) const noexcept {
  const bool over_network = path == Path::ucx || mapped_ == nullptr;
  if (over_network) return MoveEnd::over_network(address_ + offset, kind_);
  // Which reaches what it is pinned for.
  const bool by_device = host_accessible(kind_) && (path == Path::copy_engine || path == Path::courier);
  return {mapped_ + offset, by_device ? MemoryKind::pinned : kind_};
}

/// Both ends must lie inside what they are of.
Status RmaTarget::check(RmaDirection direction, std::uint64_t offset, Buffer local,
                        const TransferShapes* shapes) const noexcept {
  const bool is_put = direction == RmaDirection::put;
  std::uint64_t there = local.bytes;
  if (shapes != nullptr) {
    const Shape& here = is_put ? shapes->from : shapes->to;
    there = (is_put ? shapes->to : shapes->from).end();
    if (shapes->from.bytes() == 0 && shapes->to.bytes() == 0) return Status::ok;
    const bool sound = is_sound(shapes->from) && is_sound(shapes->to) && shapes->from.bytes() == shapes->to.bytes();
    if (!sound || here.end() > local.bytes) {
      log::error(
          "{} a segment of rank {}: the shapes have {} and {} bytes, and the local one ends at {} of a buffer of {}: "
          "they must be of one size, and lie inside",
          is_put ? "put into" : "get from", peer_.rank.value, shapes->from.bytes(), shapes->to.bytes(), here.end(),
          local.bytes);
      return Status::invalid_argument;
    }
  }
  if (local.data == nullptr && local.bytes != 0) return Status::invalid_argument;
  return check_place(is_put ? "put" : "get", offset, there);
}

Status RmaTarget::check_place(const char* what, std::uint64_t offset, std::uint64_t bytes) const noexcept {
  if (offset > bytes_ || bytes > bytes_ - offset) {
    log::error("{} of {} bytes at offset {} of a segment of {} bytes of rank {}: they must lie inside it", what, bytes,
               offset, bytes_, peer_.rank.value);
    return Status::invalid_argument;
  }
  if (own_ != nullptr && !own_->open) return Status::not_found;
  return peer_.lost ? Status::peer_lost : Status::ok;
}

/// Runs alone are what paths are measured with; shapes take the one that can carry them.
Status RmaTarget::choose_for_shapes(RmaDirection direction, Buffer local, const RmaOptions& options,
                                    Path& path) noexcept {
  const TransferShapes& shapes = *options.shapes;
  const bool on_host = host_accessible(local.kind) && host_accessible(kind_);
  const bool by_device_here = !host_accessible(local.kind) || local.kind == MemoryKind::pinned;
  const bool by_device_there = !host_accessible(kind_) || (!host_accessible(local.kind) && is_reached_by_device());
  if (mapped_ == nullptr) {
    path = Path::staged;
  } else if (on_host) {
    path = Path::shm;
  } else {
    path = by_device_here && by_device_there ? Path::copy_engine : Path::staged;
  }
  if (mapped_ == nullptr && !reach_over_network()) {
    log::error("{} a segment of rank {}: its {} memory is not mapped here, and the network does not take it",
               direction == RmaDirection::put ? "put into" : "get from", peer_.rank.value, memory_kind_name(kind_));
    return Status::not_supported;
  }
  const Path forced = options.path != Path::automatic ? options.path : engine_.options().path;
  if (forced == Path::automatic || forced == path) return Status::ok;
  log::error("{} a segment of rank {}: {} bytes in such shapes go by path {}, and not by {}. Use BRANT_PATH=auto",
             direction == RmaDirection::put ? "put into" : "get from", peer_.rank.value, shapes.from.bytes(),
             path_name(path), path_name(forced));
  return Status::not_supported;
}

Status RmaTarget::post(RmaDirection direction, std::uint64_t offset, Buffer local, Op& op,
                       const RmaOptions& options) noexcept {
  op.result = {Status::ok, 0};
  if (options.word_behind.was_set != nullptr) *options.word_behind.was_set = false;
  const TransferShapes* const shapes = options.shapes;
  const std::size_t bytes = shapes == nullptr ? local.bytes : shapes->from.bytes();
  Path path = Path::automatic;
  Status status = check(direction, offset, local, shapes);
  if (status == Status::ok && bytes == 0 && shapes != nullptr) return status;
  if (status == Status::ok) status = engine_.memory_kinds().resolve(local.data, local.bytes, local.kind);
  if (file_) [[unlikely]] {
    look_for_file();
    if (status == Status::ok && bytes != 0 && file_) return await_file(direction, offset, local, bytes, op, options);
  }
  if (status == Status::ok) status = choose_for(direction, local, bytes, options, path);
  if (status != Status::ok || bytes == 0) return status;
  if (path == Path::shm && shapes == nullptr && bytes <= CpuCopier::kTurnBytes && engine_.trace() == nullptr) {
    if (local.kind == MemoryKind::host && options.path == Path::automatic)
      by_cpu_[direction == RmaDirection::put ? 0 : 1] = bytes;
    copy_at_once(direction, offset, local.data, bytes);
    op.result.bytes = bytes;
    return Status::ok;
  }
  RmaTransfer* transfer = take_transfer(direction, local, place(offset, path), op);
  if (transfer == nullptr) return table_.transfers().refusal();
  transfer->path = path;
  transfer->bytes = bytes;
  transfer->shapes = shapes;
  if (options.word_behind.word != nullptr && transfer->is_put) {
    transfer->signal = {options.word_behind.word, options.word_behind.value};
    transfer->word_was_set = options.word_behind.was_set;
  }
  status = mover().start(*transfer);
  if (status == Status::in_progress) {
    transfer->own(engine_.completions(), op);
    peer_.add_outstanding(*transfer);
    if (transfer->source_is_free) engine_.completions().report(*transfer, Moment::source_free, {Status::ok, bytes});
    return status;
  }
  if (status == Status::ok) {
    op.result.bytes = bytes;
    count(direction, transfer->path, bytes);
  }
  release(*transfer);
  return status == Status::ok || status == Status::limit_reached ? status : final_status(status);
}

bool RmaTarget::post_at_once(RmaDirection direction, std::uint64_t offset, const void* local, std::size_t bytes,
                             MemoryKind kind, Op& op, const RmaOptions& options) noexcept {
  const bool is_put = direction == RmaDirection::put;
  const bool is_known = bytes != 0 && bytes == by_cpu_[is_put ? 0 : 1] && kind == MemoryKind::host &&
                        options.path == Path::automatic && options.shapes == nullptr &&
                        options.word_behind.was_set == nullptr;
  const bool is_inside = offset <= bytes_ && bytes <= bytes_ - offset;
  if (!is_known || !is_inside || peer_.lost || (own_ != nullptr && !own_->open)) return false;
  if (engine_.memory_kinds().resolve(local, bytes, kind) != Status::ok) return false;
  copy_at_once(direction, offset, const_cast<void*>(local), bytes);
  op.result = {Status::ok, bytes};
  return true;
}

/// Logs why a forced path is refused.
Status RmaTarget::choose_for(RmaDirection direction, Buffer local, std::size_t bytes, const RmaOptions& options,
                             Path& path) noexcept {
  const TransferShapes* const shapes = options.shapes;
  const bool in_runs = shapes == nullptr ||
                       (shapes->from.form() == Shape::Form::contiguous && shapes->to.form() == Shape::Form::contiguous);
  if (!in_runs) return choose_for_shapes(direction, local, options, path);
  const PathChoice choice = choose(local.kind, bytes, direction, options.path);
  path = choice.path;
  if (choice.status != Status::ok) {
    const bool put = direction == RmaDirection::put;
    log::error(
        "{} a segment of rank {}: path {} cannot carry {} bytes from {} to {} memory: {}. Use BRANT_PATH=auto or "
        "another path",
        put ? "put into" : "get from", peer_.rank.value, path_name(choice.path), bytes,
        memory_kind_name(put ? local.kind : kind_), memory_kind_name(put ? kind_ : local.kind), choice.reason);
  }
  return choice.status;
}

Status RmaTarget::await_file(RmaDirection direction, std::uint64_t offset, Buffer local, std::size_t bytes, Op& op,
                             const RmaOptions& options) noexcept {
  RmaTransfer* transfer = take_transfer(direction, local, MoveEnd::over_network(address_ + offset, kind_), op);
  if (transfer == nullptr) return table_.transfers().refusal();
  transfer->path = options.path;
  transfer->bytes = bytes;
  transfer->shapes = options.shapes;
  transfer->own(engine_.completions(), op);
  peer_.add_outstanding(*transfer);
  transfer->waits_to_begin = true;
  awaiting_.push_back(*transfer);
  engine_.pollers().attach(*this);
  return Status::in_progress;
}

bool RmaTarget::stop_awaiting(RmaTransfer& transfer) noexcept {
  if (!std::exchange(transfer.waits_to_begin, false)) return false;
  awaiting_.remove(transfer);
  return true;
}

unsigned RmaTarget::poll() noexcept {
  look_for_file();
  if (file_) return 0;
  engine_.pollers().detach(*this);
  // With the last one the target may go, so nothing here is touched behind it.
  IntrusiveList<Move, &Move::hook> due;
  while (Move* move = awaiting_.pop_front()) due.push_back(*move);
  unsigned begun = table_.atomics().begin_late(*this);
  for (; Move* move = due.pop_front(); ++begun) begin_late(static_cast<RmaTransfer&>(*move));
  return begun;
}

void RmaTarget::begin_late(RmaTransfer& transfer) noexcept {
  transfer.waits_to_begin = false;
  const RmaDirection direction = transfer.is_put ? RmaDirection::put : RmaDirection::get;
  MoveEnd& there = transfer.is_put ? transfer.to : transfer.from;
  const MoveEnd& here = transfer.is_put ? transfer.from : transfer.to;
  const MoveEnd unreached = there;
  RmaOptions options;
  options.path = transfer.path;
  options.shapes = transfer.shapes;
  Status status = mapped_ != nullptr || reach_over_network() ? Status::ok : Status::not_supported;
  if (status == Status::ok)
    status =
        choose_for(direction, Buffer{here.memory(), transfer.bytes, here.kind}, transfer.bytes, options, transfer.path);
  if (status == Status::ok) {
    there = place(there.address - address_, transfer.path);
    status = mover().start(transfer);
  }
  if (status == Status::limit_reached) {
    there = unreached;
    transfer.path = options.path;
    transfer.waits_to_begin = true;
    awaiting_.push_back(transfer);
    return engine_.pollers().attach(*this);
  }
  if (status != Status::in_progress) return ended(transfer, status);
  if (transfer.source_is_free)
    engine_.completions().report(transfer, Moment::source_free, {Status::ok, transfer.bytes});
}

void RmaTarget::count_outcome(Status status) noexcept { engine_.counters().count_outcome(status); }

RmaTransfer* RmaTarget::take_transfer(RmaDirection direction, Buffer local, const MoveEnd& there,
                                      const Op& op) noexcept {
  RmaTransfer* transfer = table_.transfers().take(*this, kEvents);
  if (transfer == nullptr) return nullptr;
  ++live_;
  transfer->posted_at = engine_.trace() != nullptr ? Clock::now() : engine_.clock().recently();
  transfer->lost = &RmaTarget::on_lost;
  transfer->cancel = &RmaTarget::on_cancel;
  const MoveEnd here(local.data, local.kind);
  transfer->is_put = direction == RmaDirection::put;
  transfer->tells_visible = transfer->is_put && op.delivered.fire != nullptr;
  transfer->from = transfer->is_put ? here : there;
  transfer->to = transfer->is_put ? there : here;
  transfer->way = &way_;
  return transfer;
}

/// What is done within the post needs no record.
void RmaTarget::copy_at_once(RmaDirection direction, std::uint64_t offset, void* local, std::size_t bytes) noexcept {
  const bool is_put = direction == RmaDirection::put;
  CpuCopier::copy(is_put ? mapped_ + offset : local, is_put ? local : mapped_ + offset, bytes);
  count(direction, Path::shm, bytes);
}

void RmaTarget::count(RmaDirection direction, Path path, std::size_t bytes) noexcept {
  const bool is_put = direction == RmaDirection::put;
  PathTally& tally = engine_.counters().path(path);
  (is_put ? tally.sends : tally.receives).add();
  (is_put ? tally.bytes_sent : tally.bytes_received).add(bytes);
}

void RmaTarget::trace(const RmaTransfer& transfer) noexcept {
  engine_.trace()->add_transfer(transfer.is_put ? "put" : "get", transfer.path, peer_.rank.value, transfer.posted_at,
                                transfer.bytes);
}

void RmaTarget::release(RmaTransfer& transfer) noexcept {
  if (engine_.trace() != nullptr) trace(transfer);
  peer_.remove_outstanding(transfer);
  table_.transfers().give_back(&transfer);
  let_go();
}

void RmaTarget::let_go() noexcept {
  if (--live_ == 0 && closed_) table_.drop(*this);
}

const MoveEvents RmaTarget::kEvents{[](Move& move, Status status) noexcept {
                                      auto& transfer = static_cast<RmaTransfer&>(move);
                                      transfer.target.ended(transfer, status);
                                    },
                                    [](Move& move) noexcept {
                                      auto& transfer = static_cast<RmaTransfer&>(move);
                                      transfer.target.engine_.completions().report(transfer, Moment::source_free,
                                                                                   {Status::ok, transfer.bytes});
                                    }};

void RmaTarget::ended(RmaTransfer& transfer, Status status) noexcept {
  status = final_status(status);
  if (status == Status::ok) {
    count(transfer.is_put ? RmaDirection::put : RmaDirection::get, transfer.path, transfer.bytes);
  }
  if (transfer.word_was_set != nullptr) *transfer.word_was_set = transfer.signaled && status == Status::ok;
  engine_.completions().finish(transfer, {status, status == Status::ok ? transfer.bytes : 0});
  release(transfer);
}

Status RmaTarget::final_status(Status status) noexcept {
  if (status == Status::ok) return status;
  if (peer_.lost) return Status::peer_lost;
  if (status == Status::io_error || status == Status::peer_lost) {
    // The network may notice a death before the process table shows it.
    engine_.peers().suspect(peer_);
    return Status::peer_lost;
  }
  return status;
}

void RmaTarget::on_lost(PeerOp& op) noexcept {
  auto& transfer = static_cast<RmaTransfer&>(op);
  RmaTarget& self = transfer.target;
  if (self.stop_awaiting(transfer)) return self.ended(transfer, Status::peer_lost);
  // The network ends its own when it disconnects; what a device copies ends by itself.
  if (self.mover().withdraw(transfer)) self.ended(transfer, Status::peer_lost);
}

/// Only a get that nobody waits for any more is stopped, if the CPU does it: its landing may be gone.
void RmaTarget::on_cancel(OpOwner& owner) noexcept {
  auto& transfer = static_cast<RmaTransfer&>(owner);
  RmaTarget& self = transfer.target;
  if (!transfer.observed() && self.stop_awaiting(transfer)) return self.release(transfer);
  if (transfer.observed() || transfer.is_put || !self.mover().withdraw(transfer)) return;
  self.release(transfer);
}

void RmaTarget::close() noexcept {
  closed_ = true;
  if (live_ == 0) table_.drop(*this);
}

}  // namespace brant
