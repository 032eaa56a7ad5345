#include "comch/keys/keyring.hpp"

#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"

namespace offload::comch {
namespace {

std::vector<Key> load(const std::vector<std::string>& files) {
  std::vector<Key> keys;
  for (const std::string& file : files) keys.push_back(Key::load(file));
  return keys;
}

}  // namespace

Keyring::Keyring(std::vector<std::string> files) : files_(std::move(files)) {
  if (files_.size() > kMost) {
    throw core::Error(core::ErrorCode::invalid_value,
                      "--comch-key-file: at most two are allowed, the new and the old one");
  }
  keys_ = load(files_);
}

bool Keyring::reload() noexcept {
  if (files_.empty()) return false;
  try {
    keys_ = load(files_);
    ++generation_;
    for (const Key& key : keys_) core::log_info("key {} was read", fingerprint(key));
    return true;
  } catch (const std::exception& error) {
    core::log_error("the keys were not changed: {}", core::what_of(error));
    return false;
  }
}

}  // namespace offload::comch
