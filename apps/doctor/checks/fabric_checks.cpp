#include <fmt/ranges.h>

#include <algorithm>

#include "apps/doctor/checks/checks.hpp"
#include "apps/doctor/checks/pair.hpp"
#include "device/representors.hpp"
#include "device/sysfs.hpp"

namespace offload::doctor {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kInterfaces = "/sys/class/net/";
constexpr const char* kCmDefaults = "/sys/kernel/config/rdma_cm";
/// The class that most set-ups keep lossless: DSCP 26, so priority 3.
constexpr std::int64_t kUsualClass = 104;

std::string first_port(const Tree& tree, const Pair& pair) {
  const auto ports = tree.names(kRdmaDevices + pair.device + "/ports");
  return ports.empty() ? "1" : ports.front();
}

bool is_infiniband(const Tree& tree, const Pair& pair) {
  const std::string port = kRdmaDevices + pair.device + "/ports/" + first_port(tree, pair);
  return tree.read(port + "/link_layer") == "InfiniBand";
}

/// The card's own port among its interfaces: "p0" on a DPU. The pair's where there is none.
std::string uplink_of(const Tree& tree, const Pair& pair) {
  for (const std::string& name : tree.names(kInterfaces)) {
    const std::string port = tree.read(kInterfaces + name + "/phys_port_name").value_or("");
    const bool is_port = port.size() > 1 && port[0] == 'p' &&
                         port.find_first_not_of("0123456789", 1) == std::string::npos;
    if (is_port &&
        device::card_address(tree.root() + kInterfaces + name + "/device") == pair.card) {
      return name;
    }
  }
  return pair.interface.empty() ? "INTERFACE" : pair.interface;
}

/// Checks the default priority of packets of a traffic class: the first three bits of the class.
Finding check_lossless(const std::string& interface, std::int64_t traffic_class) {
  const auto priority = traffic_class >> 5;
  return {Severity::note, "priority flow control",
          "not readable: the kernel reports it only by netlink",
          fmt::format("on for priority {}, here and at the port of the switch", priority),
          fmt::format("dcb pfc show dev {0}; dcb pfc set dev {0} prio-pfc all:off {1}:on; dcb app "
                      "replace dev {0} dscp-prio {2}:{1}",
                      interface, priority, traffic_class >> 2)};
}

// ---- A BlueField

/// Device IDs of Mellanox: BlueField, BlueField-2, BlueField-3.
bool is_bluefield(const Tree& tree, const Pair& pair) {
  const auto id = tree.read(kPciDevices + pair.card + "/device");
  return id == "0xa2d2" || id == "0xa2d6" || id == "0xa2dc";
}

/// Whether this is the card's own processor, by the name in its firmware.
bool is_dpu(const Tree& tree) {
  return tree.read("/sys/class/dmi/id/product_name").value_or("").find("BlueField") !=
         std::string::npos;
}

/// Commands that make an SF, and where they print what the next one needs.
std::string make_subfunction(const std::string& card) {
  return fmt::format(
      "devlink port add pci/{0} flavour pcisf pfnum {1} sfnum 4; then, with the number that it "
      "prints, devlink port function set pci/{0}/NUMBER hw_addr 02:00:00:00:00:04 state active; "
      "rdma link names the new device: pass it to --pair",
      card, card.back());
}

Finding check_bridges(const Tree& tree, const Names& ports) {
  Names outside;
  for (const std::string& port : ports) {
    if (!tree.has(kInterfaces + port + "/master")) outside.push_back(port);
  }
  if (outside.empty()) {
    // OVS's bridges have one master for the kernel.
    return {Severity::note, "dpu bridge",
            fmt::format("{} are each in a bridge; the name of the bridge is not readable",
                        fmt::join(ports, ", ")),
            "one bridge", fmt::format("ovs-vsctl port-to-br {}, and so on", ports.front())};
  }
  Names commands{"ovs-vsctl --may-exist add-br ovsbr1"};
  for (const std::string& port : outside) {
    commands.push_back("ovs-vsctl --may-exist add-port ovsbr1 " + port);
  }
  return {Severity::warning, "dpu bridge", fmt::format("{} in no bridge", fmt::join(outside, ", ")),
          fmt::format("{} in one bridge of OVS", fmt::join(ports, ", ")),
          fmt::format("{}", fmt::join(commands, "; "))};
}

/// On the DPU, in DPU mode.
Findings check_switch(const Tree& tree, const Pair& pair,
                      const std::vector<device::Representor>& representors) {
  Findings findings{
      {Severity::good, "dpu mode", fmt::format("DPU mode, {} representors", representors.size())}};
  const std::string function = tree.root() + kRdmaDevices + pair.device + "/device";
  if (device::function_kind(function) != device::FunctionKind::subfunction) {
    findings.push_back(
        {Severity::warning, "dpu subfunction",
         fmt::format("{} is the PF; its interface is a port of the bridge", pair.device),
         "an SF, which has a separate interface and address", make_subfunction(pair.card)});
    return findings;
  }
  const auto number = tree.number(kRdmaDevices + pair.device + "/device/sfnum");
  Names ports{uplink_of(tree, pair)};
  for (const device::Representor& representor : representors) {
    const bool is_own = representor.function.kind == device::FunctionKind::subfunction &&
                        representor.function.number == number;
    const bool is_host = representor.function.kind == device::FunctionKind::physical;
    if (is_own || is_host) ports.push_back(representor.interface);
    if (!is_own) continue;
    const bool is_up = tree.read(kInterfaces + representor.interface + "/operstate") == "up";
    findings.push_back({is_up ? Severity::good : Severity::warning, "dpu representor",
                        fmt::format("{}, {}", representor.describe(), is_up ? "up" : "not up"),
                        is_up ? "" : "up: the interface passes no packets while it is down",
                        is_up ? "" : fmt::format("ip link set {} up", representor.interface)});
  }
  const auto is_representor = [](const Finding& each) { return each.subject == "dpu representor"; };
  if (std::ranges::none_of(findings, is_representor)) {
    findings.push_back({Severity::warning, "dpu representor",
                        fmt::format("the SF {} has no representor here", pair.device),
                        "an interface that stands for the SF in the bridge",
                        "devlink port show, and look for its sfnum"});
  }
  findings.push_back(check_bridges(tree, ports));
  findings.push_back({Severity::note, "dpu hardware offload",
                      "not readable: OVS keeps it in its database",
                      "true: otherwise the processors of the DPU forward every packet",
                      "ovs-vsctl get Open_vSwitch . other_config:hw-offload; ovs-vsctl set "
                      "Open_vSwitch . other_config:hw-offload=true, and restart OVS"});
  return findings;
}

}  // namespace

Findings check_adaptive_routing(const Tree& tree, const Pair& pair) {
  const char* const subject = "adaptive routing";
  const char* const expected = "on or off: no data path depends on the order of writes";
  if (is_infiniband(tree, pair)) {
    return {{Severity::note, subject, "not readable: the subnet manager decides", expected,
             "check its configuration"}};
  }
  return {{Severity::note, subject, "not readable: firmware and switches decide", expected,
           fmt::format("mstreg -d {} --reg_name ROCE_ACCL --get, line adaptive_routing_forced_en; "
                       "and the configuration of the switch",
                       pair.card)}};
}

Findings check_traffic_class(const Tree& tree, const Pair& pair) {
  const char* const subject = "traffic class";
  if (is_infiniband(tree, pair)) {
    return {{Severity::good, subject, "none: InfiniBand drops no packets in congestion"}};
  }
  if (!tree.has(kCmDefaults)) {
    return {{Severity::note, subject, "not readable: configfs has no rdma_cm", "",
             "modprobe rdma_cm; mount -t configfs none /sys/kernel/config"}};
  }
  const std::string folder = fmt::format("{}/{}", kCmDefaults, pair.device);
  const std::string file =
      fmt::format("{}/ports/{}/default_roce_tos", folder, first_port(tree, pair));
  const auto value = tree.number(file).value_or(0);
  const std::string uplink = uplink_of(tree, pair);
  if (value > 0) {
    return {{Severity::good, subject, fmt::format("{}, DSCP {}", value, value >> 2)},
            check_lossless(uplink, value)};
  }
  return {{Severity::warning, subject, "no class is set: packets have class 0",
           "the class whose packets the network does not drop, such as 104: DSCP 26",
           fmt::format("mkdir -p {}; echo {} >{}; keep the folder", folder, kUsualClass, file)},
          check_lossless(uplink, kUsualClass)};
}

Findings check_bluefield(const Tree& tree, const Pair& pair) {
  if (!is_bluefield(tree, pair)) return {};
  if (!is_dpu(tree)) {
    return {
        {Severity::note, "dpu mode", "not readable: the card is a BlueField, this is its host", "",
         fmt::format("mstconfig -d {} query INTERNAL_CPU_OFFLOAD_ENGINE: 0 is DPU mode: continue "
                     "there with offload-doctor --pair - DEVICE; 1 is NIC mode: an ordinary card",
                     pair.card)}};
  }
  auto representors = device::list_representors(tree.root() + kInterfaces);
  std::erase_if(representors, [&](const auto& one) { return one.pci_address != pair.card; });
  if (!representors.empty()) return check_switch(tree, pair, representors);
  return {{Severity::warning, "dpu mode", "no representors: NIC mode, or a switch in legacy mode",
           "DPU mode, with the switch in switchdev mode",
           fmt::format("devlink dev eswitch set pci/{0} mode switchdev; if that fails, mstconfig "
                       "-d {0} set INTERNAL_CPU_OFFLOAD_ENGINE=0, and power-cycle the machine",
                       pair.card)}};
}

}  // namespace offload::doctor
