#include "bench/ucx/baseline.h"

#include <chrono>
#include <cstring>

#include <fmt/format.h>
#include <ucp/api/ucp.h>

#include "brant/base/status.h"
#include "port/wire/ucx/ucx_library.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr ucp_tag_t kTag = 1;
constexpr ucp_tag_t kWholeTag = ~ucp_tag_t{0};
constexpr std::size_t kReplyBytes = 4;
constexpr std::uint64_t kMessages = UCP_FEATURE_TAG;
constexpr std::uint64_t kOneSided = UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
constexpr unsigned kSpinsPerLook = 1u << 20;  // rare enough not to be measured
constexpr auto kPatience = std::chrono::seconds(30);

double microseconds(Clock::duration duration) noexcept {
  return std::chrono::duration<double, std::micro>(duration).count();
}

class RawUcx final : public UcxBaseline {
 public:
  explicit RawUcx(UcxBaselineUse use) : ucx_(port::ucx::ucx_library()) {
    try {
      open(use == UcxBaselineUse::one_sided ? kOneSided : kMessages);
    } catch (...) {
      close();
      throw;
    }
  }
  ~RawUcx() override { close(); }

  [[nodiscard]] std::span<const std::byte> address() const noexcept override {
    return {reinterpret_cast<const std::byte*>(address_), address_bytes_};
  }

  void connect(std::span<const std::byte> peer_address) override {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(peer_address.data());
    check(ucx_.ep_create(worker_, &params, &endpoint_), "ucp_ep_create");
  }

  void ping_pong(bool begins, const void* source, void* landing, std::size_t bytes,
                 std::span<double> round_trip_us) override {
    Clock::time_point last = Clock::now();
    for (double& sample : round_trip_us) {
      if (begins) {
        void* const sent = send(source, bytes);
        wait(receive(landing, bytes));
        wait(sent);
      } else {
        wait(receive(landing, bytes));
        wait(send(source, bytes));
      }
      const Clock::time_point now = Clock::now();
      sample = microseconds(now - last);
      last = now;
    }
  }

  void windows(bool sends, void* data, std::size_t bytes, std::size_t window, std::span<double> window_us) override {
    std::vector<void*> requests(window);
    Clock::time_point last = Clock::now();
    for (double& sample : window_us) {
      for (void*& request : requests) request = sends ? send(data, bytes) : receive(data, bytes);
      for (void* request : requests) wait(request);
      wait(sends ? receive(data, kReplyBytes) : send(data, kReplyBytes));
      const Clock::time_point now = Clock::now();
      sample = microseconds(now - last);
      last = now;
    }
  }

  std::vector<std::byte> expose(void* data, std::size_t bytes) override {
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = data;
    params.length = bytes;
    check(ucx_.mem_map(context_, &params, &exposed_), "ucp_mem_map");
    void* packed = nullptr;
    std::size_t packed_bytes = 0;
    check(ucx_.rkey_pack(context_, exposed_, &packed, &packed_bytes), "ucp_rkey_pack");
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(data);
    std::vector<std::byte> whole(sizeof(address) + packed_bytes);
    std::memcpy(whole.data(), &address, sizeof(address));
    std::memcpy(whole.data() + sizeof(address), packed, packed_bytes);
    ucx_.rkey_buffer_release(packed);
    return whole;
  }

  void reach(std::span<const std::byte> exposed) override {
    std::memcpy(&there_, exposed.data(), sizeof(there_));
    check(ucx_.ep_rkey_unpack(endpoint_, exposed.data() + sizeof(there_), &key_), "ucp_ep_rkey_unpack");
  }

  void one_sided(OneSided what, void* local, std::size_t bytes, std::size_t window, std::span<double> us,
                 Timed timed) override {
    const ucp_request_param_t param{};
    std::vector<void*> requests(window);
    Clock::time_point last = Clock::now();
    for (double& sample : us) {
      for (void*& request : requests) request = begin(what, local, bytes);
      if (timed == Timed::posts) sample = microseconds(Clock::now() - last);
      void* const flushed = what == OneSided::put ? ucx_.ep_flush_nbx(endpoint_, &param) : nullptr;
      for (void* request : requests) wait(request);
      wait(flushed);
      const Clock::time_point now = Clock::now();
      if (timed == Timed::completion) sample = microseconds(now - last);
      last = now;
    }
  }

  void progress() noexcept override { ucx_.worker_progress(worker_); }

 private:
  void check(ucs_status_t status, const char* call) const {
    if (status == UCS_OK) return;
    throw Error(Status::io_error, fmt::format("raw UCX {} ({}): {} failed: {}", ucx_.version, ucx_.path, call,
                                              ucx_.status_string(status)));
  }

  void open(std::uint64_t features) {
    ucp_config_t* config = nullptr;
    check(ucx_.config_read(nullptr, nullptr, &config), "ucp_config_read");
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = features;
    const ucs_status_t opened = ucx_.init_version(1, 16, &params, config, &context_);
    ucx_.config_release(config);
    check(opened, "ucp_init");
    ucp_worker_params_t worker_params{};
    worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
    check(ucx_.worker_create(context_, &worker_params, &worker_), "ucp_worker_create");
    check(ucx_.worker_get_address(worker_, &address_, &address_bytes_), "ucp_worker_get_address");
  }

  void close() noexcept {
    if (key_ != nullptr) ucx_.rkey_destroy(key_);
    if (endpoint_ != nullptr) {
      ucp_request_param_t param{};
      param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      param.flags = UCP_EP_CLOSE_FLAG_FORCE;  // the other side may be gone already
      void* const request = ucx_.ep_close_nbx(endpoint_, &param);
      if (UCS_PTR_IS_PTR(request)) {
        const Clock::time_point give_up = Clock::now() + std::chrono::seconds(1);
        while (ucx_.request_check_status(request) == UCS_INPROGRESS && Clock::now() < give_up) progress();
        ucx_.request_free(request);
      }
    }
    if (exposed_ != nullptr) ucx_.mem_unmap(context_, exposed_);
    if (address_ != nullptr) ucx_.worker_release_address(worker_, address_);
    if (worker_ != nullptr) ucx_.worker_destroy(worker_);
    if (context_ != nullptr) ucx_.cleanup(context_);
  }

  void* begin(OneSided what, void* local, std::size_t bytes) {
    static constexpr std::uint64_t kStep = 1;
    ucp_request_param_t param{};
    switch (what) {
      case OneSided::put: return ucx_.put_nbx(endpoint_, local, bytes, there_, key_, &param);
      case OneSided::get: return ucx_.get_nbx(endpoint_, local, bytes, there_, key_, &param);
      case OneSided::fetch_add: break;
    }
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    param.datatype = ucp_dt_make_contig(bytes);
    param.reply_buffer = local;
    return ucx_.atomic_op_nbx(endpoint_, UCP_ATOMIC_OP_ADD, &kStep, 1, there_, key_, &param);
  }

  void* send(const void* data, std::size_t bytes) {
    const ucp_request_param_t param{};
    return ucx_.tag_send_nbx(endpoint_, data, bytes, kTag, &param);
  }

  void* receive(void* data, std::size_t bytes) {
    const ucp_request_param_t param{};
    return ucx_.tag_recv_nbx(worker_, data, bytes, kTag, kWholeTag, &param);
  }

  void wait(void* request) {
    if (request == nullptr) return;
    if (UCS_PTR_IS_ERR(request)) check(UCS_PTR_STATUS(request), "a transfer");
    ucs_status_t status = UCS_INPROGRESS;
    Clock::time_point give_up{};
    for (unsigned spins = 0; (status = ucx_.request_check_status(request)) == UCS_INPROGRESS; ++spins) {
      ucx_.worker_progress(worker_);
      if (spins % kSpinsPerLook != kSpinsPerLook - 1) continue;
      const Clock::time_point now = Clock::now();
      if (give_up == Clock::time_point{}) give_up = now + kPatience;
      // The request is left to UCX: a transfer that is under way cannot be taken back.
      if (now > give_up)
        throw Error(Status::timed_out, "raw UCX: nothing has moved for 30 s; is the other process alive?");
    }
    ucx_.request_free(request);
    check(status, "a transfer");
  }

  const port::ucx::UcxLibrary& ucx_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_address_t* address_ = nullptr;
  std::size_t address_bytes_ = 0;
  ucp_ep_h endpoint_ = nullptr;
  ucp_mem_h exposed_ = nullptr;
  ucp_rkey_h key_ = nullptr;  ///< Of the other side's exposed memory,
  std::uint64_t there_ = 0;   ///< which begins here over there.
};

}  // namespace

std::unique_ptr<UcxBaseline> open_ucx_baseline(UcxBaselineUse use) { return std::make_unique<RawUcx>(use); }

}  // namespace brant::bench
