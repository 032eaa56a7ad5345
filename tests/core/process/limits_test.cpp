#include "core/process/limits.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temp_dir.hpp"

namespace offload::core {
namespace {

/// The files of a simulated machine.
class Limits : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = folder_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  /// Adds a mount, with a line of /proc/self/mountinfo.
  void mount(const std::string& group, const std::string& folder, const std::string& type,
             const std::string& options) {
    mounts_ += "36 25 0:31 " + group + " " + folder + " rw,relatime shared:9 - " + type + " none " +
               options + "\n";
    write("/proc/self/mountinfo",
          "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n" + mounts_);
  }
  void be_in(const std::string& groups) const { write("/proc/self/cgroup", groups); }

  [[nodiscard]] std::string memory() const { return to_text(memory_limits(folder_.path())); }
  [[nodiscard]] std::string threads() const { return to_text(thread_limits(folder_.path())); }

  support::TempDir folder_;
  std::string mounts_;
};

TEST_F(Limits, NoneWhereNothingIsKnown) {
  EXPECT_EQ(memory(), "");
  EXPECT_EQ(threads(), "");
  EXPECT_EQ(resource_limit("Max open files", true, folder_.path()), std::nullopt);
}

TEST_F(Limits, OfANestedGroupOfVersion2AndOfThoseAboveIt) {
  mount("/", "/sys/fs/cgroup", "cgroup2", "rw,nsdelegate");
  be_in("0::/system.slice/offload-server@a.service\n");
  const std::string service = "/sys/fs/cgroup/system.slice/offload-server@a.service";
  write(service + "/memory.max", "max\n");
  write(service + "/pids.max", "20\n");
  EXPECT_EQ(memory(), "");
  EXPECT_EQ(threads(), "20 (" + service + "/pids.max)");
  write("/sys/fs/cgroup/system.slice/memory.max", "4096\n");  // the root has no such file
  EXPECT_EQ(memory(), "4096 (/sys/fs/cgroup/system.slice/memory.max)");
  write(service + "/memory.max", "1024\n");
  EXPECT_EQ(memory(),
            "1024 (" + service + "/memory.max), 4096 (/sys/fs/cgroup/system.slice/memory.max)");
  write(service + "/memory.max", "8192\n");
  EXPECT_EQ(memory(),
            "4096 (/sys/fs/cgroup/system.slice/memory.max), 8192 (" + service + "/memory.max)")
      << "the tightest comes first";
}

TEST_F(Limits, OfVersion1) {
  mount("/", "/sys/fs/cgroup/cpu", "cgroup", "rw,cpu,cpuacct");
  mount("/", "/sys/fs/cgroup/memory", "cgroup", "rw,memory");
  mount("/", "/sys/fs/cgroup/pids", "cgroup", "rw,pids");
  mount("/", "/sys/fs/cgroup/unified", "cgroup2", "rw");
  be_in("8:pids:/job\n4:memory:/user/job\n1:cpu,cpuacct:/\n0::/\n");
  write("/sys/fs/cgroup/memory/user/job/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/user/memory.limit_in_bytes", "268435456\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/pids/job/pids.max", "3\n");
  // Files of other hierarchies, or for other groups.
  write("/sys/fs/cgroup/cpu/memory.limit_in_bytes", "1\n");
  write("/sys/fs/cgroup/cpu/user/job/memory.limit_in_bytes", "2\n");
  write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "3\n");
  write("/sys/fs/cgroup/unified/user/job/memory.limit_in_bytes", "4\n");
  write("/sys/fs/cgroup/memory/memory.max", "5\n");
  EXPECT_EQ(memory(), "268435456 (/sys/fs/cgroup/memory/user/memory.limit_in_bytes)");
  EXPECT_EQ(threads(), "3 (/sys/fs/cgroup/pids/job/pids.max)");
}

TEST_F(Limits, AreNoneFromTwoToTheSixtySecondOn) {
  mount("/", "/sys/fs/cgroup", "cgroup2", "rw");
  be_in("0::/\n");
  write("/sys/fs/cgroup/memory.max", "4611686018427387904\n");
  EXPECT_EQ(memory(), "");
  write("/sys/fs/cgroup/memory.max", "4611686018427387903\n");
  EXPECT_EQ(memory(), "4611686018427387903 (/sys/fs/cgroup/memory.max)");
}

TEST_F(Limits, OfAContainerInWhichItsGroupIsMounted) {
  // The container has a separate name space.
  mount("/", "/sys/fs/cgroup", "cgroup2", "rw");
  be_in("0::/\n");
  write("/sys/fs/cgroup/memory.max", "1024\n");
  EXPECT_EQ(memory(), "1024 (/sys/fs/cgroup/memory.max)");
}

TEST_F(Limits, OfAContainerThatSeesTheNameOutside) {
  mount("/docker/af01", "/sys/fs/cgroup/memory", "cgroup", "rw,memory");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1024\n");
  write("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "512\n");
  be_in("4:memory:/docker/af01\n");
  EXPECT_EQ(memory(), "1024 (/sys/fs/cgroup/memory/memory.limit_in_bytes)");
  be_in("4:memory:/docker/af01/inner\n");
  EXPECT_EQ(memory(),
            "512 (/sys/fs/cgroup/memory/inner/memory.limit_in_bytes), "
            "1024 (/sys/fs/cgroup/memory/memory.limit_in_bytes)");
  // Neither another group whose name begins with that counts, nor one that is not visible here.
  be_in("4:memory:/docker/af01b\n");
  EXPECT_EQ(memory(), "1024 (/sys/fs/cgroup/memory/memory.limit_in_bytes)");
  be_in("4:memory:/../outside\n");
  EXPECT_EQ(memory(), "");
}

TEST_F(Limits, FoldersWithBlanks) {
  mount("/", R"(/mnt/control\040groups\134)", "cgroup2", "rw");
  be_in("0::/a b\n");
  write("/mnt/control groups\\/a b/memory.max", "7\n");
  EXPECT_EQ(memory(), "7 (/mnt/control groups\\/a b/memory.max)");
  mounts_.clear();
  mount("/", R"(/\0402groups101\04)", "cgroup2", "rw");
  write("/ 2groups101\\04/a b/memory.max", "8\n");
  EXPECT_EQ(memory(), "8 (/ 2groups101\\04/a b/memory.max)");
}

TEST_F(Limits, LinesThatMakeNoSense) {
  write("/proc/self/mountinfo", "\n36\n - \n36 25 0:31 / - cgroup2\nx - cgroup2 none rw\n");
  for (const char* const groups : {"", "\n", "0", "0:", "0::", "::::", "0::nothing\n"}) {
    be_in(groups);
    EXPECT_EQ(memory(), "") << groups;
  }
}

TEST_F(Limits, OfResources) {
  write("/proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max address space         2048                 unlimited            bytes     \n"
        "Max processes             95941                95941                processes \n"
        "Max open files            unlimited            x                    files     \n");
  EXPECT_EQ(memory(), "2048 (ulimit -v)");
  EXPECT_EQ(threads(), "95941 (ulimit -u)");
  EXPECT_EQ(resource_limit("Max address space", false, folder_.path()), 2048U);
  EXPECT_EQ(resource_limit("Max address space", true, folder_.path()), kUnlimited);
  EXPECT_EQ(resource_limit("Max open files", false, folder_.path()), kUnlimited);
  EXPECT_EQ(resource_limit("Max open files", true, folder_.path()), std::nullopt);
  EXPECT_EQ(resource_limit("Max open", true, folder_.path()), std::nullopt);
  write("/proc/self/limits",
        "Max address space         unlimited            2048            bytes\n");
  EXPECT_EQ(memory(), "");
}

TEST(LimitsOfThisProcess, AreWhatTheKernelSays) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_EQ(resource_limit("Max open files", false), files.rlim_cur);
  EXPECT_EQ(resource_limit("Max open files", true), files.rlim_max);
}

}  // namespace
}  // namespace offload::core
