#include <gtest/gtest.h>

#include <string>

#include "apps/doctor/checks/checks.hpp"
#include "tests/doctor/made_up_machine.hpp"

namespace offload::doctor {
namespace {

class Measurement : public testing::Test {
 protected:
  /// Two processors; the ticks of all together, idle and stolen ones.
  void add_cpus(int idle, int steal) const {
    for (const char* const cpu : {"cpu0", "cpu1"}) {
      machine_.write("/sys/devices/system/cpu/" + std::string(cpu) + "/online", "1\n");
    }
    machine_.write("/proc/stat", "cpu  0 0 0 " + std::to_string(idle) + " 0 0 0 " +
                                     std::to_string(steal) + " 0 0\ncpu0 0 0 0 0\n");
  }
  /// A process that used this number of ticks, half of them in the kernel.
  void add_process(const std::string& id, const std::string& name, int ticks) const {
    const std::string half = std::to_string(ticks / 2);
    machine_.write("/proc/" + id + "/stat", id + " (" + name + ") R 1 1 1 0 -1 4194304 9 9 9 9 " +
                                                half + " " + half + " 0 0 20 0 1 0 100\n");
  }
  const MadeUpMachine machine_{};
};

TEST_F(Measurement, StealTimeIsThatOfTheInterval) {
  add_cpus(1000, 900);  // before
  auto findings = check_processor_time(machine_.tree(), [this] { add_cpus(1100, 900); });
  EXPECT_EQ(findings[0].severity, Severity::good);
  EXPECT_EQ(findings[0].found, "0.0 % of the processors' time in half a second");
  add_cpus(1000, 900);
  findings = check_processor_time(machine_.tree(), [this] { add_cpus(1095, 905); });
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_EQ(findings[0].found, "5.0 % of the processors' time in half a second");
  EXPECT_FALSE(findings[0].mend.empty());
}

TEST_F(Measurement, ACopyOfFilesHasTheTimeSinceTheBoot) {
  add_cpus(950, 50);
  EXPECT_EQ(check_processor_time(machine_.tree(), {})[0].found,
            "5.0 % of the processors' time since the boot");
}

TEST_F(Measurement, OtherProcessesAreNamedAndTheSuitesAreNot) {
  add_cpus(0, 0);
  add_process("7", "offload-server", 100);
  add_process("8", "a (b) c", 100);
  const auto findings = check_processor_time(machine_.tree(), [this] {
    add_cpus(200, 0);
    add_process("7", "offload-server", 200);
    add_process("8", "a (b) c", 140);
    add_process("9", "cc1plus", 60);
  });
  EXPECT_EQ(findings[1].severity, Severity::warning);
  EXPECT_EQ(findings[1].found,
            "1.00 of 2 processors in half a second: cc1plus (9) 0.60, a (b) c (8) 0.40");
  add_cpus(0, 0);
  const auto renamed = check_processor_time(machine_.tree(), [this] {
    add_cpus(200, 0);
    add_process("8", "d", 140);
  });
  EXPECT_EQ(renamed[1].severity, Severity::good) << renamed[1].found;
  const auto idle = check_processor_time(machine_.tree(), [this] { add_cpus(400, 0); });
  EXPECT_EQ(idle[1].severity, Severity::good);
}

TEST_F(Measurement, WhatIsNotThereIsSaidPlainly) {
  for (const Findings& findings :
       {check_processor_time(machine_.tree(), {}), check_load(machine_.tree()),
        check_siblings(machine_.tree()), check_turbo(machine_.tree()),
        check_clock_discipline(std::nullopt), check_clock(machine_.tree()),
        check_governor(machine_.tree())}) {
    for (const Finding& finding : findings) {
      EXPECT_EQ(finding.severity, Severity::note);
      EXPECT_TRUE(finding.found.starts_with("unknown: ")) << finding.subject << finding.found;
    }
  }
}

TEST_F(Measurement, Load) {
  add_cpus(0, 0);
  machine_.write("/proc/loadavg", "2.00 9.10 8.50 1/200 4711\n");
  EXPECT_EQ(check_load(machine_.tree())[0].severity, Severity::good);
  machine_.write("/proc/loadavg", "2.50 0.10 0.50 1/200 4711\n");
  EXPECT_EQ(check_load(machine_.tree())[0].severity, Severity::warning);
  EXPECT_EQ(check_load(machine_.tree())[0].found, "2.50 in the last minute, 2 processors");
}

TEST_F(Measurement, ThreadsThatShareACore) {
  const auto pin = [this](const std::string& thread, const std::string& cpu) {
    machine_.write(
        "/proc/7/task/" + thread + "/status",
        "Name:\tio-" + thread + "\nCpus_allowed:\tff\nCpus_allowed_list:\t" + cpu + "\n");
  };
  machine_.write("/sys/devices/system/cpu/smt/active", "0\n");
  EXPECT_EQ(check_siblings(machine_.tree())[0].severity, Severity::good);
  machine_.write("/sys/devices/system/cpu/smt/active", "1\n");
  EXPECT_EQ(check_siblings(machine_.tree())[0].severity, Severity::note);
  for (const char* const cpu : {"0", "2"}) {
    machine_.write(
        "/sys/devices/system/cpu/cpu" + std::string(cpu) + "/topology/thread_siblings_list",
        "0,2\n");
  }
  machine_.write("/proc/7/comm", "offload-server\n");
  pin("7", "0-3");  // not pinned
  pin("8", "0");
  pin("9", "1");
  EXPECT_EQ(check_siblings(machine_.tree())[0].severity, Severity::good);
  pin("10", "2");
  const auto finding = check_siblings(machine_.tree())[0];
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(finding.found, "threads share a core: processors 0,2: io-10 (10) on 2, io-8 (8) on 0");
}

TEST_F(Measurement, Turbo) {
  const std::string intel = "/sys/devices/system/cpu/intel_pstate/no_turbo";
  machine_.write("/sys/devices/system/cpu/cpufreq/boost", "1\n");
  EXPECT_TRUE(check_turbo(machine_.tree())[0].found.starts_with("on: "));
  machine_.write("/sys/devices/system/cpu/cpufreq/boost", "0\n");
  EXPECT_EQ(check_turbo(machine_.tree())[0].severity, Severity::good);
  machine_.write(intel, "0\n");
  EXPECT_TRUE(check_turbo(machine_.tree())[0].found.starts_with("on: "));
  machine_.write(intel, "1\n");
  EXPECT_EQ(check_turbo(machine_.tree())[0].severity, Severity::good);
}

TEST_F(Measurement, ClockDiscipline) {
  timex clock{};
  clock.status = STA_PLL | STA_NANO;
  clock.offset = -1'500'000;
  clock.maxerror = 20'000;
  clock.freq = 65536 * 12;
  EXPECT_EQ(check_clock_discipline(clock)[0].severity, Severity::good);
  EXPECT_EQ(check_clock_discipline(clock)[0].found,
            "synchronised: offset -1.500 ms, error at most 20.000 ms, frequency +12.0 ppm");
  clock.status |= STA_UNSYNC;
  EXPECT_EQ(check_clock_discipline(clock)[0].severity, Severity::note);
  EXPECT_TRUE(check_clock_discipline(clock)[0].found.starts_with("not synchronised"));
}

}  // namespace
}  // namespace offload::doctor
