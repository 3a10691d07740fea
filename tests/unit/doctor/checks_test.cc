#include "cli/doctor/checks.h"

#include <cerrno>
#include <limits>

#include <gtest/gtest.h>

#include "cli/doctor/listeners.h"

namespace brant::cli::doctor {
namespace {

constexpr std::uint64_t kGib = std::uint64_t{1} << 30;

/// A GPU machine where all is well.
Facts healthy() {
  Facts facts;
  facts.ucx_version = "1.22.0";
  facts.ucx_path = "/somewhere/libucp.so.0";
  facts.ucx_folders = {"/somewhere"};
  facts.ucx_transports = {"self", "posix", "tcp", "cuda_copy", "cuda_ipc"};
  facts.ucx_takes_cuda = true;
  facts.cuda_driver = "CUDA 13.0 (driver 580.159)";
  facts.gpus = 2;
  facts.nvidia_hardware = 2;
  facts.shm_bytes = facts.shm_free_bytes = 8 * kGib;
  facts.memlock_bytes = std::numeric_limits<std::uint64_t>::max();
  facts.ptrace_scope = 0;
  facts.cores = 16;
  return facts;
}

void expect(const Finding& finding, Level level, const char* part) {
  EXPECT_EQ(finding.level, level) << finding.what;
  EXPECT_NE((finding.what + " | " + finding.cure).find(part), std::string::npos)
      << finding.what << " | " << finding.cure;
  if (level != Level::ok) {
    EXPECT_FALSE(finding.cure.empty()) << finding.name << ": a finding without a cure helps nobody";
  }
}

TEST(Doctor, a_healthy_machine_is_all_ok) {
  for (const Finding& finding : run_checks(healthy())) {
    EXPECT_EQ(finding.level, Level::ok) << finding.name << ": " << finding.what;
    EXPECT_TRUE(finding.cure.empty()) << finding.name;
  }
}

TEST(Doctor, open_ports_are_told_with_who_can_reach_them) {
  Facts facts = healthy();
  expect(check_listeners(facts), Level::ok,
         "none in a job of one host; of several, each process has no TCP port either");
  facts.listeners_between_hosts = {"0.0.0.0:4711"};
  facts.lease_address = "10.0.0.1";
  expect(check_listeners(facts), Level::ok,
         "0.0.0.0:4711 (TCP, by UCX, which asks nobody who connects), and a UDP port at 10.0.0.1 for leases");
  facts.listeners_on_one_host = {"0.0.0.0:4712"};
  expect(check_listeners(facts), Level::warning, "every process listens on 0.0.0.0:4712");
}

TEST(Doctor, addresses_of_the_kernels_tables_are_read) {
  EXPECT_EQ(address_text("0100007F:1267"), "127.0.0.1:4711");
  EXPECT_EQ(address_text("00000000:A43B"), "0.0.0.0:42043");
  EXPECT_EQ(address_text("00000000000000000000000000000000:1267"), "[::]:4711");
  EXPECT_EQ(address_text("B80D01200000000067452301EFCDAB89:0050"), "[2001:db8::123:4567:89ab:cdef]:80");
  for (const char* none : {"", ":", "0100007F", "0100007F:", "0100007G:1267", "0100007F:12x7", "01:1267"})
    EXPECT_EQ(address_text(none), "") << none;
}

TEST(Doctor, who_started_the_process_is_told_with_the_evidence) {
  Facts facts = healthy();
  expect(check_launcher(facts), Level::ok, "no variable of a launcher is set");
  facts.starter = port::detect_starter({{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}}, false);
  expect(check_launcher(facts), Level::ok, "SLURM_JOB_ID=7, SLURM_PROCID=0: a batch script");
  facts.starter = port::detect_starter(
      {{"PMIX_NAMESPACE", "job"}, {"PMIX_RANK", "1"}, {"PMIX_SERVER_URI4", "uri"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}},
      false);
  expect(check_launcher(facts), Level::ok, "PMIX_RANK=1, PMIX_SERVER_URI4=uri; RANK=0, WORLD_SIZE=2");
  facts.starter = port::detect_starter({{"PMI_FD", "9"}, {"PMI_SIZE", "2"}}, false);
  expect(check_launcher(facts), Level::ok, "PMI-1 (PMI_FD=9, PMI_SIZE=2)");
  facts.starter = port::detect_starter({{"PMI_PORT", "host:9"}}, false);
  expect(check_launcher(facts), Level::warning, "MPICH");
}

TEST(Doctor, a_machine_without_a_gpu_is_healthy_too) {
  Facts facts = healthy();
  facts.gpus = facts.nvidia_hardware = 0;
  facts.cuda_driver.clear();
  facts.cuda_reason = "no NVIDIA driver";
  facts.ucx_takes_cuda = false;
  for (const Finding& finding : run_checks(facts))
    EXPECT_EQ(finding.level, Level::ok) << finding.name << ": " << finding.what;
}

TEST(Doctor, a_gpu_that_is_asked_for_and_missing_is_a_problem) {
  Facts facts = healthy();
  facts.gpus = facts.nvidia_hardware = 0;
  facts.cuda_reason = "no driver";
  facts.environment = {{"BRANT_GPU", "cuda"}};
  expect(check_cuda(facts), Level::problem, "BRANT_GPU=cuda asks for one, and there is none (no driver)");
  facts.environment = {{"BRANT_GPU", "emulated"}};
  expect(check_cuda(facts), Level::ok, "none on this machine");
}

TEST(Doctor, a_missing_ucx_is_a_problem_with_the_cure_apart) {
  Facts facts = healthy();
  facts.ucx_version.clear();
  facts.ucx_error = "no UCX library found. Tried:\n  /a\nCure: make setup";
  const Finding finding = check_ucx(facts);
  expect(finding, Level::problem, "no UCX library found");
  EXPECT_EQ(finding.cure, "make setup");
  EXPECT_EQ(finding.what.find("Cure"), std::string::npos);
}

TEST(Doctor, two_ucx_sets_are_a_problem) {
  Facts facts = healthy();
  facts.ucx_folders = {"/a", "/b"};
  expect(check_one_ucx(facts), Level::problem, "/a, /b");
}

TEST(Doctor, hardware_without_a_driver_is_a_problem) {
  Facts facts = healthy();
  facts.gpus = 0;
  facts.cuda_driver.clear();
  facts.cuda_reason = "no libcuda";
  expect(check_cuda(facts), Level::problem, "install NVIDIA's driver");
  facts.cuda_driver = "CUDA 10.0";
  expect(check_cuda(facts), Level::problem, "CUDA 12");
}

TEST(Doctor, denied_device_files_are_named) {
  Facts facts = healthy();
  facts.gpus = 0;
  facts.device_files_denied = {"/dev/nvidiactl"};
  expect(check_cuda(facts), Level::problem, "/dev/nvidiactl");
}

TEST(Doctor, mig_slices_are_a_warning) {
  Facts facts = healthy();
  facts.mig_slices = 1;
  expect(check_cuda(facts), Level::warning, "MIG");
}

TEST(Doctor, odd_visible_devices_are_found) {
  const auto with = [](const char* value) {
    Facts facts = healthy();
    facts.environment = {{"CUDA_VISIBLE_DEVICES", value}};
    return check_visible_devices(facts);
  };
  expect(with("0,1"), Level::ok, "0,1");
  expect(with("GPU-8a1b"), Level::ok, "GPU-8a1b");
  expect(with(""), Level::warning, "hides every GPU");
  expect(with("-1"), Level::warning, "hides every GPU");
  expect(with("0,0"), Level::problem, "twice");
  expect(with("0, 1"), Level::problem, "' 1'");
  expect(with("0,,1"), Level::problem, "''");
  expect(with("2"), Level::problem, "no GPU 2");
  expect(with("99999999999"), Level::problem, "use 0 to 1");
  expect(with("all"), Level::problem, "'all'");
}

TEST(Doctor, a_ucx_without_cuda_is_a_problem_only_with_a_gpu) {
  Facts facts = healthy();
  facts.ucx_takes_cuda = false;
  expect(check_ucx_takes_cuda(facts), Level::problem, "CUDA modules");
  facts.gpus = 0;
  expect(check_ucx_takes_cuda(facts), Level::ok, "");
}

TEST(Doctor, gdrcopy_that_ucx_cannot_use_is_a_warning) {
  Facts facts = healthy();
  facts.gdrcopy = true;
  expect(check_gdrcopy(facts), Level::warning, "BRANT_UCX=system");
  facts.ucx_transports.emplace_back("gdr_copy");
  expect(check_gdrcopy(facts), Level::ok, "used by UCX");
}

TEST(Doctor, infiniband_that_ucx_cannot_use_is_a_warning) {
  Facts facts = healthy();
  facts.infiniband = {"mlx5_0"};
  expect(check_infiniband(facts), Level::warning, "BRANT_UCX=system");
  facts.ucx_transports.emplace_back("rc_mlx5");
  expect(check_infiniband(facts), Level::ok, "mlx5_0");
}

TEST(Doctor, little_shared_memory_is_found) {
  Facts facts = healthy();
  facts.shm_free_bytes = 64u << 20;
  expect(check_shared_memory(facts), Level::warning, "--shm-size");
  facts.shm_free_bytes = 1u << 20;
  expect(check_shared_memory(facts), Level::problem, "too little");
  facts.shm_bytes = facts.shm_free_bytes = 0;
  expect(check_shared_memory(facts), Level::problem, "not mounted");
}

TEST(Doctor, a_low_memlock_limit_matters_with_infiniband_only) {
  Facts facts = healthy();
  facts.memlock_bytes = 8u << 20;
  expect(check_memlock(facts), Level::ok, "8 MiB");
  facts.infiniband = {"mlx5_0"};
  expect(check_memlock(facts), Level::warning, "ulimit -l");
}

TEST(Doctor, the_kernel_s_restrictions_are_found) {
  Facts facts = healthy();
  facts.ptrace_scope = 1;
  expect(check_ptrace(facts), Level::warning, "ptrace_scope=0");
  facts.pidfd_errno = ENOSYS;
  expect(check_pidfd(facts), Level::problem, "seccomp");
  facts.cores = 1;
  expect(check_cores(facts), Level::warning, "take turns");
}

TEST(Doctor, misspelt_variables_are_found_with_what_was_meant) {
  Facts facts = healthy();
  facts.environment = {{"BRANT_GPU", "cuda"}, {"BRANT_PAHT", "ucx"}, {"BRANT_ENTIRELY_ELSE", "1"}, {"UCX_TLS", "tcp"}};
  const Finding finding = check_brant_variables(facts);
  expect(finding, Level::warning, "BRANT_PATH instead of BRANT_PAHT");
  EXPECT_NE(finding.cure.find("unset BRANT_ENTIRELY_ELSE"), std::string::npos);
  EXPECT_EQ(finding.what.find("BRANT_GPU"), std::string::npos);
  expect(check_ucx_variables(facts), Level::warning, "UCX_TLS=tcp");
}

}  // namespace
}  // namespace brant::cli::doctor
