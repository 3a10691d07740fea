#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>

#include "brant/base/ids.h"
#include "models/mpi/per_process.h"
#include "models/mpi/windows/served_accesses.h"
#include "models/mpi/windows/window_words.h"
#include "ops/am/messenger.h"

namespace brant::mpi {

class Process;
class Window;

/// Something that an answer of another member ends, or its death. Stays in place until it was answered or forgotten.
class Awaited {
 public:
  Awaited() noexcept = default;
  Awaited(const Awaited&) = delete;
  Awaited& operator=(const Awaited&) = delete;
  virtual ~Awaited() = default;

  /// Once. `error` is an error class. It may delete itself.
  virtual void answered(int error, std::span<const std::byte> data) noexcept = 0;
};

/// Carries what the members of the windows of this process say to each other, in the order in which they say it, and
/// does what others ask of this rank's memory, whenever this process makes progress.
class WindowMessenger final : private Poller {
 public:
  WindowMessenger(Engine& engine, Process& process);
  ~WindowMessenger();
  WindowMessenger(const WindowMessenger&) = delete;
  WindowMessenger& operator=(const WindowMessenger&) = delete;

  /// Keeps a window until `remove`, or until MPI ends.
  Window& add(std::unique_ptr<Window> window);
  void remove(Window& window) noexcept;
  /// Null: there is none, or none any more.
  [[nodiscard]] Window* find(const WindowHeader& header) const noexcept;

  /// Ends the job where there is no memory for a message: others would wait for it without end.
  [[nodiscard]] am::Message& make(std::size_t bytes) noexcept;
  void release(am::Message& message) noexcept { messenger_.release(message); }
  /// Takes the message over. Words to a process that has died go nowhere.
  void send(Rank to, const WindowHeader& header, am::Message& message) noexcept;
  void say(Rank to, const WindowHeader& header) noexcept { send(to, header, make(0)); }
  /// A header to a member of a window.
  [[nodiscard]] static WindowHeader header_to(const Window& window, int member, WindowWord word) noexcept;
  void answer(Rank to, std::uint64_t ticket, int error) noexcept;

  /// A number by which `member_process` ends it. At once where that process has died: then 0.
  std::uint64_t await(Rank member_process, Awaited& awaited);
  void forget(std::uint64_t ticket) noexcept { awaited_.erase(ticket); }
  [[nodiscard]] bool is_lost(Rank process) const noexcept { return lost_.contains(process); }

 private:
  struct Waiting {
    Rank from;
    Awaited* who;
  };
  static void on_message(void* self, am::Message& message) noexcept;
  static void on_trouble(void* self, Rank peer, Status status) noexcept;
  [[nodiscard]] bool is_sound(const WindowHeader& header, const am::Message& message) const noexcept;
  void take(Window& window, const WindowHeader& header, am::Message& message) noexcept;
  void take_answer(const WindowHeader& header, am::Message& message) noexcept;
  unsigned poll() noexcept override;

  Engine& engine_;
  Process& process_;
  am::Messenger& messenger_;
  ServedAccesses served_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Window>> windows_;  ///< By rank of the process, and context.
  std::unordered_map<std::uint64_t, Waiting> awaited_;
  std::uint64_t last_ticket_ = 0;
  PerProcess<am::MessageList> waiting_;  ///< By receiver: messages for which there was no room.
  std::size_t waiting_count_ = 0;
  std::set<Rank> lost_;
};

}  // namespace brant::mpi
