#include "device/representors.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace offload::device {
namespace {

namespace fs = std::filesystem;

TEST(PortName, SaysWhichFunction) {
  EXPECT_EQ(function_of("pf0"), (Function{FunctionKind::physical, 0, 0, 0}));
  EXPECT_EQ(function_of("c1pf2"), (Function{FunctionKind::physical, 1, 2, 0}));
  EXPECT_EQ(function_of("pf1hpf"), (Function{FunctionKind::physical, 0, 1, 0}));
  EXPECT_EQ(function_of("pf0vf3"), (Function{FunctionKind::virtual_, 0, 0, 3}));
  EXPECT_EQ(function_of("c1pf0vf127"), (Function{FunctionKind::virtual_, 1, 0, 127}));
  EXPECT_EQ(function_of("pf0sf88"), (Function{FunctionKind::subfunction, 0, 0, 88}));
  EXPECT_EQ(function_of("c2pf1sf4294967295"),
            (Function{FunctionKind::subfunction, 2, 1, 4294967295}));
}

TEST(PortName, OfAnythingElseIsNoFunction) {
  for (const char* name :
       {"",      "p0",    "p0s1",   "pf",      "vf0",          "sf1",
        "c1",    "c1p0",  "pfx",    "pf-1",    "pf+1",         "pf 0",
        "pf0vf", "pf0sf", "pf0vfx", "pf0vf3 ", "pf0vf3sf1",    "pf0hpfx",
        "pf0hp", "pf0x",  "cpf0",   "c1c1pf0", "pf4294967296", "pf0vf99999999999999999999",
        "eth0"}) {
    EXPECT_FALSE(function_of(name)) << name;
  }
}

/// A simulated /sys: class/net with links into devices, as the kernel lays it out.
class Sysfs : public testing::Test {
 protected:
  static constexpr const char* kCard = "pci0000:00/0000:00:01.0/0000:03:00.0";

  [[nodiscard]] fs::path interfaces() const { return root() / "class/net"; }
  [[nodiscard]] fs::path root() const { return dir_.path(); }

  /// An interface of `device`, a path below devices; an attribute that is null is not there.
  void add(const std::string& name, const std::string& device, const char* port_name,
           const char* switch_id, const char* dev_port = "0") {
    const fs::path parent = root() / "devices" / device;
    const fs::path self = parent / "net" / name;
    fs::create_directories(self);
    fs::create_directories(interfaces());
    fs::create_directory_symlink(parent, self / "device");
    fs::create_directory_symlink(self, interfaces() / name);
    write(self / "phys_port_name", port_name);
    write(self / "phys_switch_id", switch_id);
    write(self / "dev_port", dev_port);
  }
  static void write(const fs::path& path, const char* text) {
    if (text != nullptr) std::ofstream(path) << text << '\n';
  }

 private:
  support::TempDir dir_;
};

TEST_F(Sysfs, RepresentorsComeByCardAndFunction) {
  add("pf0sf88", kCard, "pf0sf88", "a1b2", "7");
  add("pf0vf10", kCard, "c1pf0vf10", "a1b2");
  add("pf0vf9", kCard, "c1pf0vf9", "a1b2");
  add("pf0hpf", kCard, "c1pf0", "a1b2");
  add("other", "pci0000:00/0000:02:00.1", "pf1", "c3");
  const auto found = list_representors(interfaces());
  std::vector<std::string> names;
  for (const Representor& representor : found) names.push_back(representor.interface);
  EXPECT_EQ(names, (std::vector<std::string>{"other", "pf0hpf", "pf0vf9", "pf0vf10", "pf0sf88"}));
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(found[2].port_name, "c1pf0vf9");
  EXPECT_EQ(found[2].switch_id, "a1b2");
  EXPECT_EQ(found[2].pci_address, "0000:03:00.0");
  EXPECT_EQ(found[2].dev_port, 0U);
  EXPECT_EQ(found[2].describe(), "pf0vf9, for VF 9 of PF 0 of controller 1, by 0000:03:00.0");
  EXPECT_EQ(found[1].describe(), "pf0hpf, for PF 0 of controller 1, by 0000:03:00.0");
  EXPECT_EQ(found[4].dev_port, 7U);
  EXPECT_EQ(found[4].describe(), "pf0sf88, for SF 88 of PF 0 of controller 0, by 0000:03:00.0");
}

TEST_F(Sysfs, InterfacesOfOtherKindsAreNone) {
  add("eth0", kCard, nullptr, nullptr);
  add("uplink", kCard, "p0", "a1b2");
  add("legacy", kCard, "pf0vf0", nullptr);  // without a switch it stands for nothing
  add("empty", kCard, "", "");
  write(interfaces() / "bonding_masters", "");  // a file among them
  EXPECT_TRUE(list_representors(interfaces()).empty());
}

TEST_F(Sysfs, TheCardIsFoundAboveAnAuxiliaryDevice) {
  add("rep", std::string(kCard) + "/mlx5_core.sf.4", "pf0sf4", "a1b2");
  ASSERT_EQ(list_representors(interfaces()).size(), 1U);
  EXPECT_EQ(list_representors(interfaces())[0].pci_address, "0000:03:00.0");
}

TEST_F(Sysfs, ARepresentorWithoutACardHasNoAddress) {
  add("sim", "netdevsim1", "pf0vf0", "a1b2", nullptr);
  const auto found = list_representors(interfaces());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pci_address, "");
  EXPECT_EQ(found[0].describe(), "sim, for VF 0 of PF 0 of controller 0");
}

TEST_F(Sysfs, ThatIsNotThereHasNone) {
  EXPECT_TRUE(list_representors(interfaces()).empty());
}

TEST(Representors, OfThisMachineHaveAllThatTheyNeed) {
  for (const Representor& representor : list_representors()) {
    EXPECT_FALSE(representor.interface.empty());
    EXPECT_FALSE(representor.switch_id.empty());
    EXPECT_EQ(function_of(representor.port_name), representor.function);
  }
}

}  // namespace
}  // namespace offload::device
