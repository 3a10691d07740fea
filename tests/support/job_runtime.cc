#include "support/job_runtime.h"

#include <memory>

#include <gtest/gtest.h>

namespace brant::test {
namespace {

std::unique_ptr<Runtime> g_runtime;

class JobEnvironment final : public testing::Environment {
 public:
  void SetUp() override { g_runtime = std::make_unique<Runtime>(); }
  void TearDown() override { g_runtime.reset(); }
};
const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new JobEnvironment);

}  // namespace

Runtime& job() { return *g_runtime; }

}  // namespace brant::test
