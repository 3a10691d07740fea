// Kernels of the memory conformance suite. Their host versions are in kernels_test.cc: keep the two alike.

extern "C" __global__ void brant_test_axpy(float factor, const float* x, float* y, unsigned count) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    y[i] += factor * x[i];
}

// Arguments of sizes and alignments that a careless copy would mix up.
extern "C" __global__ void brant_test_mixed(char small, double big, short odd, unsigned long long* out) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  out[0] = static_cast<unsigned long long>(small);
  out[1] = static_cast<unsigned long long>(big);
  out[2] = static_cast<unsigned long long>(odd);
}

// Waits until *flag is `value`, at most `limit_ns`; then writes 1 (seen) or 2 (gave up) to *outcome.
extern "C" __global__ void brant_test_wait(const volatile unsigned long long* flag, unsigned long long value,
                                           unsigned long long limit_ns, unsigned long long* outcome) {
  unsigned long long start;
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    if (*flag == value) {
      *outcome = 1;
      return;
    }
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < limit_ns);
  *outcome = 2;
}

// Each block arrives and waits until all of the grid have, at most `limit_ns`; then it says 1 (met) or 2 (gave up).
extern "C" __global__ void brant_test_meet(unsigned long long* arrived, unsigned long long limit_ns,
                                           unsigned long long* outcomes) {
  if (threadIdx.x != 0) return;
  unsigned long long start;
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  atomicAdd(arrived, 1ull);
  do {
    if (*static_cast<volatile unsigned long long*>(arrived) >= gridDim.x) {
      outcomes[blockIdx.x] = 1;
      return;
    }
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < limit_ns);
  outcomes[blockIdx.x] = 2;
}
