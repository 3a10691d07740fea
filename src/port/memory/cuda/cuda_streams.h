#pragma once

#include "port/memory.h"
#include "port/memory/allocation_map.h"
#include "port/memory/cuda/cuda_context.h"

namespace brant::port::memory {

/// Streams and events of a GPU. A Stream* is the driver's CUstream and an Event* its CUevent, so that a program's own
/// streams can be passed too (CU_STREAM_LEGACY for the default stream; null is refused).
class CudaStreams final : public Streams {
 public:
  /// `words`: the GPU's streams can wait for words and write them.
  CudaStreams(const CudaContext& context, bool words) noexcept : context_(context), words_(words) {}
  ~CudaStreams() override;

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

  /// Registered ranges, as kind `pinned`: the driver has no buffer id for them.
  [[nodiscard]] Result<PointerInfo> query_registered(const void* pointer) const noexcept {
    return registered_.find(pointer);
  }

 private:
  const CudaContext& context_;
  const bool words_;
  AllocationMap registered_;
};

}  // namespace brant::port::memory
