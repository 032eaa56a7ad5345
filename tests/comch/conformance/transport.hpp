#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "comch/address.hpp"

namespace offload::comch::conformance {

/// What the suite has to know of a transport. A new one adds a file that instantiates `Sessions`
/// with this, and `Lies` if its two ends share no memory.
struct Transport {
  std::string name;
  /// Where to listen, for a test that has this folder to itself. With a key, if the transport has
  /// keys.
  std::function<Address(const std::string& folder)> address;
};

/// For gtest, in names of tests and in messages.
inline std::ostream& operator<<(std::ostream& out, const Transport& transport) {
  return out << transport.name;
}
inline std::string name_of(const testing::TestParamInfo<Transport>& info) {
  return info.param.name;
}

/// Of every test, in case there are keys.
inline Key right_key() {
  return Key(32, std::byte{7});
}

}  // namespace offload::comch::conformance
