#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"

/// The representors of a SmartNIC in switchdev mode: network interfaces of this machine that stand
/// for functions which the card gives to others, as a DPU's for those that its host sees.
namespace offload::device {

/// Identifies a function of a card, in the card's own numbers.
struct Function {
  FunctionKind kind = FunctionKind::physical;
  std::uint32_t controller = 0;  ///< 0: the machine that drives the card; a DPU's host is another
  std::uint32_t pf = 0;          ///< a VF's or SF's physical function
  std::uint32_t number = 0;      ///< of the VF or SF; 0 for a PF

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of the comparison for one
  friend auto operator<=>(const Function&, const Function&) = default;
};

/// A representor as it was found. A copy stays true for as long as the machine is not changed.
struct Representor {
  std::string interface;    ///< its name on this machine: "pf0hpf", "eth4"
  std::string port_name;    ///< as the kernel puts it together: "c1pf0vf3"
  Function function;        ///< that it stands for
  std::string switch_id;    ///< equal for all ports of one switch
  std::string pci_address;  ///< of the card, "0000:03:00.0"; empty if it has none
  std::uint32_t dev_port = 0;

  /// "pf0vf3, for VF 3 of PF 0 of controller 1, by 0000:03:00.0"
  [[nodiscard]] std::string describe() const;
};

/// Parses a phys_port_name: "[cN]pfN", followed by "vfN", "sfN" or a DPU's "hpf". Nothing for other
/// names, such as those of physical ports ("p0").
std::optional<Function> function_of(std::string_view port_name) noexcept;

/// The representors of this machine, by card and function. `interfaces`: a folder of sysfs. Omits
/// interfaces that are not representors, or that disappear meanwhile.
std::vector<Representor> list_representors(
    const std::filesystem::path& interfaces = "/sys/class/net");

}  // namespace offload::device
