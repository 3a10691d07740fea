#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "core/engine.h"
#include "ops/channel/link_message.h"

namespace brant {

/// Memory that this process and one peer have mapped of each other: each allocation is exported and mapped once,
/// and known by the driver's buffer id, so that memory freed and allocated again at the same address is another one.
///
/// Bounded: kMappingsMax allocations in each direction, the others go other ways. The driver keeps freed memory
/// alive while it is mapped, so the mapping is closed as soon as it is known: when its addresses are used again, when
/// the bound is reached, and at the latest when this goes.
class LinkMappings {
 public:
  static constexpr std::size_t kMappingsMax = 1024;

  LinkMappings(Engine& engine, Peer& peer) noexcept : engine_(engine), peer_(peer) {}
  LinkMappings(const LinkMappings&) = delete;
  LinkMappings& operator=(const LinkMappings&) = delete;
  ~LinkMappings();

  /// Who will reach it.
  enum class Reach : std::uint8_t { cpu, device };

  /// Fills in where memory of this process is, after having told the peer how to map its allocation. not_supported or
  /// wrong_kind: no other process can map it, ever; the device has logged why. Any other status: not now.
  Status describe(const void* data, LinkMessage& message) noexcept;
  /// The peer told how to map an allocation.
  void on_exported(std::span<const std::byte> record) noexcept;
  /// An allocation will be exported: the peer first closes its mappings of freed memory that shared a block with it.
  void make_way(const port::PointerInfo& info) noexcept;
  /// All that is mapped here of an allocation of the peer.
  [[nodiscard]] std::span<const std::byte> mapping(std::uint64_t buffer_id) const noexcept;
  /// The peer has freed an allocation.
  void on_withdrawn(std::uint64_t buffer_id) noexcept;
  /// This process's address of memory of the peer. Null if it could not be mapped, or has not so many bytes there, or
  /// is not of this sort.
  [[nodiscard]] void* mapped(std::uint64_t buffer_id, std::uint64_t offset, std::uint64_t bytes,
                             Reach reach) const noexcept;

 private:
  struct Imported {
    void* base = nullptr;  ///< Null: cannot be mapped.
    std::uint64_t bytes = 0;
    MemoryKind kind = MemoryKind::detect;
  };

  static constexpr std::size_t kRefusedMax = 16;
  using Exported = std::unordered_map<std::uint64_t, port::PointerInfo>;

  Status export_once(const port::PointerInfo& info) noexcept;
  [[nodiscard]] bool is_refused(std::uint64_t buffer_id) const noexcept;
  void remember_refused(std::uint64_t buffer_id) noexcept;
  [[nodiscard]] bool gone(const port::PointerInfo& known) noexcept;
  template <typename Freed>
  void withdraw_if(Freed&& freed) noexcept;

  Engine& engine_;
  Peer& peer_;
  Exported exported_;  ///< By buffer id.
  /// Buffer ids of the last allocations that cannot be exported, so that not every message asks again: a question
  /// costs system calls. 0: none.
  std::array<std::uint64_t, kRefusedMax> refused_{};
  std::size_t next_refused_ = 0;
  std::unordered_map<std::uint64_t, Imported> imported_;
};

}  // namespace brant
