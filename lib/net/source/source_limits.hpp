#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

#include "core/clock.hpp"
#include "net/source/source.hpp"

namespace offload::net {

/// Limits the handshakes that a source of connections may begin without proving a key: a token
/// bucket for each (an IPv4 address, or the first 64 bits of an IPv6 one), and one for all
/// together. A proof of the key returns the token, so a worker with many channels is not slowed
/// down. One thread.
class SourceLimits {
 public:
  /// Handshakes that may fail at once, and that may a second after that. One costs the control
  /// thread some 0.2 ms: 4% of it at most go into what strangers ask for.
  static constexpr double kBurst = 32;
  static constexpr double kRate = 16;
  static constexpr double kBurstOfAll = 128;
  static constexpr double kRateOfAll = 200;

  /// Returns whether `source` may begin a handshake now; takes a token if so.
  bool take(const Source& source, core::RunTime now) {
    if (buckets_.size() >= kMostSources) forget(now);
    Bucket& bucket = buckets_.try_emplace(source, Bucket{kBurst, now}).first->second;
    bucket.fill(kRate, kBurst, now);
    all_.fill(kRateOfAll, kBurstOfAll, now);
    if (bucket.tokens < 1 || all_.tokens < 1) return false;
    bucket.tokens -= 1;
    all_.tokens -= 1;
    return true;
  }
  /// It has proven a key.
  void give_back(const Source& source) {
    all_.tokens = std::min(all_.tokens + 1, kBurstOfAll);
    const auto bucket = buckets_.find(source);
    if (bucket != buckets_.end()) {
      bucket->second.tokens = std::min(bucket->second.tokens + 1, kBurst);
    }
  }
  /// Forgets the sources whose buckets are full again.
  void forget(core::RunTime now) {
    for (auto entry = buckets_.begin(); entry != buckets_.end();) {
      entry->second.fill(kRate, kBurst, now);
      entry = entry->second.tokens >= kBurst ? buckets_.erase(entry) : std::next(entry);
    }
    // More sources than that are one attacker with many addresses: the bucket of all is for them.
    if (buckets_.size() >= kMostSources) buckets_.clear();
  }
  [[nodiscard]] std::size_t sources() const noexcept { return buckets_.size(); }

  static constexpr std::size_t kMostSources = 4096;

 private:
  struct Bucket {
    double tokens;
    core::RunTime filled;
    void fill(double rate, double burst, core::RunTime now) noexcept {
      tokens = std::min(burst, tokens + rate * core::to_seconds(now - filled));
      filled = now;
    }
  };

  std::map<Source, Bucket> buckets_;
  Bucket all_{kBurstOfAll, {}};
};

}  // namespace offload::net
