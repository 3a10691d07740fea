#pragma once

#include <cstddef>
#include <span>

#include "port/link.h"

namespace brant {

/// The links with the other processes of this host; where no memory is shared, there are none, and nothing comes.
class HostLinks {
 public:
  /// Null: no memory is shared.
  explicit HostLinks(port::Links* links) noexcept : links_(links) {}
  HostLinks(const HostLinks&) = delete;
  HostLinks& operator=(const HostLinks&) = delete;

  /// Other processes of this host may have a link with this one.
  [[nodiscard]] bool possible() const noexcept { return links_ != nullptr; }

  /// Takes over the records of this service; null gives it up.
  void claim(unsigned service, port::LinkHandler handler, void* context) noexcept {
    if (links_ != nullptr) links_->set_handler(service, handler, context);
  }
  void set_fault_handler(port::LinkFaultHandler handler, void* context) noexcept {
    if (links_ != nullptr) links_->set_fault_handler(handler, context);
  }

  /// See `port::Links::attach`. A pair that cannot goes without a link, and has said why.
  void attach(int rank, unsigned own_place, unsigned its_place, std::span<const std::byte> address) noexcept {
    if (links_ != nullptr) static_cast<void>(links_->attach(rank, own_place, its_place, address));
  }
  [[nodiscard]] port::Link* link(int rank) noexcept { return links_ != nullptr ? links_->link(rank) : nullptr; }
  void drop(int rank) noexcept {
    if (links_ != nullptr) links_->drop(rank);
  }

  unsigned poll() noexcept { return links_ != nullptr ? links_->poll() : 0; }
  /// False: something is there to be polled first.
  bool arm() noexcept { return links_ == nullptr || links_->arm(); }
  /// Of links that are possible.
  [[nodiscard]] int event_fd() const noexcept { return links_->event_fd(); }

 private:
  port::Links* const links_;
};

}  // namespace brant
