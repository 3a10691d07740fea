/// What a user's kernels do to a GPU: read and write all its memory, or hold every SM.
extern "C" __global__ void brant_bench_stream(float4* to, const float4* from, unsigned long long count) {
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x; i < count;
       i += stride) {
    float4 value = from[i];
    value.x += 1.0f;
    to[i] = value;
  }
}

extern "C" __global__ void brant_bench_hold(unsigned long long ns) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    __nanosleep(1000);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < ns);
}
