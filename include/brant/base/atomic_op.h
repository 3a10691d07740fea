#pragma once

/// Without any other header: kernels use it, and NVRTC has none.
namespace brant {

/// What a word that atomics work on holds: 4 or 8 bytes, aligned to their size.
enum class AtomicType : unsigned char { i32, u32, i64, u64, f32, f64 };

/// What an atomic does to a word. Integers wrap around. `min` and `max` keep the value that is there if the operand
/// compares neither less nor greater (a NaN, say). Floating numbers have no bit_and, bit_or and bit_xor, and
/// compare_swap compares their bits: -0.0 is not 0.0 to it, and a NaN is itself.
enum class AtomicOp : unsigned char { load, store, swap, compare_swap, add, min, max, bit_and, bit_or, bit_xor };

}  // namespace brant
