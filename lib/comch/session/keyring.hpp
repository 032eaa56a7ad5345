#pragma once

#include <span>
#include <string>
#include <vector>

#include "comch/session/key.hpp"

namespace offload::comch {

/// The keys of one program: one, or two while all programs change from one to the other. It proves
/// the first to its peers, and takes either as a proof of theirs.
///
/// One thread, the control thread's: what shares it sees what reload() has read.
class Keyring {
 public:
  static constexpr std::size_t kMost = 2;

  /// Without a key: nothing can be proved.
  Keyring() = default;
  explicit Keyring(std::vector<Key> keys) : keys_(std::move(keys)) {}
  /// Throws Error: what Key::load throws, invalid_value for more files than kMost.
  explicit Keyring(std::vector<std::string> files);

  /// Reads the files again, for connections that are made from now on; those there are stay. A file
  /// that is wrong is logged and changes nothing. Whether the keys were read.
  bool reload() noexcept;

  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }
  /// The first is the one to prove. Until the next reload().
  [[nodiscard]] std::span<const Key> keys() const noexcept { return keys_; }
  /// How often they were read again: for who keeps what is derived from them.
  [[nodiscard]] unsigned generation() const noexcept { return generation_; }

 private:
  std::vector<std::string> files_;
  std::vector<Key> keys_;
  unsigned generation_ = 0;
};

}  // namespace offload::comch
