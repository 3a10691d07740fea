#include "port/memory/cuda/cuda_streams.h"

#include <array>
#include <cstdint>

namespace brant::port::memory {
namespace {

CUstream stream_of(Stream* stream) noexcept { return reinterpret_cast<CUstream>(stream); }
CUevent event_of(Event* event) noexcept { return reinterpret_cast<CUevent>(event); }

unsigned wait_flag(StreamWord::Act act) noexcept {
  switch (act) {
    case StreamWord::Act::wait_equal: return CU_STREAM_WAIT_VALUE_EQ;
    case StreamWord::Act::wait_any_bit: return CU_STREAM_WAIT_VALUE_AND;
    default: return CU_STREAM_WAIT_VALUE_GEQ;
  }
}

/// The default flag of a write fences: what the stream did before is visible system-wide when the value is.
CUstreamBatchMemOpParams operation_of(const StreamWord& word) noexcept {
  CUstreamBatchMemOpParams operation = {};
  const bool wide = word.bytes == 8;
  if (word.act == StreamWord::Act::write) {
    operation.writeValue.operation = wide ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operation.writeValue.address = address(word.word);
    operation.writeValue.value64 = word.value;  // of 4 bytes too: the halves share their beginning
    operation.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  } else {
    operation.waitValue.operation = wide ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
    operation.waitValue.address = address(word.word);
    operation.waitValue.value64 = word.value;
    operation.waitValue.flags = wait_flag(word.act);
  }
  return operation;
}

}  // namespace

CudaStreams::~CudaStreams() {
  if (!context_.own_process()) return;
  const ContextScope scope(context_);
  for (const PointerInfo& range : registered_.take_all()) context_.driver().mem_host_unregister(range.base);
}

Result<Stream*> CudaStreams::create_stream(StreamPriority priority) noexcept {
  CUstream stream = nullptr;
  const Status status = beside_captures(context_, "cuStreamCreateWithPriority", [&] {
    int lowest = 0, highest = 0;  // smaller numbers go first
    const CUresult known = context_.driver().stream_priority_range(&lowest, &highest);
    if (known != CUDA_SUCCESS) return known;
    return context_.driver().stream_create(&stream, CU_STREAM_NON_BLOCKING,
                                           priority == StreamPriority::high ? highest : lowest);
  });
  if (status != Status::ok) return status;
  return reinterpret_cast<Stream*>(stream);
}

void CudaStreams::destroy_stream(Stream* stream) noexcept {
  if (stream == nullptr || !context_.own_process()) return;
  const ContextScope scope(context_);
  // The driver would destroy it behind the work; callers free the buffers of that work next. Errors were or will be
  // told elsewhere.
  context_.driver().stream_synchronize(stream_of(stream));
  context_.driver().stream_destroy(stream_of(stream));
}

Status CudaStreams::copy(void* destination, const void* source, std::size_t bytes, Stream* stream) noexcept {
  if (stream == nullptr) return Status::invalid_argument;
  if (bytes == 0) return Status::ok;
  if (destination == nullptr || source == nullptr) return Status::invalid_argument;
  return in_context(context_, "cuMemcpyAsync", [&] {
    return context_.driver().memcpy_async(address(destination), address(source), bytes, stream_of(stream));
  });
}

Status CudaStreams::fill(void* destination, std::byte value, std::size_t bytes, Stream* stream) noexcept {
  if (stream == nullptr) return Status::invalid_argument;
  if (bytes == 0) return Status::ok;
  if (destination == nullptr) return Status::invalid_argument;
  return in_context(context_, "cuMemsetD8Async", [&] {
    return context_.driver().memset_d8_async(address(destination), std::to_integer<unsigned char>(value), bytes,
                                             stream_of(stream));
  });
}

Status CudaStreams::at_words(std::span<const StreamWord> words, Stream* stream) noexcept {
  if (stream == nullptr) return Status::invalid_argument;
  if (words.size() > kWordsMax) return Status::limit_reached;
  std::array<CUstreamBatchMemOpParams, kWordsMax> operations;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].well_formed()) return Status::invalid_argument;
    operations[i] = operation_of(words[i]);
  }
  if (!words_) return Status::not_supported;
  if (words.empty()) return Status::ok;
  return in_context(context_, "cuStreamBatchMemOp", [&] {
    return context_.driver().stream_batch_mem_op(stream_of(stream), static_cast<unsigned>(words.size()),
                                                 operations.data(), 0);
  });
}

Status CudaStreams::call_host(HostFunction function, void* argument, Stream* stream) noexcept {
  if (function == nullptr || stream == nullptr) return Status::invalid_argument;
  return in_context(context_, "cuLaunchHostFunc",
                    [&] { return context_.driver().launch_host_func(stream_of(stream), function, argument); });
}

Status CudaStreams::register_host(void* base, std::size_t bytes) noexcept {
  if (base == nullptr || bytes == 0) return Status::invalid_argument;
  constexpr unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
  const Status status = beside_captures(context_, "cuMemHostRegister",
                                        [&] { return context_.driver().mem_host_register(base, bytes, flags); });
  if (status != Status::ok) return status;
  const PointerInfo range{
      .kind = MemoryKind::pinned, .device = -1, .base = base, .bytes = bytes, .buffer_id = next_buffer_id()};
  const Status known = registered_.insert(range);
  if (known == Status::ok) return Status::ok;
  const ContextScope scope(context_);
  context_.driver().mem_host_unregister(base);
  return known;
}

Status CudaStreams::unregister_host(void* base) noexcept {
  if (const auto range = registered_.remove(base); !range) return range.status();
  context_.staying_kernels().expect_none("cuMemHostUnregister");
  return beside_captures(context_, "cuMemHostUnregister", [&] { return context_.driver().mem_host_unregister(base); });
}

Result<Event*> CudaStreams::create_event(bool timing) noexcept {
  CUevent event = nullptr;
  const unsigned flags = timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  const Status status =
      beside_captures(context_, "cuEventCreate", [&] { return context_.driver().event_create(&event, flags); });
  if (status != Status::ok) return status;
  return reinterpret_cast<Event*>(event);
}

void CudaStreams::destroy_event(Event* event) noexcept {
  if (event == nullptr || !context_.own_process()) return;
  const ContextScope scope(context_);
  context_.driver().event_destroy(event_of(event));
}

Status CudaStreams::record(Event* event, Stream* stream) noexcept {
  if (event == nullptr || stream == nullptr) return Status::invalid_argument;
  return in_context(context_, "cuEventRecord",
                    [&] { return context_.driver().event_record(event_of(event), stream_of(stream)); });
}

Status CudaStreams::wait_event(Stream* stream, Event* event) noexcept {
  if (event == nullptr || stream == nullptr) return Status::invalid_argument;
  return in_context(context_, "cuStreamWaitEvent",
                    [&] { return context_.driver().stream_wait_event(stream_of(stream), event_of(event), 0); });
}

Status CudaStreams::poll(Event* event) noexcept {
  if (event == nullptr) return Status::invalid_argument;
  return beside_captures(context_, "cuEventQuery", [&] { return context_.driver().event_query(event_of(event)); });
}

Status CudaStreams::poll(Stream* stream) noexcept {
  if (stream == nullptr) return Status::invalid_argument;
  return beside_captures(context_, "cuStreamQuery", [&] { return context_.driver().stream_query(stream_of(stream)); });
}

Result<double> CudaStreams::elapsed_us(Event* from, Event* to) noexcept {
  if (from == nullptr || to == nullptr) return Status::invalid_argument;
  float milliseconds = 0;
  const Status status = beside_captures(context_, "cuEventElapsedTime", [&] {
    return context_.driver().event_elapsed_time(&milliseconds, event_of(from), event_of(to));
  });
  if (status != Status::ok) return status;
  return static_cast<double>(milliseconds) * 1e3;
}

Status CudaStreams::synchronize(Stream* stream) noexcept {
  if (stream == nullptr) return Status::invalid_argument;
  return beside_captures(context_, "cuStreamSynchronize",
                         [&] { return context_.driver().stream_synchronize(stream_of(stream)); });
}

Status CudaStreams::synchronize_all() noexcept {
  context_.staying_kernels().expect_none("cuCtxSynchronize");
  return beside_captures(context_, "cuCtxSynchronize", [&] { return context_.driver().ctx_synchronize(); });
}

Status CudaStreams::begin_capture(Stream* stream) noexcept {
  if (stream == nullptr) return Status::invalid_argument;
  return in_context(context_, "cuStreamBeginCapture", [&] {
    return context_.driver().stream_begin_capture(stream_of(stream), CU_STREAM_CAPTURE_MODE_RELAXED);
  });
}

Result<Graph*> CudaStreams::end_capture(Stream* stream) noexcept {
  if (stream == nullptr) return Status::invalid_argument;
  CUgraph recorded = nullptr;
  Status status = in_context(context_, "cuStreamEndCapture",
                             [&] { return context_.driver().stream_end_capture(stream_of(stream), &recorded); });
  if (status != Status::ok) return status;
  CUgraphExec ready = nullptr;
  status = beside_captures(context_, "cuGraphInstantiateWithFlags",
                           [&] { return context_.driver().graph_instantiate(&ready, recorded, 0); });
  const ContextScope scope(context_);
  context_.driver().graph_destroy(recorded);
  if (status != Status::ok) return status;
  return reinterpret_cast<Graph*>(ready);
}

Status CudaStreams::launch(Graph* graph, Stream* stream) noexcept {
  if (graph == nullptr || stream == nullptr) return Status::invalid_argument;
  return in_context(context_, "cuGraphLaunch", [&] {
    return context_.driver().graph_launch(reinterpret_cast<CUgraphExec>(graph), stream_of(stream));
  });
}

void CudaStreams::destroy_graph(Graph* graph) noexcept {
  if (graph == nullptr || !context_.own_process()) return;
  const ContextScope scope(context_);
  context_.driver().graph_exec_destroy(reinterpret_cast<CUgraphExec>(graph));
}

Result<bool> CudaStreams::captures(Stream* stream) noexcept {
  if (stream == nullptr) return Status::invalid_argument;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  const Status status = in_context(context_, "cuStreamIsCapturing",
                                   [&] { return context_.driver().stream_is_capturing(stream_of(stream), &capture); });
  if (status != Status::ok) return status;
  return capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace brant::port::memory
