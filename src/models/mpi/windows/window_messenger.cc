#include "models/mpi/windows/window_messenger.h"

#include <new>
#include <utility>

#include "models/mpi/process.h"
#include "models/mpi/windows/window.h"

namespace brant::mpi {

namespace {

std::uint64_t key_of(std::uint16_t rank, std::uint32_t context) noexcept {
  return (std::uint64_t{rank} << 32) | context;
}

std::uint64_t key_of(const Window& window) noexcept {
  return key_of(Process::slot_of(window.rank.id), window.communicator.context);
}

}  // namespace

WindowMessenger::WindowMessenger(Engine& engine, Process& process)
    : engine_(engine),
      process_(process),
      messenger_(engine.service<am::Messenger>()),
      served_(*this),
      waiting_(engine.job().size) {
  messenger_.claim(am::ServiceId::mpi_windows, &WindowMessenger::on_message, &WindowMessenger::on_trouble, this);
}

WindowMessenger::~WindowMessenger() {
  messenger_.claim(am::ServiceId::mpi_windows, nullptr, nullptr, nullptr);
  engine_.pollers().detach(*this);
  waiting_.for_each([this](Rank, am::MessageList& list) {
    while (am::Message* message = list.pop_front()) messenger_.release(*message);
  });
}

Window& WindowMessenger::add(std::unique_ptr<Window> window) {
  Window& added = *window;
  windows_.emplace(key_of(added), std::move(window));
  return added;
}

void WindowMessenger::remove(Window& window) noexcept { windows_.erase(key_of(window)); }

Window* WindowMessenger::find(const WindowHeader& header) const noexcept {
  const auto found = windows_.find(key_of(header.target, header.context));
  return found != windows_.end() ? found->second.get() : nullptr;
}

am::Message& WindowMessenger::make(std::size_t bytes) noexcept {
  am::Message* message = messenger_.make(bytes);
  if (message == nullptr) end_job(1, "brant MPI: no memory for a message of a window");
  return *message;
}

WindowHeader WindowMessenger::header_to(const Window& window, int member, WindowWord word) noexcept {
  return {.word = word,
          .target = Process::slot_of(window.communicator.id_of(member)),
          .context = window.communicator.context,
          .source = window.communicator.rank};
}

void WindowMessenger::answer(Rank to, std::uint64_t ticket, int error) noexcept {
  say(to, {.word = WindowWord::answer, .value = error, .ticket = ticket});
}

void WindowMessenger::send(Rank to, const WindowHeader& header, am::Message& message) noexcept {
  message.set_header(header);
  am::MessageList& waiting = waiting_[to];
  if (waiting.empty()) {
    const Status status = messenger_.send(to, am::ServiceId::mpi_windows, message);
    if (status == Status::ok) return;
    if (status != Status::limit_reached) return messenger_.release(message);
  }
  waiting.push_back(message);
  ++waiting_count_;
  engine_.pollers().attach(*this);
}

unsigned WindowMessenger::poll() noexcept {
  unsigned events = 0;
  waiting_.for_each([&](Rank to, am::MessageList& list) {
    while (am::Message* message = list.front()) {
      list.pop_front();
      const Status status = messenger_.send(to, am::ServiceId::mpi_windows, *message);
      if (status == Status::limit_reached) {
        list.push_front(*message);
        break;
      }
      --waiting_count_;
      ++events;
      if (status != Status::ok) messenger_.release(*message);
    }
  });
  if (waiting_count_ == 0) engine_.pollers().detach(*this);
  return events;
}

std::uint64_t WindowMessenger::await(Rank member_process, Awaited& awaited) {
  if (is_lost(member_process)) {
    awaited.answered(MPI_ERR_PROC_ABORTED, {});
    return 0;
  }
  awaited_.emplace(++last_ticket_, Waiting{member_process, &awaited});
  return last_ticket_;
}

// Messages that come
// -------------------------------------------------------------------------------------------------------------------

bool WindowMessenger::is_sound(const WindowHeader& header, const am::Message& message) const noexcept {
  if (message.wire.header_bytes != sizeof(WindowHeader) || process_.rank_at(header.target) == nullptr) return false;
  if (header.word < WindowWord::access || header.word > WindowWord::answer) return false;
  if (header.word == WindowWord::answer) return true;
  const Window* window = find(header);
  if (window == nullptr) return true;  // it was freed meanwhile: the last word of a member may be late
  return header.source >= 0 && header.source < window->size() &&
         window->process_of(header.source).value == message.peer;
}

void WindowMessenger::on_message(void* context, am::Message& message) noexcept {
  auto& self = *static_cast<WindowMessenger*>(context);
  const auto header = message.header<WindowHeader>();
  if (!self.is_sound(header, message)) [[unlikely]] {
    self.engine_.peers().distrust(message.peer, "a message of MPI's windows with a damaged header");
    return self.messenger_.release(message);
  }
  if (header.word == WindowWord::answer) return self.take_answer(header, message);
  Window* window = self.find(header);
  if (window == nullptr) return self.messenger_.release(message);
  self.take(*window, header, message);
}

void WindowMessenger::take(Window& window, const WindowHeader& header, am::Message& message) noexcept {
  if (header.word == WindowWord::access || header.word == WindowWord::flush) return served_.take(message);
  WindowPeer& peer = window.peer(header.source);
  const auto grant = [&](const WindowLock::Request& granted) {
    answer(window.process_of(granted.source), granted.ticket, MPI_SUCCESS);
  };
  switch (header.word) {
    case WindowWord::lock:
      window.lock.ask({header.source, header.value == MPI_LOCK_EXCLUSIVE, header.ticket}, grant);
      break;
    case WindowWord::unlock: window.lock.let_go(header.source, false, grant); break;
    case WindowWord::posted: ++peer.posts; break;
    case WindowWord::completed: ++peer.completions; break;
    default: break;
  }
  messenger_.release(message);
}

void WindowMessenger::take_answer(const WindowHeader& header, am::Message& message) noexcept {
  const auto found = awaited_.find(header.ticket);
  if (found != awaited_.end() && found->second.from.value == message.peer) {
    Awaited& awaited = *found->second.who;
    awaited_.erase(found);
    awaited.answered(header.value, message.payload());
  }
  messenger_.release(message);
}

void WindowMessenger::on_trouble(void* context, Rank peer, Status) noexcept {
  auto& self = *static_cast<WindowMessenger*>(context);
  try {
    self.lost_.insert(peer);
  } catch (const std::bad_alloc&) {
    end_job(1, "brant MPI: no memory to note the end of a process");
  }
  std::vector<std::uint64_t> tickets;
  for (const auto& [ticket, waiting] : self.awaited_) {
    if (waiting.from == peer) tickets.push_back(ticket);
  }
  for (const std::uint64_t ticket : tickets) {
    const auto found = self.awaited_.find(ticket);
    if (found == self.awaited_.end()) continue;
    Awaited& awaited = *found->second.who;
    self.awaited_.erase(found);
    awaited.answered(MPI_ERR_PROC_ABORTED, {});
  }
  for (const auto& [key, window] : self.windows_) {
    for (int member = 0; member < window->size(); ++member) {
      if (window->process_of(member) != peer) continue;
      window->lock.let_go(member, true, [&](const WindowLock::Request& granted) {
        self.answer(window->process_of(granted.source), granted.ticket, MPI_SUCCESS);
      });
    }
  }
}

}  // namespace brant::mpi
