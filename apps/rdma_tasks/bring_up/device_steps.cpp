#include "apps/rdma_tasks/bring_up/device_steps.hpp"

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <optional>

#include "device/interfaces.hpp"
#include "rdma/path/local_path.hpp"
#include "rdma/verbs/gpu_reach.hpp"

namespace offload::rdma_tool {
namespace {

constexpr const char* kAddAddress = "ip address add ADDRESS dev INTERFACE, then ip link set it up";
/// A few channels with messages of some KiB.
constexpr std::size_t kHostBytes = std::size_t{16} << 20;
constexpr std::size_t kGpuBytes = std::size_t{1} << 20;

std::string driver_of(const ibv_device& device) {
  std::error_code error;
  const auto link =
      std::filesystem::read_symlink(std::string(device.ibdev_path) + "/device/driver", error);
  return error ? "emulated (on no bus)" : "driver " + link.filename().string();
}

bool is_ethernet(const ibv_port_attr& port) noexcept {
  return port.link_layer == IBV_LINK_LAYER_ETHERNET;
}

const char* name_of(ibv_port_state state) noexcept {
  constexpr std::array kNames = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
  return state < kNames.size() ? kNames[state] : "unknown";
}

rdma::GidRule rule_of(const Options& options) {
  rdma::GidRule rule;
  if (!options.gid.empty()) rule.address = rdma::parse_gid(options.gid);
  rule.index = options.path.gid_index;
  return rule;
}

/// Returns the address that a user of `--comch rdma:` names: over RoCE that of the GID, over
/// InfiniBand that of the interface; nothing if there is none.
std::optional<std::string> address_of(const rdma::DeviceContext& device, std::uint8_t port,
                                      const ibv_gid& gid) {
  if (is_ethernet(device.port(port))) return rdma::to_string(gid);
  for (const device::Interface& interface : device::list_interfaces()) {
    if (interface.rdma_device == device.name() && interface.rdma_port == port &&
        !interface.addresses.empty()) {
      return interface.addresses.front();
    }
  }
  return std::nullopt;
}

}  // namespace

StepFinding describe_device(const rdma::DeviceContext& device) {
  const ibv_device_attr& has = device.attributes();
  const std::string firmware(has.fw_ver, ::strnlen(has.fw_ver, sizeof has.fw_ver));
  return {StepVerdict::good, "device",
          fmt::format("{}: {}, vendor 0x{:04x} part {}, firmware {}, {} port(s), {}", device.name(),
                      driver_of(*device.get()->device), has.vendor_id, has.vendor_part_id,
                      firmware.empty() ? "unknown" : firmware, has.phys_port_cnt,
                      device.has_atomics() ? "atomic operations" : "no atomic operations"),
          ""};
}

StepFinding explain_device(const core::Error& error) {
  const int errnum = error.system_errno();
  const bool refused = errnum == EACCES || errnum == EPERM;
  return {StepVerdict::error, "device", error.what(),
          refused ? "run it as root, or let this user write to /dev/infiniband/uverbs*"
                  : "modprobe -a mlx5_ib ib_uverbs; install ibverbs-providers; rdma link lists the "
                    "devices"};
}

std::uint8_t choose_port(const rdma::DeviceContext& device) {
  for (unsigned number = 1; number <= device.attributes().phys_port_cnt; ++number) {
    const auto port = static_cast<std::uint8_t>(number);
    if (device.port(port).state == IBV_PORT_ACTIVE) return port;
  }
  return 1;
}

StepFinding check_port(const rdma::DeviceContext& device, std::uint8_t port,
                       const Options& options) {
  StepFinding finding{StepVerdict::error, "port", "", ""};
  try {
    const ibv_port_attr has = device.port(port);
    const bool ethernet = is_ethernet(has);
    finding.found = fmt::format("port {}: {}, {}, MTU {}", port, name_of(has.state),
                                ethernet ? "Ethernet" : "InfiniBand", 128 << has.active_mtu);
    if (!ethernet) finding.found += fmt::format(", LID {}", has.lid);
    if (has.state != IBV_PORT_ACTIVE) {
      finding.to_fix = ethernet ? "ip link set its interface up, and check the cable"
                                : "check the cable and the subnet manager";
      return finding;
    }
    const ibv_gid_entry gid = rdma::choose_gid(device.gids(port), rule_of(options));
    finding.found += fmt::format(", GID {} (index {})", rdma::to_string(gid.gid), gid.gid_index);
    finding.verdict = StepVerdict::good;
    if (ethernet && rdma::is_link_local(gid.gid)) {
      finding.verdict = StepVerdict::warning;
      finding.found += ", which no router forwards";
      finding.to_fix = kAddAddress;
    }
  } catch (const core::Error& error) {
    finding.found += std::string(finding.found.empty() ? "" : "; ") + error.what();
    finding.to_fix = kAddAddress;
  }
  return finding;
}

StepFinding check_path(const rdma::DeviceContext& device, std::uint8_t port,
                       const Options& options) {
  StepFinding finding{StepVerdict::warning, "path", "",
                      "--rdma-device of offload-server and -worker"};
  try {
    const ibv_gid gid = rdma::choose_gid(device.gids(port), rule_of(options)).gid;
    const auto address = address_of(device, port, gid);
    if (!address) {
      finding.found = "no interface of the port has an address for --comch rdma:";
      return finding;
    }
    rdma::PathChoice choice = options.path;
    choice.device.clear();
    const auto path = rdma::path_at(device, rdma::parse_gid(*address), 0, choice);
    if (!path) {
      finding.found = "--comch rdma:" + *address + " does not find the device";
      return finding;
    }
    return {StepVerdict::good, "path",
            "--comch rdma:" + *address + " takes " + rdma::describe(device, *path), ""};
  } catch (const core::Error& error) {
    return {StepVerdict::error, "path", error.what(), "correct --gid, --gid-index or --pkey"};
  }
}

StepFinding check_memory(Environment& environment) {
  const std::string size = fmt::format("{} MiB of host memory", kHostBytes >> 20);
  try {
    const memory::Range range = environment.lanes().allocate(kHostBytes);
    const auto key = environment.registrar().register_range(
        range, memory::kLocalAccess | environment.peer_access());
    environment.registrar().deregister(range, key);
    return {StepVerdict::good, "memory", size + " can be registered", ""};
  } catch (const core::Error& error) {
    return {StepVerdict::error, "memory", size + ": " + error.what(),
            "ulimit -l unlimited; in a unit LimitMEMLOCK=infinity, in a container --ulimit "
            "memlock=-1"};
  }
}

StepFinding check_gpu_memory(Environment& environment) {
  constexpr const char* kStep = "GPU memory";
  try {
    const memory::Range range = environment.lanes().allocate_on_gpu(kGpuBytes);
    const rdma::GpuReach reach = rdma::reach_of(environment.objects().domain, range);
    const std::string found = environment.device().name() + " accesses it " + reach.describe();
    if (reach.way != rdma::Reach::none) return {StepVerdict::good, kStep, found, ""};
    return {StepVerdict::note, kStep, found,
            "use NVIDIA's open driver, or modprobe nvidia_peermem; the slots of server and worker "
            "do not need it"};
  } catch (const core::Error& error) {
    return {StepVerdict::note, kStep, std::string("not tried: ") + error.what(), ""};
  }
}

}  // namespace offload::rdma_tool
