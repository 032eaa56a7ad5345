#include "device/interfaces.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>

#include "core/fd.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::device {
namespace {

namespace fs = std::filesystem;

/// A simulated /sys, as the kernel lays it out.
class InterfacesTest : public testing::Test {
 protected:
  static constexpr const char* kBus = "devices/pci0000:00/0000:00:01.0";

  [[nodiscard]] fs::path root() const { return dir_.path(); }
  [[nodiscard]] std::vector<Interface> list() const {
    return list_interfaces(root() / "class/net");
  }

  /// `device`: below the bus; empty: none.
  void add(const std::string& name, const std::string& device, const char* type = "1") {
    const fs::path self = root() / "class/net" / name;
    fs::create_directories(self);
    write(self / "type", type);
    write(self / "address", "52:54:00:12:34:56");
    write(self / "mtu", "9000");
    write(self / "operstate", "up");
    if (device.empty()) return;
    fs::create_directories(root() / kBus / device);
    fs::create_directory_symlink(root() / kBus / device, self / "device");
  }
  static void write(const fs::path& path, const char* text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }

 private:
  support::TempDir dir_;
};

TEST_F(InterfacesTest, EachSaysWhatItIs) {
  add("pf", "0000:03:00.0");
  add("vf", "0000:03:00.2");
  fs::create_directory_symlink(root() / kBus / "0000:03:00.0",
                               root() / kBus / "0000:03:00.2/physfn");
  add("sf", "0000:03:00.0/mlx5_core.sf.4");
  add("virtio", "0000:04:00.0/virtio0");
  add("dummy", "");
  write(root() / "class/infiniband/mlx5_0/ports/2/gid_attrs/ndevs/0", "pf");
  const auto found = list();
  ASSERT_EQ(found.size(), 5U);
  const auto named = [&](const char* name) {
    return *std::ranges::find(found, name, &Interface::name);
  };
  EXPECT_EQ(named("pf").describe(), "pf 52:54:00:12:34:56, PF at 0000:03:00.0, RDMA device mlx5_0");
  EXPECT_EQ(named("vf").describe(), "vf 52:54:00:12:34:56, VF at 0000:03:00.2");
  EXPECT_EQ(named("sf").describe(), "sf 52:54:00:12:34:56, SF at 0000:03:00.0");
  EXPECT_EQ(named("virtio").function, FunctionKind::physical);
  EXPECT_EQ(named("dummy").describe(), "dummy 52:54:00:12:34:56");
  EXPECT_EQ(named("dummy").function, std::nullopt);
  EXPECT_EQ(named("pf").rdma_port, 2U);
  EXPECT_EQ(found[0].mtu, 9000U);
  EXPECT_TRUE(found[0].up);
}

// A GID table of InfiniBand names no interface.
TEST_F(InterfacesTest, OverInfiniBandTheParentDeviceSaysThePort) {
  add("ib0", "0000:05:00.0", "32");
  write(root() / "class/net/ib0/dev_port", "1");
  fs::create_directories(root() / kBus / "0000:05:00.0/infiniband/mlx4_0");
  add("ib1", "0000:06:00.0", "32");
  const auto found = list();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].rdma_device, "mlx4_0");
  EXPECT_EQ(found[0].rdma_port, 2U);
  EXPECT_EQ(found[1].rdma_device, "");
}

TEST_F(InterfacesTest, TheLoopbackAndTunnelsAreNone) {
  add("lo", "", "772");
  add("sit0", "", "776");
  add("odd", "", "");
  EXPECT_TRUE(list().empty());
}

TEST_F(InterfacesTest, OfNoFolderThereAreNone) {
  EXPECT_TRUE(list().empty());
}

// This machine's own.
TEST(Interfaces, HaveTheAddressesThatTheMachineHas) {
  for (const Interface& interface : list_interfaces()) {
    EXPECT_NE(interface.name, "lo");
    std::ifstream file("/sys/class/net/" + interface.name + "/address");
    std::string mac;
    file >> mac;
    EXPECT_EQ(interface.mac, mac);
    EXPECT_EQ(interface.pci_address.empty(), !interface.function.has_value());
  }
}

TEST_F(InterfacesTest, TheLimitOfOpenFilesIsNamed) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer takes descriptors itself, to look at the type of an object";
#endif
  add("one", "");
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const core::Fd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const rlim_t more : {0U, 1U}) {  // no folder can be opened, or no file in it
    const rlimit few{static_cast<rlim_t>(next.get()) + 1 + more, limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    const auto error = support::thrown_by([&] { (void)list(); });
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_EQ(error.system_errno(), EMFILE) << error.what();
  }
}

}  // namespace
}  // namespace offload::device
