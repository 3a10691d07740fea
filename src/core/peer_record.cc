#include "core/peer_record.h"

#include <unistd.h>

#include <limits>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/env.h"
#include "base/place.h"

namespace brant {
namespace {

constexpr std::uint32_t kRecordMagic = 0x62726e04;  // "brn", layout 4

MemoryKind mappable_kind(const port::DeviceCapabilities& device) noexcept {
  if ((!device.exports && !device.file_exports) || !device.streams) return MemoryKind::detect;
  if (device.offers(MemoryKind::cuda)) return MemoryKind::cuda;
  return device.offers(MemoryKind::emulated) ? MemoryKind::emulated : MemoryKind::detect;
}

}  // namespace

void publish(port::Boot& boot, const char* key, std::span<const std::byte> value) {
  const Status status = boot.put(key, value);
  if (status == Status::ok) return;
  throw Error(status, fmt::format("rank {}: '{}' could not be published to the other ranks: {}. {}", boot.job().rank,
                                  key, status_text(status), boot.last_error()));
}

PeerRecord make_peer_record(const port::Adapters& adapters) {
  PeerRecord record;
  record.wire_version = adapters.wire->capabilities().version;
  const Place place = own_place();
  record.host_id = place.host;
  record.pid_namespace = place.pid_namespace;
  record.device_id = adapters.device->capabilities().offers(MemoryKind::cuda) ? adapters.device->capabilities().id : "";
  record.pid = ::getpid();
  const auto address = adapters.wire->address();
  record.wire_address.assign(address.begin(), address.end());
  record.mappable_kind = mappable_kind(adapters.device->capabilities());
  if (adapters.links) {
    const auto link = adapters.links->address();
    record.link_address.assign(link.begin(), link.end());
  }
  return record;
}

std::vector<std::byte> pack(const PeerRecord& record) {
  ByteWriter writer;
  writer.number(kRecordMagic);
  writer.text(record.wire_version);
  writer.text(record.host_id);
  writer.text(record.pid_namespace);
  writer.text(record.device_id);
  writer.number(static_cast<std::int64_t>(record.pid));
  writer.run(record.wire_address);
  writer.number(static_cast<std::uint32_t>(record.mappable_kind));
  writer.run(record.link_address);
  writer.run(record.lease_address);
  return writer.bytes();
}

namespace {

/// What processes of a host may map of each other.
bool can_be_mappable(std::uint32_t kind) noexcept {
  return kind == static_cast<std::uint32_t>(MemoryKind::detect) ||
         kind == static_cast<std::uint32_t>(MemoryKind::cuda) ||
         kind == static_cast<std::uint32_t>(MemoryKind::emulated);
}

bool is_pid(std::int64_t pid) noexcept { return pid > 0 && pid <= std::numeric_limits<pid_t>::max(); }

}  // namespace

PeerRecord unpack_peer_record(int rank, std::span<const std::byte> packed) {
  ByteReader reader(packed);
  const auto magic = reader.number<std::uint32_t>();
  PeerRecord record;
  record.wire_version = reader.text();
  record.host_id = reader.text();
  record.pid_namespace = reader.text();
  record.device_id = reader.text();
  const auto pid = reader.number<std::int64_t>();
  record.pid = static_cast<pid_t>(pid);
  const auto address = reader.run();
  record.wire_address.assign(address.begin(), address.end());
  const auto mappable = reader.number<std::uint32_t>();
  record.mappable_kind = static_cast<MemoryKind>(mappable);
  const auto link = reader.run();
  record.link_address.assign(link.begin(), link.end());
  const auto lease = reader.run();
  record.lease_address.assign(lease.begin(), lease.end());
  if (magic != kRecordMagic || reader.failed()) {
    throw Error(Status::version_mismatch,
                fmt::format("rank {} runs another version of brant: start all processes with one installation", rank));
  }
  if (!is_pid(pid) || !can_be_mappable(mappable) || reader.left() != 0) {
    throw Error(
        Status::invalid_argument,
        fmt::format("the record that rank {} published is damaged (pid {}, mappable kind {}, {} bytes too many)", rank,
                    pid, mappable, reader.left()));
  }
  return record;
}

bool have_one_wire_version(const PeerRecord& one, const PeerRecord& other) {
  // The version string also says where the library lies; only what precedes the path must agree.
  const auto version_of = [](const PeerRecord& record) {
    return std::string_view(record.wire_version).substr(0, record.wire_version.find(" ("));
  };
  return version_of(one) == version_of(other) || env_bool("BRANT_ALLOW_MIXED_UCX", false);
}

void require_one_wire_version(const std::vector<PeerRecord>& records, int mine) {
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    if (have_one_wire_version(records[static_cast<std::size_t>(mine)], records[rank])) continue;
    throw Error(
        Status::version_mismatch,
        fmt::format(
            "rank {} uses {} but rank {} uses {}: mixed versions abort inside the library. Give all processes the "
            "same one (BRANT_UCX=wheel|system|PATH), or set BRANT_ALLOW_MIXED_UCX=1 to try",
            mine, records[static_cast<std::size_t>(mine)].wire_version, rank, records[rank].wire_version));
  }
}

void require_own_gpu(const std::vector<PeerRecord>& records, int mine) {
  const PeerRecord& own = records[static_cast<std::size_t>(mine)];
  if (own.device_id.empty()) return;
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    const PeerRecord& other = records[rank];
    if (static_cast<int>(rank) == mine || other.host_id != own.host_id || other.device_id != own.device_id) continue;
    throw Error(Status::invalid_argument, fmt::format("ranks {} and {} use one GPU ({}): time slicing costs about 150 "
                                                      "us per operation. Start one process per GPU, or set "
                                                      "BRANT_SHARE_GPU=1 to share it",
                                                      mine, rank, own.device_id));
  }
}

}  // namespace brant
