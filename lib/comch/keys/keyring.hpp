#pragma once

#include <span>
#include <string>
#include <vector>

#include "comch/keys/key.hpp"

namespace offload::comch {

/// The keys of one program: one, or two during a change from one to the other. The program proves
/// the first to its peers, and accepts a proof of either.
///
/// One thread, the control thread. Objects that share the keyring see the keys that reload() read.
class Keyring {
 public:
  static constexpr std::size_t kMost = 2;

  /// Has no key: nothing can be proved.
  Keyring() = default;
  explicit Keyring(std::vector<Key> keys) : keys_(std::move(keys)) {}
  /// Throws Error: what Key::load throws, invalid_value for more files than kMost.
  explicit Keyring(std::vector<std::string> files);

  /// Reads the files again, for later connections; existing ones stay. Logs an invalid file, and
  /// then changes nothing. Returns whether the keys were read.
  bool reload() noexcept;

  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }
  /// Returns the keys; the first is the one to prove. Valid until the next reload().
  [[nodiscard]] std::span<const Key> keys() const noexcept { return keys_; }
  /// Returns the number of reloads, for callers that cache values derived from the keys.
  [[nodiscard]] unsigned generation() const noexcept { return generation_; }

 private:
  std::vector<std::string> files_;
  std::vector<Key> keys_;
  unsigned generation_ = 0;
};

}  // namespace offload::comch
