// Requests of UCX that answers of other processes name.
#include "port/wire/ucx/ucx_requests.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "support/mutation.h"

namespace brant::port::ucx::test {
namespace {

constexpr std::size_t kMany = 1000;  // some blocks

/// The pool only notes whose it is.
UcxOperations& some_operations() {
  static std::byte operations[64];
  return reinterpret_cast<UcxOperations&>(operations);
}

std::uint64_t address_of(const UcxRequest& request) { return reinterpret_cast<std::uintptr_t>(&request); }

TEST(UcxRequests, an_address_is_that_of_a_request_or_of_none) {
  UcxRequestPool pool(some_operations(), 200, kMany);
  EXPECT_EQ(pool.find(0), nullptr) << "there are none yet";
  std::vector<UcxRequest*> requests;
  while (UcxRequest* request = pool.take()) requests.push_back(request);
  ASSERT_EQ(requests.size(), kMany);
  brant::test::Mutation mutation(20261201);
  for (UcxRequest* request : requests) {
    EXPECT_EQ(pool.find(address_of(*request)), request);
    EXPECT_EQ(pool.find(address_of(*request) + sizeof(UcxRequest)), nullptr) << "UCX's part of the next one";
    EXPECT_EQ(pool.find(address_of(*request) + 1), nullptr);
    EXPECT_EQ(pool.find(address_of(*request) ^ (std::uint64_t{1} << 40 << mutation.below(24))), nullptr);
  }
  for (const std::uint64_t wild : {std::uint64_t{0}, std::uint64_t{64}, ~std::uint64_t{0}, ~std::uint64_t{63}})
    EXPECT_EQ(pool.find(wild), nullptr);
  for (UcxRequest* request : requests) pool.give(*request);
}

}  // namespace
}  // namespace brant::port::ucx::test
