#include "device/peer_mapping.hpp"

#include <fstream>
#include <string_view>

namespace offload::device {

constexpr std::string_view kSet = "PeerMappingOverride=1";

std::optional<bool> peer_mapping_override(const std::string& root) {
  std::ifstream lines(root + "/proc/driver/nvidia/params");
  if (!lines) return std::nullopt;
  for (std::string line; std::getline(lines, line);) {
    // Those of all GPUs, and RegistryDwordsPerDevice: both are lists as in "A=1;B=2;".
    if (!line.starts_with("RegistryDwords")) continue;
    const auto at = line.find(kSet);
    if (at != std::string::npos && line.find_first_of(";\"", at) == at + kSet.size()) return true;
  }
  return false;
}

std::string peer_mapping_advice(const std::string& root) {
  if (peer_mapping_override(root).value_or(true)) return {};
  return " (the driver's option PeerMappingOverride=1 is not set, so it maps them only for root: "
         "see offload-doctor)";
}

}  // namespace offload::device
