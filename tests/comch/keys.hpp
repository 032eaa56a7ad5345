#pragma once

#include <csignal>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comch/address.hpp"

/// Makes keys for tests, without checking how random they are.
namespace offload::comch::test {

/// Ignores SIGPIPE, as core::ShutdownSignals does in the programs: OpenSSL writes with write(2).
inline const auto kFormerPipeSignal = std::signal(SIGPIPE, SIG_IGN);

/// `size` bytes of that value.
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

inline Address address_with(const std::string& text, std::shared_ptr<Keyring> keys) {
  Address address = Address::parse(text);
  address.keys = std::move(keys);
  return address;
}

}  // namespace offload::comch::test
