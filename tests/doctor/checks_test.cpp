#include "apps/doctor/checks/checks.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/doctor/config_spaces.hpp"
#include "tests/doctor/made_up_machine.hpp"

namespace offload::doctor {
namespace {

/// The only finding of a check.
Finding one(const Findings& findings) {
  EXPECT_EQ(findings.size(), 1U);
  return findings.empty() ? Finding{} : findings.front();
}

class Checks : public testing::Test {
 protected:
  const MadeUpMachine machine_{};
  const LimitHolder shell_{"the shell", "self"};
};

TEST_F(Checks, AMachineOfWhichNothingIsKnownHasNoErrors) {
  for (const Finding& finding : check_machine(machine_.tree(), MachineRole::any)) {
    EXPECT_LE(finding.severity, Severity::note) << finding.subject << ": " << finding.found;
  }
}

TEST_F(Checks, Kernel) {
  const auto severity = [this](const std::string& release) {
    machine_.write("/proc/sys/kernel/osrelease", release);
    return one(check_kernel(machine_.tree())).severity;
  };
  EXPECT_EQ(severity("6.1.0-18-amd64\n"), Severity::good);
  EXPECT_EQ(severity("5.12.0"), Severity::good);
  EXPECT_EQ(severity("5.10.0-28-arm64"), Severity::warning);
  EXPECT_EQ(severity("4.18.0-553.el8.x86_64"), Severity::warning);
  EXPECT_EQ(severity("rolling"), Severity::note);
}

TEST_F(Checks, Clock) {
  const std::string file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  machine_.write(file, "tsc\n");
  EXPECT_EQ(one(check_clock(machine_.tree())).severity, Severity::good);
  machine_.write(file, "arch_sys_counter\n");
  EXPECT_EQ(one(check_clock(machine_.tree())).severity, Severity::good);
  machine_.write(file, "hpet\n");
  const auto finding = one(check_clock(machine_.tree()));
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(finding.found, "hpet");
  EXPECT_FALSE(finding.mend.empty());
}

TEST_F(Checks, Governor) {
  const auto set = [this](int cpu, const std::string& governor) {
    machine_.write(
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_governor",
        governor);
  };
  EXPECT_EQ(one(check_governor(machine_.tree())).severity, Severity::note);
  set(0, "performance\n");
  set(1, "performance\n");
  EXPECT_EQ(one(check_governor(machine_.tree())).severity, Severity::good);
  set(1, "powersave\n");
  const auto finding = one(check_governor(machine_.tree()));
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(finding.found, "performance on 1, powersave on 1");
}

TEST_F(Checks, Limits) {
  const auto write = [this](const std::string& files, const std::string& locked) {
    machine_.write("/proc/self/limits",
                   "Limit                     Soft Limit           Hard Limit           Units\n"
                   "Max open files            1024                 " +
                       files +
                       "               files\n"
                       "Max locked memory         8192                 " +
                       locked + "              bytes\n");
  };
  write("1048576", "unlimited");
  EXPECT_EQ(one(check_open_files(machine_.tree(), shell_)).severity, Severity::good);
  EXPECT_EQ(one(check_locked_memory(machine_.tree(), shell_)).severity, Severity::good);
  write("4096", "8388608");
  EXPECT_EQ(one(check_open_files(machine_.tree(), shell_)).severity, Severity::warning);
  // Without a device nothing has to be locked.
  EXPECT_EQ(one(check_locked_memory(machine_.tree(), shell_)).severity, Severity::note);
  machine_.add_card("mlx5_0", 0);
  const auto finding = one(check_locked_memory(machine_.tree(), shell_));
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(finding.found, "8192 KiB at most (the shell)");
}

TEST_F(Checks, MemoryAndThreadsOfTheControlGroup) {
  EXPECT_EQ(one(check_memory(machine_.tree(), shell_)).severity, Severity::good);
  EXPECT_EQ(one(check_threads(machine_.tree(), shell_)).severity, Severity::good);
  machine_.write("/proc/self/mountinfo",
                 "35 25 0:31 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n");
  machine_.write("/proc/self/cgroup", "0::/a.slice/b.service\n");
  machine_.write("/sys/fs/cgroup/a.slice/memory.max", "67108864\n");
  machine_.write("/sys/fs/cgroup/a.slice/pids.max", "16\n");
  const auto memory = one(check_memory(machine_.tree(), shell_));
  EXPECT_EQ(memory.severity, Severity::warning);
  EXPECT_EQ(memory.found, "64 MiB at most: /sys/fs/cgroup/a.slice/memory.max, the shell");
  const auto threads = one(check_threads(machine_.tree(), shell_));
  EXPECT_EQ(threads.severity, Severity::warning);
  EXPECT_EQ(threads.found, "16 at most: /sys/fs/cgroup/a.slice/pids.max, the shell");
  machine_.write("/sys/fs/cgroup/a.slice/memory.max", "4294967296\n");
  machine_.write("/sys/fs/cgroup/a.slice/pids.max", "4096\n");
  EXPECT_EQ(one(check_memory(machine_.tree(), shell_)).severity, Severity::good);
  EXPECT_EQ(one(check_threads(machine_.tree(), shell_)).severity, Severity::good);
}

TEST_F(Checks, WhatTheKernelHas) {
  machine_.write("/proc/net/protocols", "protocol  size\nXDP       1024\nTCP  2048\n");
  EXPECT_EQ(one(check_af_xdp(machine_.tree())).severity, Severity::good);
  machine_.write("/proc/net/protocols", "protocol  size\nTCP  2048\n");
  EXPECT_EQ(one(check_af_xdp(machine_.tree())).severity, Severity::note);
  machine_.write("/proc/sys/net/core/somaxconn", "128\n");
  EXPECT_EQ(one(check_listen_backlog(machine_.tree())).severity, Severity::warning);
  machine_.write("/proc/sys/net/core/somaxconn", "4096\n");
  EXPECT_EQ(one(check_listen_backlog(machine_.tree())).severity, Severity::good);
  machine_.write("/proc/sys/vm/nr_hugepages", "512\n");
  EXPECT_EQ(one(check_huge_pages(machine_.tree())).severity, Severity::good);
  machine_.write("/proc/sys/vm/nr_hugepages", "0\n");
  EXPECT_EQ(one(check_huge_pages(machine_.tree())).severity, Severity::note);
}

TEST_F(Checks, AGpuIsMissingOnlyWhereOneIsWanted) {
  EXPECT_EQ(one(check_gpus(machine_.tree(), MachineRole::any)).severity, Severity::note);
  EXPECT_EQ(one(check_gpus(machine_.tree(), MachineRole::server)).severity, Severity::note);
  EXPECT_EQ(one(check_gpus(machine_.tree(), MachineRole::worker)).severity, Severity::error);
  EXPECT_EQ(one(check_gpu_driver(machine_.tree(), MachineRole::server)).severity, Severity::note);
  EXPECT_EQ(one(check_gpu_driver(machine_.tree(), MachineRole::worker)).severity, Severity::error);
}

TEST_F(Checks, AGpuAndItsDriver) {
  machine_.add_gpu("0000:01:00.0", 0);
  const auto driver = one(check_gpu_driver(machine_.tree(), MachineRole::worker));
  EXPECT_EQ(driver.severity, Severity::good);
  EXPECT_EQ(driver.found, "NVIDIA UNIX Open Kernel Module for x86_64  580.65.06");
  EXPECT_EQ(one(check_gpus(machine_.tree(), MachineRole::worker)).severity, Severity::good);

  machine_.remove("/dev/nvidia-uvm");
  EXPECT_EQ(check_gpu_driver(machine_.tree(), MachineRole::worker).back().severity,
            Severity::error);
  EXPECT_EQ(check_gpu_driver(machine_.tree(), MachineRole::any).back().severity, Severity::warning);

  machine_.remove("/sys/bus/pci/devices/0000:01:00.0/driver");
  EXPECT_EQ(one(check_gpus(machine_.tree(), MachineRole::worker)).severity, Severity::error);
  machine_.remove("/proc/driver");
  machine_.write("/sys/module/nouveau/initstate", "live");
  EXPECT_NE(one(check_gpu_driver(machine_.tree(), MachineRole::any)).found.find("nouveau"),
            std::string::npos);
}

TEST_F(Checks, OtherDisplaysAreNoGpus) {
  machine_.write("/sys/bus/pci/devices/0000:02:00.0/vendor", "0x1a03\n");
  machine_.write("/sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n");
  machine_.write("/sys/bus/pci/devices/0000:03:00.0/vendor", "0x10de\n");
  machine_.write("/sys/bus/pci/devices/0000:03:00.0/class", "0x040300\n");  // its sound
  EXPECT_TRUE(gpus_of(machine_.tree()).empty());
}

TEST_F(Checks, RdmaPorts) {
  EXPECT_EQ(one(check_rdma_devices(machine_.tree(), MachineRole::any)).severity, Severity::note);
  EXPECT_EQ(one(check_rdma_devices(machine_.tree(), MachineRole::server)).severity,
            Severity::warning);
  machine_.add_card("mlx5_0", 0);
  const auto good = one(check_rdma_devices(machine_.tree(), MachineRole::server));
  EXPECT_EQ(good.severity, Severity::good);
  EXPECT_EQ(good.found, "ACTIVE, Ethernet, 400 Gb/sec (4X NDR), RoCE v2 at GID 1");

  const std::string port = "/sys/class/infiniband/mlx5_0/ports/1";
  machine_.write(port + "/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n");
  EXPECT_EQ(one(check_rdma_devices(machine_.tree(), MachineRole::any)).severity, Severity::warning);
  machine_.write(port + "/link_layer", "InfiniBand\n");  // has no GIDs of that kind
  EXPECT_EQ(one(check_rdma_devices(machine_.tree(), MachineRole::any)).severity, Severity::good);
  machine_.write(port + "/state", "1: DOWN\n");
  const auto down = one(check_rdma_devices(machine_.tree(), MachineRole::any));
  EXPECT_EQ(down.severity, Severity::warning);
  EXPECT_TRUE(down.found.starts_with("DOWN")) << down.found;
}

TEST_F(Checks, RdmaNodes) {
  EXPECT_TRUE(check_rdma_nodes(machine_.tree()).empty());
  machine_.add_card("mlx5_0", 0);
  EXPECT_EQ(one(check_rdma_nodes(machine_.tree())).severity, Severity::good);
  machine_.remove("/dev/infiniband/rdma_cm");
  EXPECT_EQ(one(check_rdma_nodes(machine_.tree())).severity, Severity::note);
  machine_.remove("/dev/infiniband/uverbs0");
  EXPECT_EQ(check_rdma_nodes(machine_.tree()).size(), 2U);
}

TEST_F(Checks, AGpusMemoryAndACard) {
  EXPECT_EQ(one(check_gpu_registration(machine_.tree())).severity, Severity::note);
  machine_.add_gpu("0000:01:00.0", 0);
  machine_.add_card("mlx5_0", 0);
  EXPECT_EQ(one(check_gpu_registration(machine_.tree())).severity, Severity::good);
  machine_.write("/proc/driver/nvidia/version",
                 "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535\n");
  EXPECT_EQ(one(check_gpu_registration(machine_.tree())).severity, Severity::warning);
  machine_.write("/sys/module/nvidia_peermem/initstate", "live");
  EXPECT_EQ(one(check_gpu_registration(machine_.tree())).severity, Severity::good);
}

TEST_F(Checks, Iommu) {
  EXPECT_EQ(one(check_iommu(machine_.tree())).severity, Severity::good);
  machine_.write("/sys/kernel/iommu_groups/0/type", "identity\n");
  EXPECT_EQ(one(check_iommu(machine_.tree())).severity, Severity::good);
  machine_.write("/sys/kernel/iommu_groups/1/type", "DMA-FQ\n");
  EXPECT_EQ(one(check_iommu(machine_.tree())).severity, Severity::note);
  machine_.add_gpu("0000:01:00.0", 0);
  machine_.add_card("mlx5_0", 0);
  const auto finding = one(check_iommu(machine_.tree()));
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(finding.found, "1 of 2 groups translate addresses");
}

TEST_F(Checks, RegistersOfACardForAGpu) {
  EXPECT_EQ(one(check_register_mapping(machine_.tree())).severity, Severity::note);
  machine_.add_gpu("0000:01:00.0", 0);
  machine_.add_card("mlx5_0", 0);
  EXPECT_EQ(one(check_register_mapping(machine_.tree())).severity, Severity::good);
  machine_.write("/proc/driver/nvidia/params", "RegistryDwords: \"\"\n");
  const auto finding = one(check_register_mapping(machine_.tree()));
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(finding.found, "PeerMappingOverride=1 is not set");
  EXPECT_NE(finding.mend.find("NVreg_RegistryDwords=\"PeerMappingOverride=1;\""),
            std::string::npos);
}

TEST_F(Checks, Acs) {
  EXPECT_EQ(one(check_acs(machine_.tree())).severity, Severity::note);
  machine_.add_gpu("0000:01:00.0", 0);
  machine_.add_card("mlx5_0", 0);
  EXPECT_EQ(one(check_acs(machine_.tree())).severity, Severity::good);  // no bridges
  const std::string bridge = "/sys/bus/pci/devices/0000:00:01.0";
  machine_.write(bridge + "/class", "0x060400\n");
  machine_.write(bridge + "/config", bridge_space(0x1d));
  const auto finding = one(check_acs(machine_.tree()));
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(finding.found, "1 of 1 bridges redirect: 0000:00:01.0");
  machine_.write(bridge + "/config", bridge_space(0x01));  // checks sources, redirects nothing
  EXPECT_EQ(one(check_acs(machine_.tree())).severity, Severity::good);
  machine_.write(bridge + "/config", std::string(64, '\0'));  // what all may read
  EXPECT_EQ(one(check_acs(machine_.tree())).severity, Severity::note);
  // A list that goes round, and one that leaves the space.
  std::string round = bridge_space(0x1d);
  round[0x100 + 2] = 0x01;
  round[0x100 + 3] = 0x10;
  machine_.write(bridge + "/config", round);
  EXPECT_EQ(one(check_acs(machine_.tree())).severity, Severity::good);
  round[0x100 + 3] = static_cast<char>(0xff);
  machine_.write(bridge + "/config", round);
  EXPECT_EQ(one(check_acs(machine_.tree())).severity, Severity::good);
}

TEST_F(Checks, Distance) {
  EXPECT_EQ(one(check_distance(machine_.tree())).severity, Severity::note);
  machine_.add_gpu("0000:01:00.0", 1);
  machine_.add_card("mlx5_0", 0);
  machine_.write("/sys/devices/system/node/node1/distance", "21 10\n");
  const auto far = one(check_distance(machine_.tree()));
  EXPECT_EQ(far.severity, Severity::warning);
  EXPECT_EQ(far.found, "node 1, the cards on other nodes, mlx5_0 at distance 21");
  machine_.add_card("mlx5_1", 1);
  const auto near = one(check_distance(machine_.tree()));
  EXPECT_EQ(near.severity, Severity::good);
  EXPECT_EQ(near.found, "mlx5_1 is on its node 1");
}

TEST_F(Checks, AWholeMachineIsGood) {
  machine_.add_gpu("0000:01:00.0", 0);
  machine_.add_card("mlx5_0", 0);
  const auto findings = check_machine(machine_.tree(), MachineRole::worker);
  for (const Finding& finding : findings) {
    EXPECT_LE(finding.severity, Severity::note) << finding.subject << ": " << finding.found;
  }
  EXPECT_GE(findings.size(), 16U);
}

}  // namespace
}  // namespace offload::doctor
