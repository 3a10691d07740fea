#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "brant/base/result.h"
#include "brant/base/status.h"

/// Links: records between the processes of one host through memory that both map. Faster than any network library for
/// small messages, and the place where two ends agree how a large one shall travel. Adapter: link/shared_memory.
///
/// Thread rule: one thread owns a `Links` and makes all calls on it and its links. No call blocks, none throws, except
/// where noted.
namespace brant::port {

/// Bytes of a record's header: all that fits into its first cache line.
inline constexpr std::size_t kLinkHeaderBytes = 40;
/// Bytes of a record's payload at most: a longer message is cut into several records by whoever sends it.
inline constexpr std::size_t kLinkPayloadMax = std::size_t{32} << 10;

/// A record that arrived. Header and payload lie in the shared memory and are valid during the handler's call only.
struct LinkRecord {
  int rank = -1;
  const std::byte* header = nullptr;  ///< kLinkHeaderBytes.
  std::span<const std::byte> payload;
};

using LinkHandler = void (*)(void* context, const LinkRecord& record) noexcept;
/// Told once that nothing more can be taken from a process, because what it wrote is no record.
using LinkFaultHandler = void (*)(void* context, int rank) noexcept;

/// The way to one other process of this host. Records arrive in the order in which they were posted.
class Link {
 public:
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Copies a record into the peer's memory: when it returns true the source is free. False: no room now; try again
  /// after a progress. `header` has at most kLinkHeaderBytes, `payload` at most kLinkPayloadMax. `service` names the
  /// handler over there.
  virtual bool post(unsigned service, std::span<const std::byte> header,
                    std::span<const std::byte> payload) noexcept = 0;

  /// The same without a payload, and never refused for want of room: what finds none is kept here and goes first in a
  /// later poll. Its callers bound how many there are. False only if the memory of this process is exhausted.
  virtual bool post_control(unsigned service, std::span<const std::byte> header) noexcept = 0;

  /// Runs the handler of what the peer has posted for one service, a bounded number of records, and none behind a
  /// record for another service. Returns how many; 0 within a handler. For whoever knows that his own records' handler
  /// may run where he is.
  virtual unsigned poll(unsigned service) noexcept = 0;

  /// Wakes the peer if it sleeps: something was written for it that is not a record.
  virtual void wake() noexcept = 0;

  /// Words of the shared memory, a page of them, zero at first, for uses that the two ends agree on: those that this
  /// end writes, and those that the peer writes. Devices may reach them too, once registered.
  [[nodiscard]] virtual std::span<std::uint64_t> flags_there() noexcept = 0;
  [[nodiscard]] virtual std::span<std::uint64_t> flags_here() noexcept = 0;

 protected:
  ~Link() = default;
};

class Links {
 public:
  static constexpr unsigned kServices = 8;

  Links() = default;
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;
  virtual ~Links() = default;

  /// The bytes a peer needs for `attach`. Valid as long as this object.
  [[nodiscard]] virtual std::span<const std::byte> address() const noexcept = 0;

  /// Maps the memory of process `rank`. `own_place` and `its_place` are the places of the two among the processes of
  /// this host, which all of them count alike. not_supported, with the reason in the log, if it cannot be mapped: the
  /// pair then goes without a link.
  virtual Status attach(int rank, unsigned own_place, unsigned its_place,
                        std::span<const std::byte> address) noexcept = 0;

  /// The link with a process, or null unless both have attached to each other. Both ends give the same answer once both
  /// have called `attach` (a fence lies between).
  [[nodiscard]] virtual Link* link(int rank) noexcept = 0;

  /// Nothing will be sent to or received from this process any more.
  virtual void drop(int rank) noexcept = 0;

  /// Claims a service, or gives it up (null). Records for a service that nobody has claimed are set aside, bounded, and
  /// delivered in order by the first poll after its claim; at the bound they hold back what the peer posts later.
  virtual void set_handler(unsigned service, LinkHandler handler, void* context) noexcept = 0;

  /// Whoever gives up processes whose link has failed.
  virtual void set_fault_handler(LinkFaultHandler handler, void* context) noexcept = 0;

  /// Runs the handlers of what has arrived, a bounded number. Returns how many events it saw, 0 when idle. Handlers may
  /// post.
  virtual unsigned poll() noexcept = 0;

  /// A descriptor that becomes readable when a record comes, after `arm` returned true.
  [[nodiscard]] virtual int event_fd() const noexcept = 0;
  /// True: nothing is there and event_fd will wake the caller. False: poll first. The next poll ends the alarm.
  virtual bool arm() noexcept = 0;
};

}  // namespace brant::port
