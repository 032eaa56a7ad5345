#pragma once

#include <optional>
#include <string>

/// The right of a GPU to write to registers of other PCIe devices, such as a card's doorbells.
namespace offload::device {

/// Returns whether NVIDIA's driver has the option PeerMappingOverride=1, without which it maps such
/// registers for root alone; nothing if /proc/driver/nvidia/params cannot be read. `root` is put
/// before that path; a test has a file of its own there. Any thread.
std::optional<bool> peer_mapping_override(const std::string& root = {});

/// Returns what an error about such a mapping has to add: empty if the option is set or unknown.
std::string peer_mapping_advice(const std::string& root = {});

}  // namespace offload::device
