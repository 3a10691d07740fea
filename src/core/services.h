#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace brant {

struct Peer;

/// State of a layer above, one per engine and kind, created on first use. They are destroyed before the adapters, in
/// the order in which they were made: one that uses another makes it first, and the other's last records may then lie
/// in what it owns.
class Service {
 public:
  virtual ~Service() = default;

  /// The program of this process has ended: says to a peer what it must know to end what it waits for. Returns how many
  /// words that took, since they and the farewell may overtake each other.
  virtual unsigned part_from(Peer&) noexcept { return 0; }
  /// The same of a peer's program, `Peer::ended`; its words may still be on their way.
  virtual void peer_ended(Peer&) noexcept {}
  /// Nothing has happened for so long, in a wait which may or may not end by itself: says what for. False: this layer
  /// waits for nothing, and has said nothing.
  virtual bool stalled(std::chrono::nanoseconds, bool /*for_ever*/) noexcept { return false; }
  /// Every few milliseconds of progress, and after each sleep: for what nobody tells this process of.
  virtual void look_around() noexcept {}
  /// A joined peer is gone (`Peer::lost`), and its record is to go: drops what was kept of it, and is asked again as
  /// long as it says false, which is while the program has something open with that peer.
  virtual bool forget(Peer&) noexcept { return true; }
  /// The runtime ends, and all services are still there: gives back what it holds of others, and lets go of whoever
  /// waits.
  virtual void let_go() noexcept {}
};

/// The services of an engine: each call of theirs goes to all.
class Services {
 public:
  Services() = default;
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;
  ~Services() { end(); }

  /// The service of a type, made of `made_of` on first use.
  template <typename T, typename MadeOf>
  T& get(MadeOf& made_of) {
    static const char key = 0;
    for (auto& [known, service] : services_) {
      if (known == &key) return static_cast<T&>(*service);
    }
    services_.emplace_back(&key, std::make_unique<T>(made_of));
    return static_cast<T&>(*services_.back().second);
  }

  /// Returns how many words they said.
  std::uint32_t part_from(Peer& peer) noexcept {
    std::uint32_t words = 0;
    for (auto& [key, service] : services_) words += service->part_from(peer);
    return words;
  }
  void peer_ended(Peer& peer) noexcept {
    for (auto& [key, service] : services_) service->peer_ended(peer);
  }
  /// True: one of them said what it waits for.
  bool stalled(std::chrono::nanoseconds idle, bool for_ever) noexcept {
    bool told = false;
    for (auto& [key, service] : services_) told = service->stalled(idle, for_ever) || told;
    return told;
  }
  void look_around() noexcept {
    for (auto& [key, service] : services_) service->look_around();
  }

  /// True: nobody knows the peer any more. Those that came later use those that came before.
  bool forget(Peer& peer) noexcept {
    return std::all_of(services_.rbegin(), services_.rend(), [&](auto& known) { return known.second->forget(peer); });
  }

  /// Not left to the container, which may take either end first.
  void end() noexcept {
    for (std::size_t i = 0; i < services_.size(); ++i) {  // whoever is told may ask for one that was not there
      if (services_[i].second != nullptr) services_[i].second->let_go();
    }
    for (auto& [key, service] : services_) service.reset();
  }

 private:
  std::vector<std::pair<const char*, std::unique_ptr<Service>>> services_;
};

}  // namespace brant
