#include "port/wire/ucx/ucx_remote_memory.h"

#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/atomic_word.h"
#include "base/log.h"
#include "port/wire/ucx/ucx_envelope.h"
#include "port/wire/ucx/ucx_status.h"

namespace brant::port::ucx {
namespace {

const UcxSegment* segment_of(const WireSegment* segment) noexcept {
  return reinterpret_cast<const UcxSegment*>(segment);
}
UcxKey* key_of(WireKey* key) noexcept { return reinterpret_cast<UcxKey*>(key); }
const UcxKey* key_of(const WireKey* key) noexcept { return reinterpret_cast<const UcxKey*>(key); }

template <typename T>
std::unique_ptr<T> remove_from(std::vector<std::unique_ptr<T>>& owned, const T* item) noexcept {
  const auto found = std::find_if(owned.begin(), owned.end(), [item](const auto& one) { return one.get() == item; });
  if (found == owned.end()) return nullptr;
  std::unique_ptr<T> taken = std::move(*found);
  *found = std::move(owned.back());
  owned.pop_back();
  return taken;
}

std::uint64_t physical_bytes() noexcept {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes)
                                     : SIZE_MAX;
}

}  // namespace

UcxRemoteMemory::UcxRemoteMemory(UcxWorker& worker, UcxOperations& operations, UcxEndpoints& endpoints)
    : worker_(worker), library_(worker.library()), operations_(operations), endpoints_(endpoints) {
  params_.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  params_.cb.send = &UcxOperations::on_sent;
}

void UcxRemoteMemory::release() noexcept {
  for (const auto& key : keys_) library_.rkey_destroy(key->handle);
  for (const auto& segment : segments_) library_.mem_unmap(worker_.context(), segment->handle);
  keys_.clear();
  segments_.clear();
}

ucp_request_param_t& UcxRemoteMemory::params_of(UcxRequest& request, MemoryKind kind) noexcept {
  params_.request = &request;
  params_.memory_type = memory_type_of(kind);
  return params_;
}

Result<WireSegment*> UcxRemoteMemory::map(const ucp_mem_map_params_t& params, MemoryKind kind) noexcept {
  try {
    segments_.push_back(std::make_unique<UcxSegment>());
    UcxSegment& segment = *segments_.back();
    ucs_status_t status = library_.mem_map(worker_.context(), &params, &segment.handle);
    if (status != UCS_OK) {
      log::error("wire ucx: UCX does not register {} bytes of {} memory: {}", params.length, memory_kind_name(kind),
                 library_.status_string(status));
      segments_.pop_back();
      return status_of(status);
    }
    ucp_mem_attr_t attributes{};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
    status = library_.mem_query(segment.handle, &attributes);
    if (status != UCS_OK) {
      library_.mem_unmap(worker_.context(), segment.handle);
      segments_.pop_back();
      return status_of(status);
    }
    // UCX rounds an allocation up; what the caller asked for is what peers may touch.
    void* base = params.address != nullptr ? params.address : attributes.address;
    segment.memory = Buffer{base, params.length, kind};
    return reinterpret_cast<WireSegment*>(&segment);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

Result<WireSegment*> UcxRemoteMemory::register_memory(Buffer memory) noexcept {
  if (memory.data == nullptr || memory.bytes == 0) return Status::invalid_argument;
  if (!operations_.takes(memory.kind)) return Status::wrong_kind;
  ucp_mem_map_params_t params{};
  params.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  params.address = memory.data;
  params.length = memory.bytes;
  params.memory_type = memory_type_of(memory.kind);
  return map(params, memory.kind);
}

Result<WireSegment*> UcxRemoteMemory::allocate_shared(std::size_t bytes) noexcept {
  if (bytes == 0) return Status::invalid_argument;
  // UCX goes on where the allocation cannot succeed, and the system then kills the process.
  if (bytes > physical_bytes()) return Status::no_memory;
  ucp_mem_map_params_t params{};
  params.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  params.length = bytes;
  params.flags = UCP_MEM_MAP_ALLOCATE;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  return map(params, MemoryKind::host);
}

Buffer UcxRemoteMemory::memory_of(const WireSegment* segment) const noexcept {
  return segment != nullptr ? segment_of(segment)->memory : Buffer{};
}

Result<std::vector<std::byte>> UcxRemoteMemory::pack_key(const WireSegment* segment) noexcept {
  if (segment == nullptr) return Status::invalid_argument;
  const UcxSegment& mine = *segment_of(segment);
  void* packed = nullptr;
  std::size_t bytes = 0;
  const ucs_status_t status = library_.rkey_pack(worker_.context(), mine.handle, &packed, &bytes);
  if (status != UCS_OK) return status_of(status);
  Envelope envelope;
  envelope.kind = EnvelopeKind::key;
  envelope.version_code = library_.version_code;
  envelope.detail = static_cast<std::uint32_t>(mine.memory.kind);
  envelope.owner = worker_.owner();
  envelope.base = reinterpret_cast<std::uintptr_t>(mine.memory.data);
  envelope.bytes = mine.memory.bytes;
  try {
    std::vector<std::byte> whole = pack_envelope(envelope, {static_cast<const std::byte*>(packed), bytes});
    library_.rkey_buffer_release(packed);
    return whole;
  } catch (const std::bad_alloc&) {
    library_.rkey_buffer_release(packed);
    return Status::no_memory;
  }
}

void UcxRemoteMemory::release_segment(WireSegment* segment) noexcept {
  if (const auto mine = remove_from(segments_, segment_of(segment)))
    library_.mem_unmap(worker_.context(), mine->handle);
}

Result<WireKey*> UcxRemoteMemory::import_key(WireEndpoint* endpoint, std::span<const std::byte> packed) noexcept {
  Status why = Status::ok;
  UcxEndpoint* to = endpoints_.checked(endpoint, why);
  if (to == nullptr) return why;
  const auto envelope = open_envelope(packed, EnvelopeKind::key);
  if (!envelope || envelope->owner != to->owner) {
    log::error("wire ucx: import_key: {} bytes that are no key of this peer, or a damaged one", packed.size());
    return Status::invalid_argument;
  }
  try {
    const std::vector<std::byte> body(packed.begin() + sizeof(Envelope), packed.end());
    keys_.push_back(std::make_unique<UcxKey>());
    UcxKey& key = *keys_.back();
    const ucs_status_t status = library_.ep_rkey_unpack(to->handle, body.data(), &key.handle);
    if (status != UCS_OK) {
      keys_.pop_back();
      return status_of(status);
    }
    key.endpoint = to;
    key.base = envelope->base;
    key.bytes = envelope->bytes;
    key.kind = static_cast<MemoryKind>(envelope->detail);
    void* local = nullptr;
    if (host_accessible(key.kind) && library_.rkey_ptr(key.handle, key.base, &local) == UCS_OK) {
      key.mapped = static_cast<std::byte*>(local);
    }
    return reinterpret_cast<WireKey*>(&key);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

void UcxRemoteMemory::release_key(WireKey* key) noexcept {
  if (const auto mine = remove_from(keys_, key_of(key))) library_.rkey_destroy(mine->handle);
}

Result<void*> UcxRemoteMemory::map_remote(WireKey* key, std::uint64_t remote_address) noexcept {
  if (key == nullptr) return Status::invalid_argument;
  const UcxKey& mine = *key_of(key);
  if (remote_address < mine.base || remote_address - mine.base >= mine.bytes) return Status::invalid_argument;
  // Null: memory that was not made by allocate_shared, or a peer on another host.
  if (mine.mapped == nullptr) return Status::not_supported;
  return static_cast<void*>(mine.mapped + (remote_address - mine.base));
}

UcxEndpoint* UcxRemoteMemory::checked(WireEndpoint* endpoint, const WireKey* key, std::uint64_t remote_address,
                                      std::size_t bytes, Status& why) const noexcept {
  UcxEndpoint* to = endpoints_.checked(endpoint, why);
  if (to == nullptr) return nullptr;
  const UcxKey* mine = key_of(key);
  const bool inside = mine != nullptr && mine->endpoint == to && remote_address >= mine->base &&
                      remote_address - mine->base <= mine->bytes &&
                      bytes <= mine->bytes - (remote_address - mine->base);
  if (inside) return to;
  why = Status::invalid_argument;
  return nullptr;
}

Status UcxRemoteMemory::put(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, ConstBuffer source,
                            WireOp& op) noexcept {
  Status why = operations_.check(source.data, source.bytes, source.kind, op);
  if (why != Status::ok) return why;
  UcxEndpoint* to = checked(endpoint, key, remote_address, source.bytes, why);
  if (to == nullptr) return why;
  const bool by_owner =
      source.bytes <= UcxPieces::kPutBytesMost && is_by_owner(*to, *key_of(key), source.bytes, source.kind);
  UcxRequest* request = operations_.start(by_owner ? RequestKind::put : RequestKind::send, to, op);
  if (request == nullptr) return Status::limit_reached;
  op.bytes = source.bytes;
  op.visible = false;
  if (by_owner) return pieces_.put(*request, remote_address, source);
  return operations_.posted(library_.put_nbx(to->handle, source.data, source.bytes, remote_address, key_of(key)->handle,
                                             &params_of(*request, source.kind)),
                            *request, op);
}

Status UcxRemoteMemory::get(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, Buffer landing,
                            WireOp& op) noexcept {
  Status why = operations_.check(landing.data, landing.bytes, landing.kind, op);
  if (why != Status::ok) return why;
  UcxEndpoint* to = checked(endpoint, key, remote_address, landing.bytes, why);
  if (to == nullptr) return why;
  const bool by_owner = is_by_owner(*to, *key_of(key), landing.bytes, landing.kind);
  UcxRequest* request = operations_.start(by_owner ? RequestKind::get : RequestKind::send, to, op);
  if (request == nullptr) return Status::limit_reached;
  op.bytes = landing.bytes;
  if (by_owner) return pieces_.get(*request, remote_address, landing);
  return operations_.posted(library_.get_nbx(to->handle, landing.data, landing.bytes, remote_address,
                                             key_of(key)->handle, &params_of(*request, landing.kind)),
                            *request, op);
}

Status UcxRemoteMemory::atomic(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, const Atomic& what,
                               std::uint64_t* before, WireOp& op) noexcept {
  if (!what.exists() || before == nullptr || op.request != nullptr) return Status::invalid_argument;
  const std::size_t bytes = what.bytes();
  if (remote_address % bytes != 0) return Status::invalid_argument;
  Status why = Status::ok;
  UcxEndpoint* to = checked(endpoint, key, remote_address, bytes, why);
  if (to == nullptr) return why;
  if (!host_accessible(key_of(key)->kind)) return Status::not_supported;
  op.bytes = bytes;
  if (key_of(key)->mapped != nullptr) {
    *before = perform_atomic(key_of(key)->mapped + (remote_address - key_of(key)->base), what);
    return op.status = Status::ok;
  }
  UcxRequest* request = operations_.start(RequestKind::atomic, to, op);
  if (request == nullptr) return Status::limit_reached;
  request->result = before;
  return atomics_.send(*request, remote_address, what);
}

Status UcxRemoteMemory::flush(WireEndpoint* endpoint, WireOp& op) noexcept {
  if (op.request != nullptr) return Status::invalid_argument;
  Status why = Status::ok;
  UcxEndpoint* to = endpoints_.checked(endpoint, why);
  if (to == nullptr) return why;
  UcxRequest* request = operations_.start(RequestKind::flush, to, op);
  if (request == nullptr) return Status::limit_reached;
  request->sequence = ++to->sequence;
  op.bytes = 0;
  const ucs_status_ptr_t answer = library_.ep_flush_nbx(to->handle, &params_of(*request, MemoryKind::host));
  // UCX knows nothing of what owners do for us: a flush that is over for UCX may still have to wait for their replies.
  const bool over = answer == nullptr || (!UCS_PTR_IS_ERR(answer) && request->state == RequestState::ended &&
                                          request->ended_status == Status::ok);
  if (over && UcxOperations::waits_for_owner(*request)) return operations_.wait_without_ucx(*request);
  return operations_.posted(answer, *request, op);
}

std::byte* UcxRemoteMemory::local_bytes(std::uint64_t address, std::size_t bytes) const noexcept {
  for (const auto& segment : segments_) {
    const std::uint64_t base = reinterpret_cast<std::uintptr_t>(segment->memory.data);
    const bool inside =
        address >= base && segment->memory.bytes >= bytes && address - base <= segment->memory.bytes - bytes;
    if (inside && host_accessible(segment->memory.kind)) return reinterpret_cast<std::byte*>(address);
  }
  return nullptr;
}

void* UcxRemoteMemory::local_word(std::uint64_t address, std::size_t bytes) const noexcept {
  return address % bytes == 0 ? local_bytes(address, bytes) : nullptr;
}

}  // namespace brant::port::ucx
