#include "support/faulty_device.h"

#include <utility>

#include "support/wrapped_device.h"

namespace brant::test {
namespace {

class FaultyStreams final : public port::Streams {
 public:
  FaultyStreams(port::Streams& inner, const DeviceFaults& faults) noexcept : inner_(inner), faults_(faults) {}

  Result<port::Stream*> create_stream(port::StreamPriority priority) noexcept override {
    if (faults_.no_memory()) return Status::no_memory;
    return inner_.create_stream(priority);
  }
  void destroy_stream(port::Stream* stream) noexcept override { inner_.destroy_stream(stream); }
  Status copy(void* destination, const void* source, std::size_t bytes, port::Stream* stream) noexcept override {
    if (faults_.no_memory()) return Status::no_memory;
    return faults_.copies != Status::ok ? faults_.copies : inner_.copy(destination, source, bytes, stream);
  }
  Status fill(void* destination, std::byte value, std::size_t bytes, port::Stream* stream) noexcept override {
    return inner_.fill(destination, value, bytes, stream);
  }
  Status at_words(std::span<const port::StreamWord> words, port::Stream* stream) noexcept override {
    return inner_.at_words(words, stream);
  }
  Status call_host(HostFunction function, void* argument, port::Stream* stream) noexcept override {
    return inner_.call_host(function, argument, stream);
  }
  Status register_host(void* base, std::size_t bytes) noexcept override { return inner_.register_host(base, bytes); }
  Status unregister_host(void* base) noexcept override { return inner_.unregister_host(base); }
  Result<port::Event*> create_event(bool timing) noexcept override {
    if (faults_.no_memory()) return Status::no_memory;
    return inner_.create_event(timing);
  }
  void destroy_event(port::Event* event) noexcept override { inner_.destroy_event(event); }
  Status record(port::Event* event, port::Stream* stream) noexcept override {
    if (faults_.no_memory()) return Status::no_memory;
    return inner_.record(event, stream);
  }
  Status wait_event(port::Stream* stream, port::Event* event) noexcept override {
    return inner_.wait_event(stream, event);
  }
  Status poll(port::Event* event) noexcept override {
    const Status status = inner_.poll(event);
    return status == Status::ok && faults_.events != Status::ok ? faults_.events : status;
  }
  Status poll(port::Stream* stream) noexcept override { return inner_.poll(stream); }
  Result<double> elapsed_us(port::Event* from, port::Event* to) noexcept override {
    return inner_.elapsed_us(from, to);
  }
  Status synchronize(port::Stream* stream) noexcept override { return inner_.synchronize(stream); }
  Status synchronize_all() noexcept override { return inner_.synchronize_all(); }
  Status begin_capture(port::Stream* stream) noexcept override { return inner_.begin_capture(stream); }
  Result<port::Graph*> end_capture(port::Stream* stream) noexcept override { return inner_.end_capture(stream); }
  Status launch(port::Graph* graph, port::Stream* stream) noexcept override { return inner_.launch(graph, stream); }
  void destroy_graph(port::Graph* graph) noexcept override { inner_.destroy_graph(graph); }
  Result<bool> captures(port::Stream* stream) noexcept override { return inner_.captures(stream); }

 private:
  port::Streams& inner_;
  const DeviceFaults& faults_;
};

class FaultyDevice final : public WrappedDevice {
 public:
  FaultyDevice(std::unique_ptr<port::Device> inner, DeviceFaults& faults) noexcept
      : WrappedDevice(std::move(inner)), faults_(faults), streams_(*WrappedDevice::streams(), faults) {}

  Result<void*> allocate(MemoryKind kind, std::size_t bytes) noexcept override {
    if (kind == MemoryKind::pinned && faults_.pinned != Status::ok) return faults_.pinned;
    if (faults_.no_memory()) return Status::no_memory;
    const Result<void*> allocated = WrappedDevice::allocate(kind, bytes);
    if (allocated) ++faults_.allocated;
    return allocated;
  }
  Status free(void* pointer) noexcept override {
    if (faults_.at_free) faults_.at_free();
    const Status freed = WrappedDevice::free(pointer);
    if (freed == Status::ok) --faults_.allocated;
    return freed;
  }
  Result<port::ExportRecord> export_allocation(const void* pointer) noexcept override {
    if (faults_.no_memory()) return Status::no_memory;
    return WrappedDevice::export_allocation(pointer);
  }
  Result<void*> import_allocation(const port::ExportRecord& record) noexcept override {
    if (faults_.imports != Status::ok) return faults_.imports;
    if (faults_.no_memory()) return Status::no_memory;
    const Result<void*> imported = WrappedDevice::import_allocation(record);
    if (imported) ++faults_.imported;
    return imported;
  }
  Result<port::ExportedFile> export_file(const void* pointer) noexcept override {
    if (faults_.files != Status::ok) return faults_.files;
    if (faults_.no_memory()) return Status::no_memory;
    return WrappedDevice::export_file(pointer);
  }
  Result<void*> import_file(const port::ExportRecord& record, int file) noexcept override {
    if (faults_.imports != Status::ok) return faults_.imports;
    if (faults_.no_memory()) return Status::no_memory;
    const Result<void*> imported = WrappedDevice::import_file(record, file);
    if (imported) ++faults_.imported;
    return imported;
  }
  Status close_import(void* imported) noexcept override {
    ++faults_.closed;
    return WrappedDevice::close_import(imported);
  }
  port::Streams* streams() noexcept override { return &streams_; }

 private:
  DeviceFaults& faults_;
  FaultyStreams streams_;
};

}  // namespace

std::unique_ptr<port::Device> make_faulty(std::unique_ptr<port::Device> inner, DeviceFaults& faults) {
  return std::make_unique<FaultyDevice>(std::move(inner), faults);
}

}  // namespace brant::test
