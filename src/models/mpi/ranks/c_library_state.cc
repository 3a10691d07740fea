#include "models/mpi/ranks/c_library_state.h"

#include <cstdint>
#include <cstring>

namespace brant::mpi {

CLibraryState::CLibraryState() noexcept {
  static_cast<void>(::initstate_r(1, numbers_.data(), numbers_.size(), &random_));
}

long CLibraryState::random() noexcept {
  std::int32_t number = 0;
  static_cast<void>(::random_r(&random_, &number));
  return number;
}

void CLibraryState::seed_random(unsigned seed) noexcept { static_cast<void>(::srandom_r(seed, &random_)); }

double CLibraryState::uniform() noexcept {
  double number = 0;
  ::drand48_r(&uniform_, &number);
  return number;
}

long CLibraryState::non_negative() noexcept {
  long number = 0;
  ::lrand48_r(&uniform_, &number);
  return number;
}

long CLibraryState::with_sign() noexcept {
  long number = 0;
  ::mrand48_r(&uniform_, &number);
  return number;
}

void CLibraryState::seed_uniform(long seed) noexcept { ::srand48_r(seed, &uniform_); }

char* CLibraryState::token(char* text, const char* separators) noexcept { return ::strtok_r(text, separators, &rest_); }

}  // namespace brant::mpi
