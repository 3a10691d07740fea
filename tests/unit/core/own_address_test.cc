#include "core/own_address.h"

#include <arpa/inet.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace brant {
namespace {

SocketAddress v4(const char* text, std::uint16_t port = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  EXPECT_EQ(::inet_pton(AF_INET, text, &address.sin_addr), 1);
  return *SocketAddress::from(reinterpret_cast<sockaddr*>(&address));
}

std::optional<SocketAddress> v6(const char* text, std::uint16_t port = 0) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  EXPECT_EQ(::inet_pton(AF_INET6, text, &address.sin6_addr), 1);
  return SocketAddress::from(reinterpret_cast<sockaddr*>(&address));
}

TEST(SocketAddress, comes_back_from_its_bytes) {
  for (const SocketAddress& address : {v4("10.1.2.3", 4711), *v6("fd00::7", 65535)}) {
    const auto read = SocketAddress::from_bytes(address.bytes());
    ASSERT_TRUE(read);
    EXPECT_TRUE(*read == address);
  }
  EXPECT_EQ(v4("10.1.2.3", 4711).text(), "10.1.2.3:4711");
  EXPECT_EQ(v6("fd00::7", 65535)->text(), "[fd00::7]:65535");
}

TEST(SocketAddress, bytes_that_are_none_are_refused) {
  const std::vector<std::byte> bytes = v4("10.1.2.3", 4711).bytes();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(SocketAddress::from_bytes(std::span(bytes).first(length))) << length;
  std::vector<std::byte> longer = bytes;
  longer.emplace_back();
  EXPECT_FALSE(SocketAddress::from_bytes(longer));
  std::vector<std::byte> unix_socket = v6("fd00::7", 1)->bytes();
  unix_socket[0] = std::byte{AF_UNIX};
  EXPECT_FALSE(SocketAddress::from_bytes(unix_socket));
  EXPECT_FALSE(v6("fe80::1")) << "means something on one link only";
}

TEST(OwnAddress, goes_by_the_users_choice_then_the_default_route_then_what_others_may_reach) {
  const std::vector<InterfaceAddress> all = {{"lo", v4("127.0.0.1"), true},
                                             {"eth0", *v6("fd00::1"), false},
                                             {"eth0", v4("10.0.0.1"), false},
                                             {"eth1", v4("10.1.0.1"), false},
                                             {"ib0", *v6("fd01::1"), false}};
  const auto chosen = [&](const InterfaceWishes& wishes) { return choose_address(all, wishes)->address.text(); };
  EXPECT_EQ(chosen({}), "10.0.0.1:0");
  EXPECT_EQ(chosen({{}, "eth1"}), "10.1.0.1:0");
  EXPECT_EQ(chosen({{"eth1"}, "eth0"}), "10.1.0.1:0");
  EXPECT_EQ(chosen({{"gone", "ib0"}, "eth0"}), "[fd01::1]:0");
  EXPECT_EQ(chosen({{"all"}, ""}), "10.0.0.1:0");
  EXPECT_EQ(choose_address(std::span(all).first(1), {})->address.text(), "127.0.0.1:0");
  EXPECT_EQ(choose_address({}, {}), nullptr);
}

TEST(OwnAddress, cards_of_the_network_are_found_by_the_names_of_their_devices) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() + "/mlx5_0/device/net/ens1");
  const std::string& devices = folder.path();
  EXPECT_EQ(interfaces_of("mlx5_0:1,eth1", devices), (std::vector<std::string>{"ens1", "eth1"}));
  EXPECT_TRUE(interfaces_of("", devices).empty());
}

TEST(OwnAddress, is_one_that_can_be_bound) {
  const auto own = own_address();
  if (!own) GTEST_SKIP() << "no network interface of this machine has an address";
  const int socket = ::socket(own->family(), SOCK_DGRAM, 0);
  EXPECT_EQ(::bind(socket, own->get(), own->length()), 0) << own->text();
  ::close(socket);
}

}  // namespace
}  // namespace brant
