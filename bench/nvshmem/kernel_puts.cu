// What `brant bench kernel-puts` measures, by NVSHMEM: its rival. Compiled against an NVSHMEM where there is one, by
// tools/gpu_checks/nvshmem.py and no tree of CMake; two processes meet by a file. Prints a line of figures for each:
//   NAME BYTES BLOCKS ROUNDS MICROSECONDS
#include <nvshmem.h>
#include <nvshmemx.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kBlocks = 32;
constexpr int kThreads = 1024;
constexpr int kRounds = 2000;

__device__ unsigned long long now_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// Ping-pong of bytes with a signal behind them, by one block.
__global__ void put_signal(char* landing, const char* source, size_t bytes, uint64_t* signal, int rounds, int self,
                           unsigned long long* ns) {
  const int peer = 1 - self;
  const unsigned long long begin = now_ns();
  for (int round = 1; round <= rounds; ++round) {
    if (self == 0) nvshmemx_putmem_signal_nbi_block(landing, source, bytes, signal, round, NVSHMEM_SIGNAL_SET, peer);
    if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, round);
    __syncthreads();
    if (self == 1) nvshmemx_putmem_signal_nbi_block(landing, source, bytes, signal, round, NVSHMEM_SIGNAL_SET, peer);
  }
  if (threadIdx.x == 0) *ns = now_ns() - begin;
}

/// All blocks put their parts again and again; all has arrived at the end.
__global__ void __launch_bounds__(kThreads)
    put_stream(char* landing, const char* source, size_t bytes, int rounds, int self, unsigned long long* ns) {
  const size_t share = bytes / gridDim.x;
  const size_t offset = blockIdx.x * share;
  const unsigned long long begin = now_ns();
  if (self == 0) {
    for (int round = 0; round < rounds; ++round) nvshmemx_putmem_nbi_block(landing + offset, source + offset, share, 1);
    __syncthreads();
    if (threadIdx.x == 0) nvshmem_quiet();
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicMax(ns, now_ns() - begin);
}

__global__ void fetch_add(uint64_t* counter, int rounds, int self, unsigned long long* ns) {
  const unsigned long long begin = now_ns();
  uint64_t next = 0;
  for (int round = 0; self == 0 && round < rounds; ++round) {
    // The value is needed, or the compiler makes it an add that tells nothing.
    const uint64_t before = nvshmem_uint64_atomic_fetch_add(counter, 1, 1);
    if (before != next) break;
    next = before + 1;
  }
  *ns = self == 0 && next != rounds ? 0 : now_ns() - begin;
}

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "nvshmem: %s\n", what);
  std::exit(1);
}

/// The first process makes it, the other one finds it in the file.
nvshmemx_uniqueid_t unique_id(int self, const std::string& path) {
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  const std::string written = path + ".part";
  if (self == 0) {
    require(nvshmemx_get_uniqueid(&id) == 0, "no unique id");
    FILE* file = std::fopen(written.c_str(), "wb");
    require(file != nullptr && std::fwrite(&id, sizeof(id), 1, file) == 1, "the file of the meeting");
    std::fclose(file);
    require(std::rename(written.c_str(), path.c_str()) == 0, "the file of the meeting");
    return id;
  }
  FILE* file = nullptr;
  for (int tries = 0; tries < 3000 && (file = std::fopen(path.c_str(), "rb")) == nullptr; ++tries) usleep(10000);
  require(file != nullptr && std::fread(&id, sizeof(id), 1, file) == 1, "the first process made no file in 30 s");
  std::fclose(file);
  return id;
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 3, "usage: kernel_puts RANK FILE");
  const int self = std::atoi(argv[1]);
  require(cudaSetDevice(self) == cudaSuccess, "no such GPU");
  nvshmemx_uniqueid_t id = unique_id(self, argv[2]);
  nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
  nvshmemx_set_attr_uniqueid_args(self, 2, &id, &attributes);
  require(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) == 0, "it does not start");

  constexpr size_t kLargest = 16 << 20;
  char* landing = static_cast<char*>(nvshmem_malloc(kLargest));
  char* source = static_cast<char*>(nvshmem_malloc(kLargest));
  uint64_t* words = static_cast<uint64_t*>(nvshmem_malloc(4096));
  unsigned long long* ns = nullptr;
  require(landing && source && words && cudaMalloc(&ns, sizeof(*ns)) == cudaSuccess, "no memory");
  require(nvshmem_ptr(landing, 1 - self) != nullptr, "the GPUs do not reach each other's memory");
  cudaMemset(words, 0, 4096);

  const auto elapsed = [&](const char* what) {
    require(cudaDeviceSynchronize() == cudaSuccess, what);
    unsigned long long told = 0;
    cudaMemcpy(&told, ns, sizeof(told), cudaMemcpyDeviceToHost);
    cudaMemset(ns, 0, sizeof(*ns));
    nvshmem_barrier_all();
    return double(told) / 1e3;
  };
  const auto tell = [&](const char* name, size_t bytes, int blocks, int rounds, double us) {
    if (self == 0) std::printf("%s %zu %d %d %.4f\n", name, bytes, blocks, rounds, us);
  };
  cudaMemset(ns, 0, sizeof(*ns));
  nvshmem_barrier_all();

  int used = 0;
  for (const size_t bytes : {size_t{8}, size_t{1024}, size_t{65536}}) {
    const int threads = int(bytes / 16 < 32 ? 32 : bytes / 16 > kThreads ? kThreads : bytes / 16);
    put_signal<<<1, threads>>>(landing, source, bytes, words + 16 * used++, kRounds, self, ns);
    tell("kernel_put_notify", bytes, 1, kRounds, elapsed("put and signal") / kRounds / 2);
  }
  fetch_add<<<1, 1>>>(words + 256, kRounds, self, ns);
  tell("kernel_fetch_add_relaxed", 8, 1, kRounds, elapsed("fetch and add") / kRounds);
  for (const size_t bytes : {size_t{65536}, size_t{1} << 20, kLargest}) {
    const int rounds = bytes <= size_t{1} << 20 ? kRounds : kRounds / 16;
    put_stream<<<kBlocks, kThreads>>>(landing, source, bytes, rounds, self, ns);
    tell("kernel_puts", bytes, kBlocks, rounds, elapsed("puts") / rounds);
  }
  nvshmem_free(landing);
  nvshmem_free(source);
  nvshmem_free(words);
  nvshmem_finalize();
  return 0;
}
