// What brant uses of NCCL, for tests: FAKE_NCCL names the function that fails, or "hang" for two processes that never
// meet. FAKE_NCCL_LOG names a file that gets a line for each call. Messages move nothing. Collectives are carried out
// by the CPU when they are queued, also in a capture: streams wait for nothing, and memory is what the CPU reads.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "fake_exchange.h"

namespace {

struct Id {
  char bytes[128];
};

constexpr int kUnhandledCudaError = 1;

void note(const std::string& line) {
  const char* name = std::getenv("FAKE_NCCL_LOG");
  if (name == nullptr) return;
  std::FILE* file = std::fopen(name, "a");
  if (file == nullptr) return;
  std::fputs((line + "\n").c_str(), file);
  std::fclose(file);
}

bool is(const char* what) {
  const char* wanted = std::getenv("FAKE_NCCL");
  return wanted != nullptr && std::string(wanted) == what;
}

int answer(const char* call) {
  note(call);
  return is(call) ? kUnhandledCudaError : 0;
}

int transfer(const char* call, std::size_t count, int type, int peer, void* stream) {
  note(std::string(call) + " " + std::to_string(count) + " of type " + std::to_string(type) + " peer " +
       std::to_string(peer) + (stream != nullptr ? " on a stream" : ""));
  return is(call) ? kUnhandledCudaError : 0;
}

FakeExchange the_communicator;

/// A name in shared memory for those that have this id: another one for each that was made.
std::string name_of(const Id& id) { return std::string("/") + &id.bytes[1]; }

/// Each gives `give` floats at `in`; `take` makes of what all have given what this one gets.
int collective(const char* call, std::size_t count, int type, const void* in, std::size_t give, void* stream,
               const std::function<void()>& take) {
  note(std::string(call) + " " + std::to_string(count) + " of type " + std::to_string(type) +
       (stream != nullptr ? " on a stream" : ""));
  if (is(call) || !the_communicator.run(in, give * sizeof(float), take)) return kUnhandledCudaError;
  return 0;
}

const float* floats_of(int rank) { return reinterpret_cast<const float*>(the_communicator.given(rank)); }

void add_up(float* out, std::size_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = 0;
    for (int rank = 0; rank < the_communicator.ranks(); ++rank) out[i] += floats_of(rank)[first + i];
  }
}

/// Behind each other from each one's floats at `first`.
void string_together(float* out, std::size_t first, std::size_t block) {
  for (int rank = 0; rank < the_communicator.ranks(); ++rank)
    std::copy_n(floats_of(rank) + first, block, out + static_cast<std::size_t>(rank) * block);
}

std::size_t blocks(std::size_t count) { return count * static_cast<std::size_t>(the_communicator.ranks()); }
std::size_t own_first(std::size_t count) { return count * static_cast<std::size_t>(the_communicator.rank()); }

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE int ncclGetVersion(int* version) {
  *version = 22803;
  return 0;
}
FAKE int ncclGetUniqueId(Id* id) {
  static int made = 0;
  std::snprintf(id->bytes + 1, 64, "fake_nccl.%d.%d", static_cast<int>(::getpid()), ++made);
  id->bytes[0] = 7;
  id->bytes[127] = 9;
  return answer("ncclGetUniqueId");
}
FAKE int ncclCommInitRank(void** comm, int ranks, Id id, int rank) {
  note("ncclCommInitRank " + std::to_string(rank) + " of " + std::to_string(ranks) + " id " +
       std::to_string(id.bytes[0]) + " " + std::to_string(id.bytes[127]));
  if (is("hang")) ::sleep(3600);
  the_communicator.join(name_of(id), rank, ranks);
  *comm = &the_communicator;
  return is("ncclCommInitRank") ? kUnhandledCudaError : 0;
}
FAKE int ncclCommDestroy(void* comm) {
  the_communicator.leave();
  return answer(comm == &the_communicator ? "ncclCommDestroy" : "destroyed none");
}
FAKE int ncclCommAbort(void* comm) {
  the_communicator.leave();
  return answer(comm == &the_communicator ? "ncclCommAbort" : "aborted none");
}
FAKE int ncclSend(const void*, std::size_t count, int type, int peer, void*, void* stream) {
  return transfer("ncclSend", count, type, peer, stream);
}
FAKE int ncclRecv(void*, std::size_t count, int type, int peer, void*, void* stream) {
  return transfer("ncclRecv", count, type, peer, stream);
}
FAKE int ncclAllReduce(const float* in, float* out, std::size_t count, int type, int, void*, void* stream) {
  return collective("ncclAllReduce", count, type, in, count, stream, [&] { add_up(out, 0, count); });
}
FAKE int ncclReduceScatter(const float* in, float* out, std::size_t count, int type, int, void*, void* stream) {
  return collective("ncclReduceScatter", count, type, in, blocks(count), stream,
                    [&] { add_up(out, own_first(count), count); });
}
FAKE int ncclBroadcast(const float* in, float* out, std::size_t count, int type, int root, void*, void* stream) {
  return collective("ncclBroadcast", count, type, in, count, stream, [&] { std::copy_n(floats_of(root), count, out); });
}
FAKE int ncclAllGather(const float* in, float* out, std::size_t count, int type, void*, void* stream) {
  return collective("ncclAllGather", count, type, in, count, stream, [&] { string_together(out, 0, count); });
}
FAKE int ncclAlltoAll(const float* in, float* out, std::size_t count, int type, void*, void* stream) {
  return collective("ncclAlltoAll", count, type, in, blocks(count), stream,
                    [&] { string_together(out, own_first(count), count); });
}
FAKE int ncclGroupStart() { return answer("ncclGroupStart"); }
FAKE int ncclGroupEnd() { return answer("ncclGroupEnd"); }
FAKE const char* ncclGetErrorString(int outcome) { return outcome == 0 ? "no error" : "unhandled cuda error"; }
FAKE const char* ncclGetLastError(void*) { return "the fake was told to fail"; }
/// Says to brant that devices need not be GPUs.
FAKE int brantNcclStandIn() { return 1; }
