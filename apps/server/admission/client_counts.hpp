#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>

#include "net/peer_address.hpp"

namespace offload::server {

/// How many clients there are, in all and of each source (net::Source). The control
/// thread lets them in; any thread may end a Place.
class ClientCounts {
 public:
  enum class Outcome : std::uint8_t { let_in, too_many, too_many_of_address };

  /// A client's place among them, until it ends. It may outlive the counts.
  class Place {
   public:
    Place() noexcept = default;

   private:
    friend ClientCounts;
    using Count = std::shared_ptr<void>;
    explicit Place(Count one, Count all) noexcept : one_(std::move(one)), all_(std::move(all)) {}
    Count one_;
    Count all_;
  };

  ClientCounts(std::size_t most, std::size_t most_per_address)
      : most_(most), most_per_address_(most_per_address), all_(std::make_shared<char>()) {}

  /// Fills `place` if that address may have one more client. Throws std::bad_alloc.
  Outcome admit(const net::PeerAddress& address, Place& place) {
    if (count(all_) >= most_) return Outcome::too_many;
    if (by_source_.size() >= sweep_at_) sweep();
    auto& one = by_source_[address.source()];
    if (!one) one = std::make_shared<char>();
    if (count(one) >= most_per_address_) return Outcome::too_many_of_address;
    place = Place(one, all_);
    return Outcome::let_in;
  }

  /// Sources that it remembers: those of clients, and some that had one.
  [[nodiscard]] std::size_t sources() const noexcept { return by_source_.size(); }

 private:
  // A place holds two references, whose counts are the standard library's: atomic.
  using Count = std::shared_ptr<void>;
  struct Hash {
    std::size_t operator()(const net::Source& source) const noexcept {
      std::uint64_t words[2];
      std::memcpy(words, source.data(), sizeof words);
      return std::hash<std::uint64_t>{}(words[0] * 0x9e3779b97f4a7c15U ^ words[1]);
    }
  };

  /// But for its own reference.
  static std::size_t count(const Count& references) noexcept {
    return static_cast<std::size_t>(references.use_count() - 1);
  }

  /// Forgets those without a client, once there are twice as many as at the last time.
  void sweep() {
    std::erase_if(by_source_, [](const auto& entry) { return count(entry.second) == 0; });
    sweep_at_ = 2 * by_source_.size() + kFirstSweep;
  }

  static constexpr std::size_t kFirstSweep = 64;

  std::size_t most_;
  std::size_t most_per_address_;
  Count all_;
  std::unordered_map<net::Source, Count, Hash> by_source_;
  std::size_t sweep_at_ = kFirstSweep;
};

}  // namespace offload::server
