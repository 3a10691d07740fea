#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "port/memory.h"
#include "port/memory/allocation_map.h"
#include "port/memory/emulated/stream_core.h"

namespace brant::port::memory {

/// Streams of an emulated device: each has a thread that does its commands in order. Handles are checked only where
/// they are created and destroyed, as a GPU driver does.
class EmulatedStreams final : public Streams {
 public:
  EmulatedStreams(const EmulatedOptions& options, const StayingKernels& staying_kernels) noexcept
      : options_(options), staying_kernels_(staying_kernels) {}
  ~EmulatedStreams() override { close(); }

  /// Discards what is queued, waits up to close_wait_ms for what runs, and ends all streams. Before the memory goes.
  void close() noexcept;

  Result<Stream*> create_stream(StreamPriority priority) noexcept override;
  void destroy_stream(Stream* stream) noexcept override;

  Status copy(void* destination, const void* source, std::size_t bytes, Stream* stream) noexcept override;
  Status fill(void* destination, std::byte value, std::size_t bytes, Stream* stream) noexcept override;
  Status at_words(std::span<const StreamWord> words, Stream* stream) noexcept override;
  Status call_host(HostFunction function, void* argument, Stream* stream) noexcept override;
  Status register_host(void* base, std::size_t bytes) noexcept override;
  Status unregister_host(void* base) noexcept override;

  Result<Event*> create_event(bool timing) noexcept override;
  void destroy_event(Event* event) noexcept override;
  Status record(Event* event, Stream* stream) noexcept override;
  Status wait_event(Stream* stream, Event* event) noexcept override;
  Status poll(Event* event) noexcept override;
  Status poll(Stream* stream) noexcept override;
  Result<double> elapsed_us(Event* from, Event* to) noexcept override;
  Status synchronize(Stream* stream) noexcept override;
  Status synchronize_all() noexcept override;
  Status begin_capture(Stream* stream) noexcept override;
  Result<Graph*> end_capture(Stream* stream) noexcept override;
  Status launch(Graph* graph, Stream* stream) noexcept override;
  void destroy_graph(Graph* graph) noexcept override;
  Result<bool> captures(Stream* stream) noexcept override;

  /// Queues a kernel with its argument values already copied.
  Status launch(KernelWork work, Stream* stream) noexcept;

 private:
  struct Worker {
    std::shared_ptr<StreamCore> core;
    std::thread thread;
  };
  struct EmulatedGraph {
    std::vector<StreamWork> work;
  };
  void end(Worker& worker) noexcept;

  const EmulatedOptions options_;
  const StayingKernels& staying_kernels_;
  EmulatedMemory& memory_ = EmulatedMemory::of_process();
  AllocationMap registered_;  ///< What this device registered and has to give up again.
  std::mutex mutex_;
  std::map<StreamCore*, Worker> workers_;                      ///< Protected by mutex_.
  std::map<EventState*, std::shared_ptr<EventState>> events_;  ///< Protected by mutex_.
  std::vector<std::unique_ptr<EmulatedGraph>> graphs_;         ///< Protected by mutex_.
};

}  // namespace brant::port::memory
