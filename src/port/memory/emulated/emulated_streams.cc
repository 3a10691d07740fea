#include "port/memory/emulated/emulated_streams.h"

#include <pthread.h>

#include <cstdint>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/signals_blocked.h"

namespace brant::port::memory {
namespace {

// The handles of the interface are opaque: a Stream* is a StreamCore*, an Event* an EventState*.
StreamCore* core_of(Stream* stream) noexcept { return reinterpret_cast<StreamCore*>(stream); }
Stream* handle_of(StreamCore* core) noexcept { return reinterpret_cast<Stream*>(core); }
EventState* state_of(Event* event) noexcept { return reinterpret_cast<EventState*>(event); }
Event* handle_of(EventState* state) noexcept { return reinterpret_cast<Event*>(state); }

}  // namespace

void EmulatedStreams::close() noexcept {
  std::map<StreamCore*, Worker> workers;
  {
    const std::lock_guard lock(mutex_);
    workers.swap(workers_);
  }
  for (auto& [core, worker] : workers) worker.core->stop();
  for (auto& [core, worker] : workers) end(worker);
  for (const PointerInfo& range : registered_.take_all()) {
    if (const auto gone = memory_.reachable_host().remove(range.base); !gone) continue;
  }
}

Result<Stream*> EmulatedStreams::create_stream(StreamPriority) noexcept {
  try {
    auto core = std::make_shared<StreamCore>(options_);
    const std::lock_guard lock(mutex_);
    Worker& worker = workers_[core.get()];
    worker.core = core;
    const SignalsBlocked blocked;  // inherited by the new thread
    worker.thread = std::thread([core] {
      ::pthread_setname_np(::pthread_self(), "brant-stream");
      core->run();
    });
    return handle_of(core.get());
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  } catch (const std::system_error& error) {
    log::error("emulated device: no thread for a stream: {} ({} streams exist)", error.what(), workers_.size());
    return Status::limit_reached;
  }
}

void EmulatedStreams::end(Worker& worker) noexcept {
  if (!worker.thread.joinable()) return;
  if (worker.core->wait_ended(std::chrono::milliseconds(options_.close_wait_ms))) {
    worker.thread.join();
    return;
  }
  log::error(
      "emulated device: a stream's kernel still runs {} ms after the stream was closed; its thread is left behind",
      options_.close_wait_ms);
  worker.thread.detach();  // it shares ownership of the core
}

void EmulatedStreams::destroy_stream(Stream* stream) noexcept {
  Worker worker;
  {
    const std::lock_guard lock(mutex_);
    const auto found = workers_.find(core_of(stream));
    if (found == workers_.end()) return;
    worker = std::move(found->second);
    workers_.erase(found);
  }
  if (!worker.core->drain_for(std::chrono::milliseconds(options_.close_wait_ms))) {
    log::error("emulated device: a stream was destroyed, but its work did not end within {} ms",
               options_.close_wait_ms);
  }
  worker.core->stop();
  end(worker);
}

Status EmulatedStreams::copy(void* destination, const void* source, std::size_t bytes, Stream* stream) noexcept {
  if (stream == nullptr) return Status::invalid_argument;
  if (bytes == 0) return Status::ok;
  if (destination == nullptr || source == nullptr) return Status::invalid_argument;
  Result<EnginePlace> to = memory_.place(destination, bytes);
  if (!to) return to.status();
  Result<EnginePlace> from = memory_.place(source, bytes);
  if (!from) return from.status();
  return core_of(stream)->post(CopyWork{std::move(*to), std::move(*from), bytes});
}

Status EmulatedStreams::fill(void* destination, std::byte value, std::size_t bytes, Stream* stream) noexcept {
  if (stream == nullptr) return Status::invalid_argument;
  if (bytes == 0) return Status::ok;
  if (destination == nullptr) return Status::invalid_argument;
  Result<EnginePlace> to = memory_.place_for_device(destination, bytes);
  if (!to) return to.status();
  return core_of(stream)->post(FillWork{std::move(*to), value, bytes});
}

Status EmulatedStreams::at_words(std::span<const StreamWord> words, Stream* stream) noexcept {
  if (stream == nullptr) return Status::invalid_argument;
  if (words.empty()) return Status::ok;
  if (words.size() > kWordsMax) return Status::limit_reached;
  try {
    WordsWork work;
    work.words.reserve(words.size());
    for (const StreamWord& word : words) {
      if (!word.well_formed()) return Status::invalid_argument;
      Result<EnginePlace> place = memory_.place_for_device(word.word, word.bytes);
      if (!place) return place.status();
      work.words.push_back({word, std::move(*place)});
    }
    return core_of(stream)->post(std::move(work));
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

Status EmulatedStreams::call_host(HostFunction function, void* argument, Stream* stream) noexcept {
  if (function == nullptr || stream == nullptr) return Status::invalid_argument;
  return core_of(stream)->post(HostCallWork{function, argument});
}

Status EmulatedStreams::register_host(void* base, std::size_t bytes) noexcept {
  if (base == nullptr || bytes == 0) return Status::invalid_argument;
  if (memory_.query(base).ok()) return Status::invalid_argument;  // device memory, pinned, or registered already
  const PointerInfo range{
      .kind = MemoryKind::pinned, .device = -1, .base = base, .bytes = bytes, .buffer_id = next_buffer_id()};
  if (const Status status = memory_.reachable_host().insert(range); status != Status::ok) return status;
  const Status status = registered_.insert(range);
  if (status != Status::ok && !memory_.reachable_host().remove(base)) return Status::internal;
  return status;
}

Status EmulatedStreams::unregister_host(void* base) noexcept {
  if (const auto range = registered_.remove(base); !range) return range.status();
  staying_kernels_.expect_none("unregister_host");
  return memory_.reachable_host().remove(base).status();
}

Result<Event*> EmulatedStreams::create_event(bool timing) noexcept {
  try {
    auto event = std::make_shared<EventState>(timing);
    const std::lock_guard lock(mutex_);
    events_.emplace(event.get(), event);
    return handle_of(event.get());
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

void EmulatedStreams::destroy_event(Event* event) noexcept {
  std::shared_ptr<EventState> last;
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(state_of(event));
  if (found == events_.end()) return;
  last = std::move(found->second);
  events_.erase(found);
}

Status EmulatedStreams::record(Event* event, Stream* stream) noexcept {
  if (event == nullptr || stream == nullptr) return Status::invalid_argument;
  EventState* state = state_of(event);
  try {
    StreamPoint point;
    point.stream = core_of(stream)->shared_from_this();
    point.ticket = state->next_ticket();
    RecordWork work{state->shared_from_this(), point.ticket};
    if (const Status status = point.stream->post(std::move(work), &point.sequence); status != Status::ok) return status;
    state->set_latest(std::move(point));
    return Status::ok;
  } catch (const std::bad_weak_ptr&) {
    return Status::invalid_argument;  // destroyed before
  }
}

Status EmulatedStreams::wait_event(Stream* stream, Event* event) noexcept {
  if (event == nullptr || stream == nullptr) return Status::invalid_argument;
  StreamPoint point = state_of(event)->latest();
  if (point.stream == nullptr) return Status::ok;  // never recorded: nothing to wait for
  return core_of(stream)->post(WaitWork{std::move(point)});
}

Status EmulatedStreams::poll(Event* event) noexcept {
  if (event == nullptr) return Status::invalid_argument;
  const StreamPoint point = state_of(event)->latest();
  return point.stream == nullptr ? Status::ok : point.stream->poll(point.sequence);
}

Status EmulatedStreams::poll(Stream* stream) noexcept {
  return stream == nullptr ? Status::invalid_argument : core_of(stream)->poll();
}

Result<double> EmulatedStreams::elapsed_us(Event* from, Event* to) noexcept {
  if (from == nullptr || to == nullptr || !state_of(from)->timing() || !state_of(to)->timing()) {
    return Status::invalid_argument;
  }
  EventState::Clock::time_point start;
  EventState::Clock::time_point end;
  for (Event* event : {from, to}) {
    if (state_of(event)->latest().stream == nullptr) return Status::invalid_argument;  // never recorded
    if (const Status status = poll(event); status != Status::ok) return status;
  }
  if (!state_of(from)->time_of_latest(start) || !state_of(to)->time_of_latest(end)) return Status::in_progress;
  return std::chrono::duration<double, std::micro>(end - start).count();
}

Status EmulatedStreams::synchronize(Stream* stream) noexcept {
  return stream == nullptr ? Status::invalid_argument : core_of(stream)->drain();
}

Status EmulatedStreams::synchronize_all() noexcept {
  staying_kernels_.expect_none("synchronize_all");
  std::vector<std::shared_ptr<StreamCore>> cores;  // drained without the lock, which new streams need
  try {
    const std::lock_guard lock(mutex_);
    cores.reserve(workers_.size());
    for (const auto& [core, worker] : workers_) cores.push_back(worker.core);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  for (const std::shared_ptr<StreamCore>& core : cores) {
    if (const Status drained = core->drain(); drained != Status::ok) return drained;
  }
  return Status::ok;
}

Status EmulatedStreams::begin_capture(Stream* stream) noexcept {
  return stream == nullptr ? Status::invalid_argument : core_of(stream)->begin_capture();
}

Result<bool> EmulatedStreams::captures(Stream* stream) noexcept {
  if (stream == nullptr) return Status::invalid_argument;
  return core_of(stream)->captures();
}

Result<Graph*> EmulatedStreams::end_capture(Stream* stream) noexcept {
  if (stream == nullptr) return Status::invalid_argument;
  Result<std::vector<StreamWork>> captured = core_of(stream)->end_capture();
  if (!captured) return captured.status();
  try {
    auto graph = std::make_unique<EmulatedGraph>(EmulatedGraph{std::move(*captured)});
    const std::lock_guard lock(mutex_);
    graphs_.push_back(std::move(graph));
    return reinterpret_cast<Graph*>(graphs_.back().get());
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

Status EmulatedStreams::launch(Graph* graph, Stream* stream) noexcept {
  if (graph == nullptr || stream == nullptr) return Status::invalid_argument;
  try {
    for (const StreamWork& work : reinterpret_cast<const EmulatedGraph*>(graph)->work) {
      if (const Status status = core_of(stream)->post(work); status != Status::ok) return status;
    }
    return Status::ok;
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

void EmulatedStreams::destroy_graph(Graph* graph) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(graphs_, [&](const auto& known) { return known.get() == reinterpret_cast<EmulatedGraph*>(graph); });
}

Status EmulatedStreams::launch(KernelWork work, Stream* stream) noexcept {
  return stream == nullptr ? Status::invalid_argument : core_of(stream)->post(std::move(work));
}

}  // namespace brant::port::memory
