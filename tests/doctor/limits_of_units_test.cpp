#include <gtest/gtest.h>

#include <string>

#include "apps/doctor/checks/checks.hpp"
#include "tests/doctor/made_up_machine.hpp"

namespace offload::doctor {
namespace {

constexpr const char* kHead =
    "Limit                     Soft Limit           Hard Limit           Units\n";

class LimitsOfUnits : public testing::Test {
 protected:
  /// A process with these open files; the shell has 1024.
  void add_process(const std::string& id, const std::string& name, const std::string& files) const {
    machine_.write("/proc/" + id + "/comm", name + "\n");
    machine_.write("/proc/" + id + "/limits",
                   kHead + ("Max open files            1024                 " + files +
                            "               files\n"));
  }
  /// Returns the finding about the open files of the only holder.
  [[nodiscard]] std::string open_files(const std::string& units = {}) const {
    const auto holders = limit_holders(machine_.tree(), units);
    EXPECT_EQ(holders.size(), 1U);
    return check_open_files(machine_.tree(), holders.front()).front().found;
  }
  const MadeUpMachine machine_{};
};

TEST_F(LimitsOfUnits, AUnitThatRunsHasThoseOfItsProcess) {
  add_process("self", "offload-doctor", "1024");
  add_process("4711", "offload-server", "1048576");
  EXPECT_EQ(open_files("Id=offload-server@a.service\nMainPID=4711\nLimitNOFILE=7\n"),
            "1048576 at most (offload-server@a.service, /proc/4711/limits)");
}

TEST_F(LimitsOfUnits, AUnitThatDoesNotRunHasThoseOfSystemd) {
  add_process("self", "offload-doctor", "1024");
  const std::string unit = "Id=offload-server@a.service\nMainPID=0\n";
  EXPECT_EQ(open_files(unit + "LimitNOFILE=4096\n"),
            "4096 at most (offload-server@a.service, systemctl show; it does not run)");
  const auto both = limit_holders(
      machine_.tree(), unit + "TasksMax=16\nMemoryMax=infinity\nLimitMEMLOCK=65536:infinity\n\n" +
                           "Id=offload-worker@a.service\nMainPID=0\nTasksMax=infinity\n");
  ASSERT_EQ(both.size(), 2U);
  const auto tasks = check_threads(machine_.tree(), both[0]).front();
  EXPECT_EQ(tasks.severity, Severity::warning);
  EXPECT_EQ(tasks.found,
            "16 at most: TasksMax=, offload-server@a.service, systemctl show; it does not run");
  EXPECT_EQ(check_memory(machine_.tree(), both[0]).front().severity, Severity::good);
  EXPECT_EQ(check_locked_memory(machine_.tree(), both[0]).front().severity, Severity::good);
  EXPECT_EQ(check_threads(machine_.tree(), both[1]).front().severity, Severity::good);
}

TEST_F(LimitsOfUnits, WithoutSystemdTheProcessesThenTheFilesThenTheShell) {
  EXPECT_TRUE(open_files().starts_with("unknown: not read (of this shell"));
  add_process("self", "offload-doctor", "1024");
  EXPECT_EQ(
      open_files(),
      "1024 at most (of this shell, /proc/self/limits: no unit and no process of the suite is "
      "here)");
  machine_.write("/usr/lib/systemd/system/offload-server@.service",
                 "[Unit]\nDescription=x\n\n[Service]\nLimitNOFILE=1048576\n");
  EXPECT_EQ(open_files(),
            "1048576 at most (/usr/lib/systemd/system/offload-server@.service; no instance is "
            "loaded)");
  add_process("12", "offload-worker", "4096");
  add_process("13", "bash", "5");
  EXPECT_EQ(open_files(), "4096 at most (offload-worker, /proc/12/limits)");
}

TEST_F(LimitsOfUnits, AFileMayHaveUnitsAndShares) {
  machine_.write("/etc/systemd/system/offload-server@.service",
                 "[Service]\nMemoryMax=128M\nTasksMax=50%\nLimitMEMLOCK=1M\n\n[Service]\n"
                 "LimitMEMLOCK=64M\n");
  const auto holder = limit_holders(machine_.tree(), "").front();
  EXPECT_TRUE(check_memory(machine_.tree(), holder).front().found.starts_with("128 MiB at most"));
  EXPECT_TRUE(check_threads(machine_.tree(), holder).front().found.starts_with("unknown"));
  EXPECT_TRUE(check_locked_memory(machine_.tree(), holder).front().found.starts_with("65536 KiB"));
}

TEST_F(LimitsOfUnits, TheControlGroupIsThatOfTheProcess) {
  machine_.write("/proc/self/mountinfo",
                 "35 25 0:31 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n");
  machine_.write("/proc/self/cgroup", "0::/shell.scope\n");
  machine_.write("/proc/12/cgroup", "0::/worker.service\n");
  machine_.write("/sys/fs/cgroup/shell.scope/pids.max", "16\n");
  machine_.write("/sys/fs/cgroup/worker.service/pids.max", "4096\n");
  EXPECT_EQ(check_threads(machine_.tree(), {"x", "12"}).front().found,
            "4096 at most: /sys/fs/cgroup/worker.service/pids.max, x");
  EXPECT_EQ(check_threads(machine_.tree(), {"x", "self"}).front().severity, Severity::warning);
}

}  // namespace
}  // namespace offload::doctor
