#include "port/boot/launcher/spawn_plan.h"

#include <gtest/gtest.h>

#include "brant/base/status.h"

namespace brant::port::launcher {
namespace {

SpawnPlan plan() {
  SpawnPlan made;
  made.name = "0.";
  made.port = "brant-port:host:p1";
  made.folder = "/tmp";
  made.environment = {"A=1", "B="};
  made.parts = {{{"program", "with arguments", ""}, 3, "/", "/opt/bin", {"C=2"}}, {{"other"}, 0, {}, {}, {}}};
  return made;
}

TEST(SpawnPlan, is_what_was_packed) {
  const SpawnPlan read = unpack_spawn_plan(pack(plan()));
  EXPECT_EQ(read.name, "0.");
  EXPECT_EQ(read.port, "brant-port:host:p1");
  EXPECT_EQ(read.folder, "/tmp");
  EXPECT_EQ(read.environment, plan().environment);
  ASSERT_EQ(read.parts.size(), 2U);
  EXPECT_EQ(read.parts[0].command, plan().parts[0].command);
  EXPECT_EQ(read.parts[0].processes, 3);
  EXPECT_EQ(read.parts[0].folder, "/");
  EXPECT_EQ(read.parts[0].path, "/opt/bin");
  EXPECT_EQ(read.parts[0].variables, plan().parts[0].variables);
  EXPECT_EQ(read.parts[1].processes, 0);
}

TEST(SpawnPlan, that_is_damaged_is_refused) {
  const std::vector<std::byte> whole = pack(plan());
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_THROW(static_cast<void>(unpack_spawn_plan(std::span(whole).first(bytes))), Error) << bytes;
  std::vector<std::byte> later = whole;
  later[4] = std::byte{0xff};
  EXPECT_THROW(static_cast<void>(unpack_spawn_plan(later)), Error);
  SpawnPlan nobody = plan();
  nobody.parts.clear();
  EXPECT_THROW(static_cast<void>(unpack_spawn_plan(pack(nobody))), Error);
  SpawnPlan negative = plan();
  negative.parts[0].processes = -1;
  EXPECT_THROW(static_cast<void>(unpack_spawn_plan(pack(negative))), Error);
}

}  // namespace
}  // namespace brant::port::launcher
