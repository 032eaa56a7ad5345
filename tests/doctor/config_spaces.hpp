#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// Made-up configuration spaces of PCI functions.
namespace offload::doctor {

/// A bridge's, with an ACS capability behind another one.
inline std::string bridge_space(char control) {
  std::string space(4096, '\0');
  const auto put = [&](std::size_t at, std::uint32_t word) {
    for (std::size_t i = 0; i < 4; ++i) space[at + i] = static_cast<char>(word >> (8 * i));
  };
  put(0x100, 0x0001U | 0x10000U | (0x148U << 20U));
  put(0x148, 0x000dU | 0x10000U);
  space[0x148 + 6] = control;
  return space;
}

/// A function's, with the PCI Express capability behind another one, and that in Device Control.
inline std::string function_space(char control) {
  std::string space(4096, '\0');
  space[0x34] = 0x40;
  space[0x40] = 0x01;  // power management
  space[0x41] = 0x60;
  space[0x60] = 0x10;
  space[0x68] = control;
  return space;
}

}  // namespace offload::doctor
