#include "models/mpi/tickets.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace brant::mpi {
namespace {

Request& some_request(std::uintptr_t number) { return *reinterpret_cast<Request*>(number * 64); }

TEST(Tickets, find_what_they_were_given_for_until_they_are_taken_back) {
  Tickets tickets;
  std::vector<std::uint64_t> given;
  for (std::uintptr_t i = 1; i <= 100; ++i) given.push_back(tickets.give(some_request(i)));
  EXPECT_EQ(std::set<std::uint64_t>(given.begin(), given.end()).size(), 100u);
  for (std::uintptr_t i = 1; i <= 100; ++i) EXPECT_EQ(tickets.find(given[i - 1]), &some_request(i));
  tickets.take_back(given[10]);
  EXPECT_EQ(tickets.find(given[10]), nullptr);
  tickets.take_back(given[10]);  // twice does nothing
  EXPECT_EQ(tickets.find(given[11]), &some_request(12));
}

TEST(Tickets, of_earlier_requests_find_nothing) {
  Tickets tickets;
  const std::uint64_t first = tickets.give(some_request(1));
  tickets.take_back(first);
  const std::uint64_t second = tickets.give(some_request(2));
  EXPECT_NE(first, second);
  EXPECT_EQ(tickets.find(first), nullptr);
  EXPECT_EQ(tickets.find(second), &some_request(2));
}

TEST(Tickets, that_were_never_given_find_nothing) {
  Tickets tickets;
  EXPECT_EQ(tickets.find(0), nullptr);
  EXPECT_EQ(tickets.find(1), nullptr);
  static_cast<void>(tickets.give(some_request(1)));
  EXPECT_EQ(tickets.find(2), nullptr);
  EXPECT_EQ(tickets.find(~std::uint64_t{0}), nullptr);
}

}  // namespace
}  // namespace brant::mpi
