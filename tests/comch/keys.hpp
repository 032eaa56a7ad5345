#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comch/address.hpp"

/// Makes keys for tests.
namespace offload::comch::test {

/// Ignores SIGPIPE, as core::ShutdownSignals does in the programs: OpenSSL writes with write(2).
inline const auto kFormerPipeSignal = std::signal(SIGPIPE, SIG_IGN);

/// `size` bytes of that value, without checking how random they are.
inline Key key_of(int value, std::size_t size = 32) {
  return Key(std::vector<std::byte>(size, static_cast<std::byte>(value)));
}

/// A key of each value, the first to be proven.
template <class... Values>
std::shared_ptr<Keyring> keyring_of(Values... values) {
  std::vector<Key> keys;
  (keys.push_back(key_of(values)), ...);
  return std::make_shared<Keyring>(std::move(keys));
}

/// Writes a random key to a file that only its owner can read.
inline void write_key_file(const std::string& path) {
  std::array<std::byte, 32> bytes{};
  randomize(bytes);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(::chmod(path.c_str(), 0600), 0);
}

inline Address address_with(const std::string& text, std::shared_ptr<Keyring> keys) {
  Address address = Address::parse(text);
  address.keys = std::move(keys);
  return address;
}

}  // namespace offload::comch::test
