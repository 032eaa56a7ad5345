#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "comch/address.hpp"
#include "protocol/control.hpp"
#include "tests/comch/keys.hpp"

namespace offload::comch::conformance {

/// A transport for the suite. A new one adds a file that instantiates `Sessions` with this, and
/// `Lies` if its two ends share no memory.
struct TestedTransport {
  std::string name;
  /// Returns the address to listen at, for a test that has this folder to itself. With a key, if
  /// the transport has keys.
  std::function<Address(const std::string& folder)> address;
  /// The workers' capabilities: bits of protocol::HelloCapability.
  std::uint32_t capabilities = protocol::kRingsDoorbell;
};

/// Prints it for gtest, in names of tests and in messages.
inline std::ostream& operator<<(std::ostream& out, const TestedTransport& transport) {
  return out << transport.name;
}
inline std::string name_of(const testing::TestParamInfo<TestedTransport>& info) {
  return info.param.name;
}

/// Returns the address with the key of every test.
inline Address with_key(const std::string& text) {
  return test::address_with(text, test::keyring_of(7));
}

}  // namespace offload::comch::conformance
