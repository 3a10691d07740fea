#include "models/mpi/ranks/start_block.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <cstring>

// Puts the words on the stack, below what the caller must find again, and jumps. The registers are as the kernel leaves
// them: rdx has no function for the program's end, rbp ends the chain of frames.
asm(R"(
.text
.p2align 4
.globl brant_enter_image
.hidden brant_enter_image
.type brant_enter_image, @function
brant_enter_image:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $8, %rsp
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rcx)
  movq %rdi, %rax
  leaq 0(,%rdx,8), %r8
  subq %r8, %rsp
  andq $-16, %rsp
  movq %rdx, %rcx
  movq %rsp, %rdi
  cld
  rep movsq
  xorl %edx, %edx
  xorl %ebp, %ebp
  jmp *%rax
.size brant_enter_image, . - brant_enter_image

.p2align 4
.globl brant_leave_image
.hidden brant_leave_image
.type brant_leave_image, @function
brant_leave_image:
  movq %rdi, %rsp
  movl %esi, %eax
  ldmxcsr (%rsp)
  fldcw 4(%rsp)
  addq $8, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size brant_leave_image, . - brant_leave_image
)");

extern "C" {
int brant_enter_image(std::uint64_t entry, const std::uint64_t* words, std::size_t count, void** entered) noexcept;
[[noreturn]] void brant_leave_image(void* entered, int code) noexcept;
}

namespace brant::mpi {
namespace {

// What every program of this machine is told of it.
constexpr std::array<std::uint64_t, 14> kPassedOn = {AT_PAGESZ, AT_CLKTCK, AT_UID,      AT_EUID,        AT_GID,
                                                     AT_EGID,   AT_SECURE, AT_RANDOM,   AT_HWCAP,       AT_HWCAP2,
                                                     AT_FLAGS,  AT_BASE,   AT_PLATFORM, AT_SYSINFO_EHDR};

}  // namespace

StartBlock::StartBlock(const ProgramImage& image, const std::vector<std::string>& arguments)
    : entry_(reinterpret_cast<std::uint64_t>(image.at(image.file().entry))) {
  words_.push_back(arguments.size());
  for (const std::string& argument : arguments) words_.push_back(keep(argument.c_str()));
  words_.push_back(0);
  for (char** variable = environ; *variable != nullptr; ++variable) words_.push_back(keep(*variable));
  words_.push_back(0);
  const auto add = [this](std::uint64_t type, std::uint64_t value) { words_.insert(words_.end(), {type, value}); };
  for (const std::uint64_t type : kPassedOn) add(type, ::getauxval(type));
  add(AT_ENTRY, entry_);
  if (image.file().headers != 0) {
    add(AT_PHDR, reinterpret_cast<std::uint64_t>(image.at(image.file().headers)));
    add(AT_PHENT, sizeof(Elf64_Phdr));
    add(AT_PHNUM, image.file().segments.size());
  }
  add(AT_EXECFN, keep(image.file().path.c_str()));
  add(AT_NULL, 0);
}

std::uint64_t StartBlock::keep(const char* text) {
  strings_.emplace_back(text, text + std::strlen(text) + 1);
  return reinterpret_cast<std::uint64_t>(strings_.back().data());
}

int StartBlock::enter() noexcept { return brant_enter_image(entry_, words_.data(), words_.size(), &entered_); }

void StartBlock::leave(int code) noexcept { brant_leave_image(entered_, code); }

}  // namespace brant::mpi
