#include "rdma/path/local_path.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using support::thrown_by;
using test::fake;

/// A device of two ports: the first has 10.0.0.1, the second 10.0.0.2 and fd77::2.
class LocalPathTest : public FakeDeviceTest {
 protected:
  LocalPathTest() {
    fake().device.phys_port_cnt = 2;
    for (const auto& [index, address] : {std::pair{2U, "10.0.0.2"}, std::pair{3U, "fd77::2"}}) {
      ibv_gid_entry entry = fake().gids.front();
      entry.port_num = 2;
      entry.gid_index = index;
      entry.gid = parse_gid(address);
      fake().gids.push_back(entry);
    }
  }
  std::optional<PathOptions> path_of(const std::string& address, const PathChoice& choice = {},
                                     std::uint32_t interface = 0) {
    return path_at(DeviceContext("fake0"), parse_gid(address), interface, choice);
  }
  std::string described(const std::string& address, const PathChoice& choice = {}) {
    return describe(DeviceContext("fake0"), *path_of(address, choice));
  }
};

TEST_F(LocalPathTest, TheAddressSaysPortAndGid) {
  EXPECT_EQ(described("10.0.0.1"),
            "fake0 port 1, GID 10.0.0.1 (index 1), traffic class 0, service level 0, partition "
            "0xffff");
  EXPECT_EQ(described("10.0.0.2").find("fake0 port 2, GID 10.0.0.2 (index 2), "), 0U);
  EXPECT_EQ(described("fd77::2").find("fake0 port 2, GID fd77::2 (index 3), "), 0U);
}

TEST_F(LocalPathTest, AnAddressThatNoPortHasIsOfAnotherDevice) {
  EXPECT_FALSE(path_of("10.9.9.9"));
  fake().port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  EXPECT_FALSE(path_of("10.9.9.9"));
}

// A VLAN's interface and the one below it.
TEST_F(LocalPathTest, ALinkLocalAddressIsThatOfItsInterface) {
  for (const auto& [index, interface] : {std::pair{4U, 11U}, std::pair{5U, 12U}}) {
    ibv_gid_entry entry = fake().gids.front();
    entry.gid_index = index;
    entry.ndev_ifindex = interface;
    entry.gid = parse_gid("fe80::5");
    fake().gids.push_back(entry);
  }
  const auto gid_index = [&](std::uint32_t interface) {
    const auto path = path_of("fe80::5", {}, interface);
    return choose_gid(DeviceContext("fake0").gids(1), path->gid).gid_index;
  };
  EXPECT_EQ(gid_index(11), 4U);
  EXPECT_EQ(gid_index(12), 5U);
  EXPECT_EQ(gid_index(0), 4U);
  EXPECT_FALSE(path_of("fe80::5", {}, 13));
}

// Such as loopback, or the address of a bridge above the port.
TEST_F(LocalPathTest, ADeviceThatIsNamedNeedsNotHaveTheAddress) {
  PathChoice choice;
  choice.device = "fake0";
  EXPECT_EQ(described("127.0.0.1", choice).find("fake0 port 1, GID 10.0.0.1 "), 0U);
  EXPECT_EQ(path_of("10.0.0.2", choice)->port_num, 2) << "but where it has, that is the port";
  fake().port.state = IBV_PORT_DOWN;
  EXPECT_EQ(thrown_by([&] { path_of("127.0.0.1", choice); }).code(), ErrorCode::not_connected);
}

TEST_F(LocalPathTest, WhatIsChosenIsTaken) {
  fake().pkeys = {0xffff, 0x0001, 0x8002};
  EXPECT_EQ(described("10.0.0.2", {{}, 3, 106, 5, 0x8002}),
            "fake0 port 2, GID fd77::2 (index 3), traffic class 106, service level 5, partition "
            "0x8002");
  PathChoice choice;
  choice.pkey = 0x8001;  // as a full member; here it is a limited one
  EXPECT_EQ(path_of("10.0.0.1", choice)->pkey_index, 1);
  choice.pkey = 0x8003;
  const auto error = thrown_by([&] { path_of("10.0.0.1", choice); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_EQ(std::string(error.what()),
            "port 1 of fake0 has no partition 0x8003; it has 0xffff 0x0001 0x8002");
}

// Two limited members of a partition cannot communicate.
TEST_F(LocalPathTest, OfTwoEntriesOfAPartitionTheOneThatIsNamedIsTaken) {
  fake().pkeys = {0x0001, 0x8001};
  PathChoice choice;
  choice.pkey = 0x8001;
  EXPECT_EQ(path_of("10.0.0.1", choice)->pkey_index, 1);
  choice.pkey = 0x0001;
  EXPECT_EQ(path_of("10.0.0.1", choice)->pkey_index, 0);
}

TEST_F(LocalPathTest, TheSystemSaysTheRest) {
  const support::TempDir defaults;
  const auto folder = std::filesystem::path(defaults.path()) / "fake0/ports/1";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "default_roce_tos") << "104\n";
  fake().port.sm_sl = 3;
  const DeviceContext device("fake0");
  const auto marks = [&](const PathChoice& choice) {
    PathOptions path;
    mark_path(device, choice, path, defaults.path());
    return std::pair<int, int>(path.rtr.ah_attr.grh.traffic_class, path.rtr.ah_attr.sl);
  };
  EXPECT_EQ(marks({}), std::pair(104, 0));
  EXPECT_EQ(marks({{}, {}, 8, 1, {}}), std::pair(8, 1));
  fake().port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  EXPECT_EQ(marks({}), std::pair(0, 3)) << "the subnet manager's";
  EXPECT_EQ(marks({{}, {}, 8, 1, {}}), std::pair(8, 1));
}

}  // namespace
}  // namespace offload::rdma
