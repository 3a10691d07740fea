// What the adapter adds to UCX: 8-byte tagged messages within one thread, first on raw UCX, then on the Wire interface,
// by turns.
//   wire_overhead [ROUNDS]
// Both run the same pattern (post the receive, send, progress until both are done) on two workers of one process with
// the same UCX settings.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "brant/base/status.h"
#include "port/wire/loopback/loopback.h"
#include "port/wire/ucx/open.h"
#include "port/wire/ucx/ucx_config.h"

namespace brant::port {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kPerRound = 2000;

double ns_per_message(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kPerRound;
}

/// The least a program can do with UCX: requests of UCX, a flag per operation.
class Raw {
 public:
  Raw() : lib_(ucx::ucx_library()) {
    for (Side& side : sides_) {
      side.context = ucx::open_context(lib_, {});
      ucp_worker_params_t params{};
      params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
      params.thread_mode = UCS_THREAD_MODE_SINGLE;
      if (lib_.worker_create(side.context, &params, &side.worker) != UCS_OK) std::abort();
    }
    for (int i = 0; i < 2; ++i) connect(sides_[i], sides_[1 - i]);
  }
  double round() {
    const auto begin = Clock::now();
    for (int i = 0; i < kPerRound; ++i) {
      void* received = post_receive();
      void* sent = post_send();
      while (busy(received) || busy(sent)) {
        lib_.worker_progress(sides_[1].worker);
        lib_.worker_progress(sides_[0].worker);
      }
      if (received != nullptr) lib_.request_free(received);
      if (sent != nullptr) lib_.request_free(sent);
    }
    return ns_per_message(begin);
  }

 private:
  struct Side {
    ucp_context_h context = nullptr;
    ucp_worker_h worker = nullptr;
    ucp_ep_h endpoint = nullptr;
  };
  void connect(Side& from, Side& target) {
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    if (lib_.worker_get_address(target.worker, &address, &bytes) != UCS_OK) std::abort();
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = address;
    if (lib_.ep_create(from.worker, &params, &from.endpoint) != UCS_OK) std::abort();
    lib_.worker_release_address(target.worker, address);
  }
  void* post_receive() {
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    params.memory_type = UCS_MEMORY_TYPE_HOST;
    return lib_.tag_recv_nbx(sides_[1].worker, &in_, 8, 1, ~std::uint64_t{0}, &params);
  }
  void* post_send() {
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    params.memory_type = UCS_MEMORY_TYPE_HOST;
    return lib_.tag_send_nbx(sides_[0].endpoint, &out_, 8, 1, &params);
  }
  bool busy(void* request) const { return request != nullptr && lib_.request_check_status(request) == UCS_INPROGRESS; }

  const ucx::UcxLibrary& lib_;
  Side sides_[2];
  std::uint64_t out_ = 1, in_ = 0;
};

class OnWire {
 public:
  OnWire(std::unique_ptr<Wire> left, std::unique_ptr<Wire> right) : left_(std::move(left)), right_(std::move(right)) {
    to_right_ = *left_->connect(right_->address());
    if (!right_->connect(left_->address())) std::abort();
  }
  double round() {
    const auto begin = Clock::now();
    for (int i = 0; i < kPerRound; ++i) {
      WireOp sent, received;
      sent.on_complete = received.on_complete = [](WireOp&) noexcept {};
      Status receiving = right_->tag_recv(1, ~std::uint64_t{0}, Buffer{&in_, 8, MemoryKind::host}, received);
      Status sending = left_->tag_send(to_right_, 1, ConstBuffer{&out_, 8, MemoryKind::host}, sent);
      while ((receiving == Status::in_progress && received.request != nullptr) ||
             (sending == Status::in_progress && sent.request != nullptr)) {
        right_->progress();
        right_->deliver(8);
        left_->progress();
        left_->deliver(8);
      }
    }
    return ns_per_message(begin);
  }

 private:
  std::unique_ptr<Wire> left_, right_;
  WireEndpoint* to_right_ = nullptr;
  std::uint64_t out_ = 1, in_ = 0;
};

void print(const char* name, std::vector<double>& ns) {
  std::sort(ns.begin(), ns.end());
  std::printf("%-10s min %7.1f  p50 %7.1f ns per message\n", name, ns.front(), ns[ns.size() / 2]);
}

int run(int rounds) {
  Raw raw;
  OnWire wire(open_ucx_wire({}), open_ucx_wire({}));
  LoopbackNetwork network;
  OnWire loopback(network.open_wire(), network.open_wire());
  std::vector<double> of_raw, of_wire, of_loopback;
  for (int i = 0; i < rounds; ++i) {
    of_raw.push_back(raw.round());
    of_wire.push_back(wire.round());
    of_loopback.push_back(loopback.round());
  }
  print("raw ucx", of_raw);
  print("wire ucx", of_wire);
  print("loopback", of_loopback);
  std::printf("the adapter adds %.1f ns (of the minima), %.1f ns (of the medians)\n", of_wire.front() - of_raw.front(),
              of_wire[of_wire.size() / 2] - of_raw[of_raw.size() / 2]);
  return 0;
}

}  // namespace
}  // namespace brant::port

int main(int argc, char** argv) {
  try {
    return brant::port::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 300);
  } catch (const brant::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
