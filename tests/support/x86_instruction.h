#pragma once

#include <cstdint>

namespace brant::test {

/// What an instruction of x86-64 costs beside its turn. Its prefixes and opcode tell it; nothing else is decoded.
struct X86Instruction {
  bool call = false;
  bool returns = false;
  /// A call, or a jump in place of a last call, whose target is loaded from an object: a virtual function, a function
  /// pointer. Not those by way of the linker's table, which are relative to the instruction.
  bool by_pointer = false;
  /// A jump to what a register says: of a `switch` where an addition came before it, else in place of a last call.
  bool by_register = false;
  bool addition = false;
  /// Orders memory for all processors: a lock prefix, an exchange with memory, a full fence.
  bool locked = false;
  bool system_call = false;
  unsigned string_copy = 0;  ///< `movs`: bytes a turn.
  bool repeated = false;     ///< Of a `movs`: as many turns as rcx says.
};

/// `code`: where an instruction begins.
inline X86Instruction look_at(const std::uint8_t* code) noexcept {
  X86Instruction seen;
  bool narrow = false, lock = false, tracked = true;
  for (bool prefix = true; prefix; code += prefix) {
    switch (*code) {
      case 0xF0: lock = true; break;
      case 0xF2:
      case 0xF3: seen.repeated = true; break;
      case 0x66: narrow = true; break;
      case 0x3E: tracked = false; break;  // the compiler's mark of a `switch`, with -fcf-protection
      case 0x26:
      case 0x2E:
      case 0x36:
      case 0x64:
      case 0x65:
      case 0x67: break;
      default: prefix = false;
    }
  }
  const bool wide = (*code & 0xF8) == 0x48;
  if ((*code & 0xF0) == 0x40) ++code;  // REX
  seen.locked = lock;
  const auto in_memory = [&](std::uint8_t operand) { return operand < 0xC0; };
  switch (*code) {
    case 0x01:
    case 0x03: seen.addition = wide; break;
    case 0x0F:
      seen.system_call = code[1] == 0x05;
      if (code[1] == 0xAE && code[2] == 0xF0) seen.locked = true;
      break;
    case 0x86:
    case 0x87:
      if (in_memory(code[1])) seen.locked = true;
      break;
    case 0xA4: seen.string_copy = 1; break;
    case 0xA5: seen.string_copy = wide ? 8 : narrow ? 2 : 4; break;
    case 0xC2:
    case 0xC3: seen.returns = true; break;
    case 0xE8: seen.call = true; break;
    case 0xFF: {
      const unsigned what = (code[1] >> 3) & 7u;
      const bool of_the_linker = (code[1] & 0xC7) == 0x05;
      const bool of_a_table = (code[1] & 0xC7) == 0x04 && (code[2] & 7u) == 5;
      seen.call = what == 2;
      if (what == 4 && !in_memory(code[1]))
        seen.by_register = tracked;
      else if (what == 2 || what == 4)
        seen.by_pointer = !of_the_linker && (what == 2 || (tracked && !of_a_table));
      break;
    }
    default: break;
  }
  if (seen.string_copy == 0) seen.repeated = false;
  return seen;
}

}  // namespace brant::test
