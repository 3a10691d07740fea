#include "models/mpi/ranks/rank_fiber.h"

#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace brant::mpi {

namespace {

/// Stacks stay their owner's: a fiber that ends gives nothing back.
struct KeptStack {
  static void deallocate(boost::context::stack_context&) noexcept {}
};

// What sanitizers have to know of stacks.
#ifdef __SANITIZE_ADDRESS__
void say_switch(void** own, const void* bottom, std::size_t bytes) noexcept {
  __sanitizer_start_switch_fiber(own, bottom, bytes);
}
void say_arrived(void* own, const void** bottom, std::size_t* bytes) noexcept {
  __sanitizer_finish_switch_fiber(own, bottom, bytes);
}
#else
void say_switch(void**, const void*, std::size_t) noexcept {}
void say_arrived(void*, const void**, std::size_t*) noexcept {}
#endif
#ifdef __SANITIZE_THREAD__
void* make_shadow() noexcept { return __tsan_create_fiber(0); }
void* current_shadow() noexcept { return __tsan_get_current_fiber(); }
void switch_shadow(void* to) noexcept { __tsan_switch_to_fiber(to, 0); }
void drop_shadow(void* shadow) noexcept { __tsan_destroy_fiber(shadow); }
#else
void* make_shadow() noexcept { return nullptr; }
void* current_shadow() noexcept { return nullptr; }
void switch_shadow(void*) noexcept {}
void drop_shadow(void*) noexcept {}
#endif

}  // namespace

RankFiber::RankFiber(int slot_in, std::size_t stack_bytes, void (*body)(RankFiber&, void*) noexcept, void* body_context)
    : slot(slot_in), stack_(stack_bytes), shadow_(make_shadow()) {
  boost::context::stack_context place;
  place.sp = stack_.top();
  place.size = stack_.bytes();
  here_ = boost::context::fiber(std::allocator_arg, boost::context::preallocated(place.sp, place.size, place),
                                KeptStack(), [this, body, body_context](boost::context::fiber&& from) {
                                  scheduler_ = std::move(from);
                                  say_arrived(nullptr, &other_bottom_, &other_bytes_);
                                  body(*this, body_context);
                                  say_switch(nullptr, other_bottom_, other_bytes_);
                                  switch_shadow(other_shadow_);
                                  return std::move(scheduler_);
                                });
}

/// One that stands still is not unwound, as a fiber does when it goes: its frames may be of C, or nobody's any more.
RankFiber::~RankFiber() {
  alignas(boost::context::fiber) std::byte forgotten[sizeof(boost::context::fiber)];
  ::new (static_cast<void*>(forgotten)) boost::context::fiber(std::move(here_));
  drop_shadow(shadow_);
}

void RankFiber::enter() noexcept {
  std::swap(errno, errno_);
  void* own = nullptr;
  say_switch(&own, stack_.bottom(), stack_.bytes());
  other_shadow_ = current_shadow();
  switch_shadow(shadow_);
  here_ = std::move(here_).resume();
  say_arrived(own, nullptr, nullptr);
  std::swap(errno, errno_);
}

void RankFiber::leave() noexcept {
  say_switch(&fake_stack_, other_bottom_, other_bytes_);
  switch_shadow(other_shadow_);
  scheduler_ = std::move(scheduler_).resume();
  say_arrived(fake_stack_, &other_bottom_, &other_bytes_);
}

}  // namespace brant::mpi
