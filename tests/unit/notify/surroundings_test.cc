// What can keep a kernel that stays, or the work beside it, from running; and who is told of it.
#include "ops/notify/surroundings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brant/core/device.h"
#include "brant/core/runtime.h"
#include "brant/notify.h"
#include "support/in_process_job.h"
#include "support/kernels/kernels.h"
#include "support/wrapped_device.h"

namespace brant::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Surroundings, of_no_note_are_no_danger) {
  const Surroundings usual{.on_cuda = true};
  EXPECT_EQ(why_none_can_stay(usual), "");
  EXPECT_THAT(dangers(usual), IsEmpty());
  EXPECT_THAT(suspects(usual), IsEmpty());
  EXPECT_THAT(dangers({.on_cuda = true, .queues = 8}), IsEmpty());
  EXPECT_THAT(dangers({.on_cuda = true, .queues = 32}), IsEmpty());
}

TEST(Surroundings, where_launches_block_no_kernel_stays) {
  EXPECT_THAT(why_none_can_stay({.on_cuda = true, .launches_block = true}), HasSubstr("CUDA_LAUNCH_BLOCKING=1"));
  EXPECT_EQ(why_none_can_stay({.launches_block = true}), "") << "another device knows no such variable";
}

TEST(Surroundings, few_queues_and_turns_of_processes_are_dangers) {
  EXPECT_THAT(dangers({.on_cuda = true, .queues = 1}), ElementsAre(HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS=1 puts")));
  EXPECT_THAT(dangers({.on_cuda = true, .processes = 3, .take_turns = true}), ElementsAre(HasSubstr("3 processes")));
  EXPECT_THAT(dangers({.on_cuda = true, .processes = 1, .take_turns = true}), IsEmpty()) << "it has no other";
  EXPECT_THAT(dangers({.on_cuda = true, .processes = 3}), IsEmpty()) << "MPS lets them run at once";
}

TEST(Surroundings, lazy_loading_is_a_suspect_beside_the_dangers) {
  EXPECT_THAT(suspects({.on_cuda = true, .queues = 1, .loads_lazily = true}),
              ElementsAre(HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS=1"), HasSubstr("CUDA_MODULE_LOADING=EAGER")));
}

/// A device that loads kernels lazily, and has processes that take turns. It says that it is a GPU while the ranks tell
/// each other which one they have.
class DeviceOfNote final : public WrappedDevice {
 public:
  explicit DeviceOfNote(std::unique_ptr<port::Device> inner)
      : WrappedDevice(std::move(inner)), capabilities_(WrappedDevice::capabilities()) {
    capabilities_.loads_lazily = true;
    capabilities_.processes_take_turns = true;
    capabilities_.id = "shared";
    capabilities_.kinds |= kGpu;
  }
  void be_itself() { capabilities_.kinds &= ~kGpu; }
  [[nodiscard]] const port::DeviceCapabilities& capabilities() const noexcept override { return capabilities_; }

 private:
  static constexpr std::uint32_t kGpu = 1u << static_cast<unsigned>(MemoryKind::cuda);
  port::DeviceCapabilities capabilities_;
};

TEST(Surroundings, a_launch_warns_once_and_a_kernel_that_waits_in_vain_names_the_suspects) {
  JobOptions options;
  options.gpu = GpuChoice::emulated;
  options.runtime.share_gpu = true;
  std::vector<DeviceOfNote*> devices;
  options.wrap_device = [&](int, std::unique_ptr<port::Device> device) {
    auto noted = std::make_unique<DeviceOfNote>(std::move(device));
    devices.push_back(noted.get());
    return noted;
  };
  InProcessJob job(options);
  for (DeviceOfNote* const device : devices) device->be_itself();
  Notifier notifier(job.rank(0), {.bells = 16, .others = 32});
  Bell go = notifier.make({.rung_by = RungBy::host, .seen_by = SeenBy::device});
  Bell gone = notifier.make();
  const PassOnKernel passing = pass_on_kernel(job.rank(0).device());
  testing::internal::CaptureStderr();
  for (int turn = 0; turn < 2; ++turn) {
    auto kernel = PersistentKernel::launch(notifier, passing, {}, {.name = "waits", .patience = 20ms}, go.device(),
                                           gone.device(), notifier.fan_in(1));
    EXPECT_EQ(job.outcome(kernel.ended()).status, Status::timed_out);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string warning = "a kernel is to stay on 'emulated', and 2 processes share the device";
  ASSERT_THAT(log, HasSubstr(warning));
  EXPECT_EQ(log.find(warning, log.find(warning) + 1), std::string::npos) << "once: " << log;
  EXPECT_THAT(log, HasSubstr("it may be that a kernel of the program that is launched for the first time"));
}

}  // namespace
}  // namespace brant::test
