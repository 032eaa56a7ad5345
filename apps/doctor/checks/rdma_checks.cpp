#include <fmt/core.h>

#include <algorithm>

#include "apps/doctor/checks/checks.hpp"

namespace offload::doctor {
namespace {

constexpr const char* kNoGid = "0000:0000:0000:0000:0000:0000:0000:0000";

/// "4: ACTIVE" is "ACTIVE".
std::string behind_colon(const std::string& text) {
  const std::size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

/// The index of the first GID of RoCE v2; nothing if there is none.
std::optional<std::string> roce_v2_gid(const Tree& tree, const std::string& port) {
  for (const std::string& index : tree.names(port + "/gids")) {
    const auto gid = tree.read(fmt::format("{}/gids/{}", port, index));
    if (!gid || *gid == kNoGid) continue;
    if (tree.read(fmt::format("{}/gid_attrs/types/{}", port, index)) == "RoCE v2") return index;
  }
  return std::nullopt;
}

}  // namespace

Finding check_port(const Tree& tree, const std::string& device, const std::string& number) {
  const std::string port = kRdmaDevices + device + "/ports/" + number;
  const std::string subject = fmt::format("rdma {} port {}", device, number);
  const std::string state = behind_colon(tree.read(port + "/state").value_or("unknown"));
  const std::string layer = tree.read(port + "/link_layer").value_or("unknown");
  const std::string rate = tree.read(port + "/rate").value_or("unknown rate");
  const std::string found = fmt::format("{}, {}, {}", state, layer, rate);
  if (state != "ACTIVE") {
    return {Severity::warning, subject, found, "ACTIVE: this port transfers nothing",
            layer == "Ethernet" ? "ip link set its interface up, and check the cable"
                                : "check the cable and the subnet manager"};
  }
  if (layer != "Ethernet") return {Severity::good, subject, found};
  const auto gid = roce_v2_gid(tree, port);
  if (gid) return {Severity::good, subject, found + ", RoCE v2 at GID " + *gid};
  return {Severity::warning, subject, found + ", no GID of RoCE v2",
          "a GID of RoCE v2, from an address of the interface",
          "ip address add ADDRESS dev INTERFACE"};
}

std::vector<PciDevice> cards_of(const Tree& tree) {
  std::vector<PciDevice> cards;
  for (const std::string& name : tree.names(kRdmaDevices)) {
    const std::string folder = kRdmaDevices + name + "/device";
    if (!tree.has(folder + "/vendor")) continue;  // emulated ones are on no bus
    cards.push_back({name, static_cast<int>(tree.number(folder + "/numa_node").value_or(-1))});
  }
  return cards;
}

Findings check_rdma_devices(const Tree& tree, MachineRole role) {
  const auto devices = tree.names(kRdmaDevices);
  if (devices.empty()) {
    const bool wanted = role == MachineRole::server;
    return {{wanted ? Severity::warning : Severity::note, "rdma devices", "none",
             wanted ? "at least one, for --comch rdma:" : "",
             wanted ? "modprobe mlx5_ib; rdma link lists the devices" : ""}};
  }
  Findings findings;
  for (const std::string& device : devices) {
    for (const std::string& port : tree.names(kRdmaDevices + device + "/ports")) {
      findings.push_back(check_port(tree, device, port));
    }
  }
  return findings;
}

Findings check_rdma_nodes(const Tree& tree) {
  const auto devices = tree.names(kRdmaDevices);
  if (devices.empty()) return {};
  Findings findings;
  const auto nodes = tree.names("/dev/infiniband");
  const auto verbs = std::ranges::count_if(
      nodes, [](const std::string& name) { return name.starts_with("uverbs"); });
  if (verbs < static_cast<std::ptrdiff_t>(devices.size())) {
    findings.push_back(
        {Severity::error, "rdma access",
         fmt::format("{} of {} devices have a node in /dev/infiniband", verbs, devices.size()),
         "uverbsN for each device", "modprobe ib_uverbs"});
  }
  if (!tree.has("/dev/infiniband/rdma_cm")) {
    findings.push_back({Severity::note, "rdma access", "no /dev/infiniband/rdma_cm",
                        "offload-rdma --cm and other programs of librdmacm need it",
                        "modprobe rdma_ucm"});
  }
  if (findings.empty()) findings.push_back({Severity::good, "rdma access", "all nodes"});
  return findings;
}

}  // namespace offload::doctor
