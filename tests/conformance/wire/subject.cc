#include "conformance/wire/subject.h"

#include "port/wire/faulty/faulty.h"
#include "port/wire/loopback/loopback.h"
#include "port/wire/ucx/open.h"

namespace brant::port::test {
namespace {

WirePair connected(WirePair pair) {
  const auto link = [](Wire& from, Wire& to) {
    const Result<WireEndpoint*> endpoint = from.connect(to.address());
    if (!endpoint) throw Error(endpoint.status(), "test set-up: connect failed");
    return *endpoint;
  };
  pair.to_right = link(*pair.left, *pair.right);
  pair.to_left = link(*pair.right, *pair.left);
  pair.to_self = link(*pair.left, *pair.left);
  return pair;
}

WirePair open_loopback(const LoopbackOptions& options) {
  WirePair pair;
  auto network = std::make_shared<LoopbackNetwork>(options);
  pair.left = network->open_wire();
  pair.right = network->open_wire();
  pair.network = network;
  return connected(std::move(pair));
}

WirePair open_faulty(const FaultPolicy& policy) {
  WirePair pair;
  auto network = std::make_shared<LoopbackNetwork>();
  pair.left = std::make_unique<FaultyWire>(network->open_wire(), policy);
  pair.right = std::make_unique<FaultyWire>(network->open_wire(), policy);
  pair.network = network;
  return connected(std::move(pair));
}

WirePair open_ucx(const UcxOptions& options) {
  WirePair pair;
  pair.left = open_ucx_wire(options);
  pair.right = open_ucx_wire(options);
  return connected(std::move(pair));
}

}  // namespace

std::vector<WireSubject> subjects() {
  LoopbackOptions shuffled;
  shuffled.seed = 20;
  shuffled.delay_max = 7;
  shuffled.shuffle_pairs = true;
  shuffled.shuffle_tags = true;
  FaultPolicy slow;
  slow.completion_delay = 5;
  UcxOptions reporting;
  reporting.sleep = false;
  reporting.peer_errors_on_same_host = true;
  return {
      {"loopback", [] { return open_loopback({}); }},
      {"loopback_shuffled", [shuffled] { return open_loopback(shuffled); }},
      {"faulty_without_faults", [] { return open_faulty({}); }},
      {"faulty_slow", [slow] { return open_faulty(slow); }},
      {"ucx", [] { return open_ucx({}); }},
      {"ucx_reporting", [reporting] { return open_ucx(reporting); }},
  };
}

}  // namespace brant::port::test
