#include <gtest/gtest.h>

#include "models/mpi/call_error.h"
#include "models/mpi/dynamic/contact.h"
#include "models/mpi/dynamic/ports.h"
#include "models/mpi/dynamic/spawning.h"

namespace brant::mpi {
namespace {

template <typename Body>
int error_of(const Body& body) {
  const auto error = error_in(body);
  return error ? error->error_class() : kSuccess;
}

TEST(SoftNumbers, give_the_largest_that_is_asked_for_at_most) {
  EXPECT_EQ(count_allowed("4", 4), 4);
  EXPECT_EQ(count_allowed("1:8", 5), 5);
  EXPECT_EQ(count_allowed("0:16:4", 11), 8);
  EXPECT_EQ(count_allowed("1,3,12:20", 10), 3);
  EXPECT_EQ(count_allowed("2:3:5,6", 6), 6);
}

TEST(SoftNumbers, that_allow_none_or_are_none_are_errors) {
  for (const char* none : {"0", "8:16", "5"})
    EXPECT_EQ(error_of([&] { static_cast<void>(count_allowed(none, 4)); }), MPI_ERR_SPAWN) << none;
  for (const char* wrong : {"x", "1:2:0", "1:2:-1", "1:2:3:4", ",", "1 ", "1:y"})
    EXPECT_EQ(error_of([&] { static_cast<void>(count_allowed(wrong, 4)); }), MPI_ERR_INFO_VALUE) << wrong;
}

TEST(PortNames, are_what_they_were_made_of) {
  const PortName name{"node7", "p12-3-4-0"};
  const PortName read = PortName::parse(name.text());
  EXPECT_EQ(read.host, "node7");
  EXPECT_EQ(read.file, name.file);
  EXPECT_EQ(read.number(), name.number());
}

TEST(PortNames, of_others_are_refused) {
  const std::string long_name = "brant-port:host:p" + std::string(2000, '1');
  for (const char* other : {"", "brant-port:", "brant-port:host", "brant-port:host:", "brant-port:host:../p1",
                            "brant-port:host:p/1", "tcp://host:1", long_name.c_str()})
    EXPECT_EQ(error_of([&] { static_cast<void>(PortName::parse(other)); }), MPI_ERR_PORT) << other;
}

TEST(Contacts, are_what_was_packed_and_refused_when_damaged) {
  const std::vector<Contact> contacts = {{7, "an address"}, {8, ""}};
  const std::vector<std::byte> packed = pack(contacts);
  const std::vector<Contact> read = unpack_contacts(packed);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].name, 7U);
  EXPECT_EQ(read[0].address, "an address");
  EXPECT_EQ(read[1].name, 8U);
  for (std::size_t bytes = 0; bytes < packed.size(); ++bytes)
    EXPECT_EQ(error_of([&] { static_cast<void>(unpack_contacts(std::span(packed).first(bytes))); }), MPI_ERR_INTERN);
}

}  // namespace
}  // namespace brant::mpi
