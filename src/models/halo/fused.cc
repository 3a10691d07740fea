#include "models/halo/fused.h"

#include <algorithm>
#include <chrono>

#include "brant/core/stream_done.h"
#include "core/engine.h"
#include "models/halo/require.h"

namespace brant::halo {
namespace {

constexpr std::size_t kMessageStep = 256;  ///< Messages begin where a copy is as fast as it gets,
constexpr std::size_t kRegionStep = 16;    ///< and regions where threads copy the widest words.

std::size_t round_up(std::size_t bytes, std::size_t step) noexcept { return (bytes + step - 1) / step * step; }

double us_since(TimePoint& begin) noexcept {
  const TimePoint now = Clock::now();
  const double us = std::chrono::duration<double, std::micro>(now - begin).count();
  begin = now;
  return us;
}

}  // namespace

FusedExchange::FusedExchange(Runtime& runtime, const HaloOptions& options, const MessageCut& cut)
    : Exchange(runtime, options), transfers_(runtime, layout_), to_itself_(cut.per == HaloMessages::all) {
  send_bytes_ = plan_messages(layout_.sends(), cut, true);
  for (const Link& link : layout_.sends()) {
    if (!travels(link)) copies_.add_within(layout_, link);
  }
  own_ = copies_.end_phase();
  receive_bytes_ = plan_messages(layout_.receives(), cut, false);
  pack_ = {0, own_.last};
  unpack_ = {own_.last, copies_.end_phase().last};
  bases_.resize(static_cast<std::size_t>(layout_.blocks()) + 2);
}

// Planned
// -------------------------------------------------------------------------------------------------------------------

bool FusedExchange::travels(const Link& link) const noexcept { return link.rank != layout_.rank() || to_itself_; }

std::size_t FusedExchange::plan_messages(const std::vector<Link>& links, const MessageCut& cut, bool is_send) {
  std::size_t offset = 0;
  for (const std::span<const Link> message : cut_into_messages(links, cut)) {
    if (!travels(message[0])) continue;
    const std::size_t bytes = plan_message(message, offset, is_send);
    (is_send ? sends_ : receives_).push_back({&transfers_.add(message, bytes, is_send), offset, copies_.end_phase()});
    offset = round_up(offset + bytes, kMessageStep);
  }
  return offset;
}

std::size_t FusedExchange::plan_message(std::span<const Link> links, std::size_t offset, bool is_send) {
  const std::size_t cell = layout_.options().cell_bytes;
  const std::size_t variables = layout_.options().variables;
  const auto fields = static_cast<std::size_t>(layout_.blocks());
  std::size_t bytes = 0;
  for (const Link& link : links) {
    const FieldStrides strides = layout_.strides_of(is_send ? link.message.from : link.message.to);
    for (const Region& region : link.message.regions) {
      const Box& box = is_send ? region.from : region.to;
      bytes = round_up(bytes, kRegionStep);
      const CopyEnd in_field = Copies::end_in_field(strides, box, link.field);
      const CopyEnd packed = Copies::end_packed(strides, box, is_send ? fields : fields + 1, offset + bytes);
      copies_.add(is_send ? in_field : packed, is_send ? packed : in_field, box, cell, variables);
      bytes += static_cast<std::size_t>(box.cells()) * cell * variables;
    }
  }
  return bytes;
}

std::size_t FusedExchange::message_bytes() const noexcept {
  std::size_t sum = 0;
  for (const Part& part : sends_) sum += part.transfer->bytes;
  return sum;
}

// Run
// -------------------------------------------------------------------------------------------------------------------

void FusedExchange::prepare(std::span<const Buffer> fields) {
  MemoryKind kind = fields[0].kind;
  require(runtime_.worker().engine().memory_kinds().resolve(fields[0].data, fields[0].bytes, kind),
          "halo: the first field is no memory of this process");
  if (kind != kind_) make_buffers(kind);
  for (std::size_t i = 0; i < fields.size(); ++i) bases_[i] = static_cast<std::byte*>(fields[i].data);
  bases_[fields.size()] = static_cast<std::byte*>(send_buffer_.data());
  bases_[fields.size() + 1] = static_cast<std::byte*>(receive_buffer_.data());
}

void FusedExchange::make_buffers(MemoryKind kind) {
  by_device_ = !host_accessible(kind) || kind == MemoryKind::cuda_managed;
  const MemoryKind buffers = by_device_ ? runtime_.device_kind() : kind;
  kind_ = MemoryKind::detect;
  send_buffer_ = {};
  receive_buffer_ = {};
  if (send_bytes_ != 0) send_buffer_ = runtime_.allocate(buffers, send_bytes_);
  if (receive_bytes_ != 0) receive_buffer_ = runtime_.allocate(buffers, receive_bytes_);
  if (by_device_ && !uploaded_) {
    stream_ = runtime_.device().create_stream(StreamPriority::high);
    copies_.upload(runtime_, bases_.size());
    uploaded_ = true;
  }
  kind_ = kind;
}

Buffer FusedExchange::part_of(const Memory& memory, const Part& part) const {
  return memory.part(part.offset, part.transfer->bytes);
}

Task<void> FusedExchange::exchange(std::span<const Buffer> fields) {
  prepare(fields);
  co_await exchange_prepared();
}

Task<void> FusedExchange::exchange_prepared() {
  HaloPhases took;
  TimePoint begin = Clock::now();
  for (Part& part : receives_) transfers_.post(*part.transfer, part_of(receive_buffer_, part));
  if (by_device_) {
    require(copies_.set_bases(bases_, stream_), "halo: the addresses of the fields did not reach the device");
    require(copies_.launch(pack_, stream_), "halo: the kernel that packs was not launched");
  } else {
    copies_.run_on_cpu(pack_, bases_);
  }
  took.pack = us_since(begin);
  if (by_device_) co_await stream_done(runtime_, stream_);
  took.sync = us_since(begin);
  for (Part& part : sends_) transfers_.post(*part.transfer, part_of(send_buffer_, part));
  co_await transfers_.ended();
  took.comm = us_since(begin);
  if (!by_device_) {
    copies_.run_on_cpu(unpack_, bases_);
  } else if (!unpack_.empty()) {
    require(copies_.launch(unpack_, stream_), "halo: the kernel that unpacks was not launched");
    co_await stream_done(runtime_, stream_);
  }
  took.unpack = us_since(begin);
  phases_ = took;
}

void FusedExchange::give_up() noexcept {
  transfers_.give_up();
  // Kernels that were launched end by themselves; its status is nobody's any more.
  if (by_device_) static_cast<void>(stream_.synchronize());
}

}  // namespace brant::halo
