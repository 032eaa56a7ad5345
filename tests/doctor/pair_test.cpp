#include "apps/doctor/checks/pair.hpp"

#include <gtest/gtest.h>

#include "apps/doctor/report.hpp"
#include "tests/doctor/config_spaces.hpp"
#include "tests/doctor/made_up_machine.hpp"
#include "tests/support/thrown.hpp"

namespace offload::doctor {
namespace {

/// The findings on a simulated machine, and the steps that fix them.
class PairTest : public testing::Test {
 protected:
  [[nodiscard]] Findings findings() const {
    const Tree tree = machine_.tree();
    return check_pair(tree, find_pair(tree, gpu_, nic_));
  }
  [[nodiscard]] std::string plan() const { return make_plan(findings(), nic_); }
  [[nodiscard]] std::string next_step() const {
    const std::string text = plan();
    const std::size_t begin = text.find("1. ");
    return text.substr(begin + 3, text.find('\n', begin) - begin - 3);
  }
  [[nodiscard]] Finding found(const std::string& subject) const {
    for (const Finding& finding : findings()) {
      if (finding.subject == subject) return finding;
    }
    ADD_FAILURE() << "no finding about " << subject;
    return {};
  }
  void choose_class(const std::string& device, const std::string& value = "104\n") {
    machine_.write("/sys/kernel/config/rdma_cm/" + device + "/ports/1/default_roce_tos", value);
  }

  const MadeUpMachine machine_{};
  std::string gpu_;
  std::string nic_;
};

// ---- A ConnectX-7 beside a GPU

class ConnectX7 : public PairTest {
 protected:
  static constexpr const char* kSwitch = "pci0000:15/0000:15:01.0/0000:16:00.0/";
  static constexpr const char* kDevices = "/sys/bus/pci/devices/";

  ConnectX7() {
    gpu_ = "0000:18:00.0";
    nic_ = "mlx5_0";
    machine_.place(std::string(kSwitch) + "0000:17:00.0/0000:18:00.0");
    machine_.place(std::string(kSwitch) + "0000:17:01.0/0000:19:00.0");
    machine_.add_gpu("0000:18:00.0", 0);
    machine_.add_card("mlx5_0", 0, "0000:19:00.0", "0x1021");
    for (const char* const bridge : {"0000:17:00.0", "0000:17:01.0"}) set_acs(bridge, 0);
    machine_.write(std::string(kDevices) + "0000:19:00.0/config", function_space(0));
    choose_class("mlx5_0");
  }
  void set_acs(const std::string& bridge, char control) const {
    machine_.write(kDevices + bridge + "/config", bridge_space(control));
  }
};

TEST_F(ConnectX7, IsGoodAndSaysHowToTryIt) {
  for (const Finding& finding : findings()) {
    const bool is_unknown = finding.found.starts_with("not readable: ");
    EXPECT_EQ(finding.severity, is_unknown ? Severity::note : Severity::good) << finding.subject;
    EXPECT_TRUE(!is_unknown || !finding.mend.empty()) << finding.subject;
  }
  EXPECT_EQ(found("pci path").found, "one PCIe switch above both, 2 bridges between");
  EXPECT_EQ(found("traffic class").found, "104, DSCP 26");
  EXPECT_NE(
      plan().find("test it: offload-rdma write --role responder --device mlx5_0 --cm ADDRESS"),
      std::string::npos);
}

TEST_F(ConnectX7, IsFoundByItsInterfaceAndByItsAddress) {
  machine_.write("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "ens1np0\n");
  for (const char* const name : {"mlx5_0", "ens1np0", "0000:19:00.0", "19:00.0"}) {
    const Pair pair = find_pair(machine_.tree(), "18:00.0", name);
    EXPECT_EQ(pair.gpu, "0000:18:00.0");
    EXPECT_EQ(pair.device, "mlx5_0");
    EXPECT_EQ(pair.card, "0000:19:00.0");
    EXPECT_EQ(pair.interface, "ens1np0");
  }
  EXPECT_NE(found("priority flow control").mend.find("dcb pfc show dev ens1np0"),
            std::string::npos);
}

TEST_F(ConnectX7, WhatIsNotThereIsNamedWithWhatIs) {
  const auto why = [this](const std::string& gpu, const std::string& nic) {
    return std::string(support::thrown_by([&] {
                         static_cast<void>(find_pair(machine_.tree(), gpu, nic));
                       }).what());
  };
  EXPECT_EQ(
      why("18:00.1", "mlx5_0"),
      "no GPU has the PCI address '18:00.1'; this machine has 0000:18:00.0; '-' means no GPU");
  EXPECT_EQ(
      why("18:00.0", "eth9"),
      "'eth9' is not an RDMA device, nor an interface or PCI address of one; there are mlx5_0");
}

TEST_F(ConnectX7, ADriverThatKeepsRegistersFromTheGpu) {
  machine_.write("/proc/driver/nvidia/params", "RegistryDwords: \"\"\nRmMsg: \"\"\n");
  EXPECT_TRUE(
      next_step().starts_with("card registers to gpu: echo 'options nvidia "
                              "NVreg_RegistryDwords=\"PeerMappingOverride=1;\"'"))
      << next_step();
  machine_.remove("/proc/driver/nvidia/params");
  EXPECT_EQ(found("card registers to gpu").found, "not readable: no /proc/driver/nvidia/params");
}

TEST_F(ConnectX7, ABridgeThatRedirects) {
  set_acs("0000:17:01.0", 0x1d);
  EXPECT_EQ(next_step(),
            "pci access control: setpci -s 0000:17:01.0 ECAP_ACS+6.w=0000 (after each boot)");
  // The setting of other bridges does not matter.
  set_acs("0000:17:01.0", 0);
  set_acs("0000:16:00.0", 0x1d);
  EXPECT_EQ(found("pci access control").severity, Severity::good);
  machine_.write(std::string(kDevices) + "0000:17:00.0/config", std::string(64, '\0'));
  EXPECT_EQ(found("pci access control").found,
            "not readable: the configuration of bridge 0000:17:00.0");
}

TEST_F(ConnectX7, RelaxedOrdering) {
  const std::string config = std::string(kDevices) + "0000:19:00.0/config";
  EXPECT_EQ(found("relaxed ordering").found, "off");
  machine_.write(config, function_space(0x10));
  EXPECT_EQ(found("relaxed ordering").mend, "mstconfig -d 0000:19:00.0 query PCI_WR_ORDERING");
  machine_.write(config, std::string(64, '\0'));
  EXPECT_TRUE(found("relaxed ordering").found.starts_with("not readable: "));
  // One list is circular, and one leads nowhere.
  std::string round = function_space(0x10);
  round[0x40] = 0x01;
  round[0x41] = 0x40;
  machine_.write(config, round);
  EXPECT_EQ(found("relaxed ordering").found, "off");
  round[0x41] = static_cast<char>(0xfe);
  machine_.write(config, round);
  EXPECT_EQ(found("relaxed ordering").found, "off");
}

TEST_F(ConnectX7, AClassThatIsNotSet) {
  choose_class("mlx5_0", "0\n");
  EXPECT_EQ(next_step(),
            "traffic class: mkdir -p /sys/kernel/config/rdma_cm/mlx5_0; echo 104 "
            ">/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos; keep the folder");
  machine_.remove("/sys/kernel/config/rdma_cm");
  EXPECT_EQ(found("traffic class").found, "not readable: configfs has no rdma_cm");
  machine_.write("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  EXPECT_EQ(found("traffic class").severity, Severity::good);
  EXPECT_EQ(found("adaptive routing").found, "not readable: the subnet manager decides");
}

TEST_F(ConnectX7, APortThatIsDownComesFirst) {
  machine_.write("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  EXPECT_TRUE(next_step().starts_with("rdma mlx5_0 port 1: ip link set")) << next_step();
}

TEST_F(PairTest, WithoutACommonSwitch) {
  machine_.place("pci0000:15/0000:15:01.0/0000:18:00.0");
  machine_.place("pci0000:15/0000:15:02.0/0000:19:00.0");
  machine_.place("pci0000:80/0000:80:02.0/0000:99:00.0");
  machine_.add_gpu("0000:18:00.0", 0);
  machine_.add_card("mlx5_0", 0, "0000:19:00.0", "0x1021");
  machine_.add_card("mlx5_1", 1, "0000:99:00.0", "0x1021");
  gpu_ = "18:00.0";
  nic_ = "mlx5_0";
  EXPECT_EQ(found("pci path").severity, Severity::note);
  EXPECT_EQ(found("pci path").found, "through the root complex of node 0");
  EXPECT_EQ(found("pci access control").severity, Severity::good);
  nic_ = "mlx5_1";
  EXPECT_EQ(found("pci path").severity, Severity::warning);
  EXPECT_EQ(found("pci path").found, "across processors: GPU on node 0, card on node 1");
}

TEST_F(PairTest, ACopyWithoutLinks) {
  machine_.add_gpu("0000:01:00.0", 0);
  machine_.add_card("mlx5_0", 0);
  gpu_ = "01:00.0";
  nic_ = "mlx5_0";
  for (const char* const subject : {"pci path", "write combining", "relaxed ordering"}) {
    EXPECT_TRUE(found(subject).found.starts_with("not readable: ")) << subject;
  }
}

// ---- A virtual machine without write combining

TEST_F(PairTest, AVirtualMachineWithoutWriteCombining) {
  machine_.place("pci0000:00/0000:00:05.0");
  machine_.place("pci0000:00/0000:00:06.0");
  machine_.add_gpu("0000:00:05.0", -1);
  machine_.add_card("mlx5_0", -1, "0000:00:06.0", "0x101e");
  machine_.write("/proc/cpuinfo", "flags\t\t: fpu pat hypervisor lahf_lm\n");
  choose_class("mlx5_0");
  gpu_ = "00:05.0";
  nic_ = "00:06.0";
  EXPECT_EQ(found("write combining").severity, Severity::note) << "the driver has to try it out";
  machine_.remove("/sys/bus/pci/devices/0000:00:06.0/resource0_wc");
  EXPECT_EQ(next_step(),
            "write combining: let the host pass BAR 0 of the card through as prefetchable");
  EXPECT_EQ(found("write combining").expected,
            "supported: without it queue pairs share one doorbell register");
  EXPECT_EQ(found("pci path").mend, "nvidia-smi topo -m on the host");
  machine_.write("/proc/cpuinfo", "flags\t\t: fpu lahf_lm\n");
  EXPECT_EQ(next_step(), "write combining: boot without nopat");
}

// ---- A BlueField-3

class BlueField3 : public PairTest {
 protected:
  static constexpr const char* kCard = "0000:03:00.0";

  BlueField3() {
    gpu_ = "-";
    nic_ = "mlx5_0";
    machine_.place("pci0000:00/0000:00:00.0/0000:03:00.0");
    machine_.add_card("mlx5_0", -1, kCard, "0xa2dc");
    machine_.write("/sys/class/dmi/id/product_name", "BlueField-3 DPU\n");
    add_interface("p0", "p0");
  }
  void add_interface(const std::string& name, const std::string& port_name) const {
    const std::string folder = "/sys/class/net/" + name;
    machine_.write(folder + "/phys_port_name", port_name + "\n");
    machine_.write(folder + "/phys_switch_id", "3c40300003a1a0\n");
    machine_.write(folder + "/operstate", "up\n");
    machine_.link(folder + "/device", std::string("/sys/bus/pci/devices/") + kCard);
  }
  void add_subfunction() {
    machine_.place("pci0000:00/0000:00:00.0/0000:03:00.0/mlx5_core.sf.2");
    machine_.add_card("mlx5_2", -1, "mlx5_core.sf.2", "0xa2dc");
    machine_.write("/sys/class/infiniband/mlx5_2/device/sfnum", "4\n");
    nic_ = "mlx5_2";
  }
};

TEST_F(BlueField3, IsBroughtUpStepByStep) {
  EXPECT_TRUE(next_step().starts_with("dpu mode: devlink dev eswitch set pci/0000:03:00.0"))
      << next_step();
  add_interface("pf0hpf", "c1pf0");
  EXPECT_TRUE(next_step().starts_with(
      "dpu subfunction: devlink port add pci/0000:03:00.0 flavour pcisf pfnum 0 sfnum 4;"))
      << next_step();
  add_subfunction();
  add_interface("en3f0pf0sf4", "pf0sf4");
  add_interface("en3f0pf0sf7", "pf0sf7");  // another's
  machine_.write("/sys/class/net/en3f0pf0sf4/operstate", "down\n");
  EXPECT_EQ(next_step(), "dpu representor: ip link set en3f0pf0sf4 up");
  machine_.write("/sys/class/net/en3f0pf0sf4/operstate", "up\n");
  EXPECT_EQ(next_step(),
            "dpu bridge: ovs-vsctl --may-exist add-br ovsbr1; ovs-vsctl --may-exist add-port "
            "ovsbr1 p0; ovs-vsctl --may-exist add-port ovsbr1 pf0hpf; ovs-vsctl --may-exist "
            "add-port ovsbr1 en3f0pf0sf4");
  for (const char* const port : {"p0", "pf0hpf", "en3f0pf0sf4"}) {
    machine_.write(std::string("/sys/class/net/") + port + "/master/ifindex", "9\n");
  }
  machine_.write("/sys/kernel/config/rdma_cm/version", "");
  EXPECT_TRUE(next_step().starts_with("traffic class: mkdir -p /sys/kernel/config/rdma_cm/mlx5_2;"))
      << next_step();
  choose_class("mlx5_2");
  EXPECT_NE(found("priority flow control").mend.find("dcb pfc show dev p0;"), std::string::npos);
  EXPECT_LE(worst_of(findings()), Severity::note);
}

TEST_F(BlueField3, OnItsHostTheModeIsAskedOfTheCard) {
  machine_.write("/sys/class/dmi/id/product_name", "PowerEdge R750\n");
  EXPECT_TRUE(found("dpu mode")
                  .mend.starts_with("mstconfig -d 0000:03:00.0 query INTERNAL_CPU_OFFLOAD_ENGINE"));
}

}  // namespace
}  // namespace offload::doctor
