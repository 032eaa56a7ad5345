#pragma once

#include <array>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kernels/group.hpp"
#include "tests/kernels/bodies/host_runner.hpp"

/// A warp or a block that a test emulates on the host: each lane is a thread. It runs the code that
/// only groups of more than one lane run, where a CPU's tools see every access.
namespace offload::kernels::test {

/// The places where the lanes of one group, or of one tile, meet.
class Meeting {
 public:
  explicit Meeting(std::uint32_t lanes) : barrier_(lanes), values_(lanes), wide_(lanes) {}

  [[nodiscard]] std::uint32_t lanes() const { return static_cast<std::uint32_t>(values_.size()); }
  void sync() { barrier_.arrive_and_wait(); }
  /// Returns `fold`(values of all lanes) before any value changes; each lane calls it with its
  /// value.
  template <class Fold>
  std::uint32_t exchange(std::uint32_t lane, std::uint32_t value, Fold fold) {
    values_[lane] = value;
    sync();
    const std::uint32_t result = fold(values_);
    sync();
    return result;
  }
  template <class Value, class Combine>
  Value reduce(std::uint32_t lane, Value value, Combine combine) {
    const auto at = [this](std::size_t index) {
      Value other;
      std::memcpy(&other, &wide_[index], sizeof other);
      return other;
    };
    static_assert(sizeof value <= sizeof wide_[0]);
    std::memcpy(&wide_[lane], &value, sizeof value);
    sync();
    Value result = at(0);
    for (std::size_t index = 1; index < wide_.size(); ++index) result = combine(result, at(index));
    sync();
    return result;
  }

 private:
  std::barrier<> barrier_;
  std::vector<std::uint32_t> values_;
  std::vector<std::uint64_t> wide_;
};

/// The state that the lanes of a group share: its meeting, and those of its tiles of each size.
struct HostLanes {
  explicit HostLanes(std::uint32_t lanes) : group(lanes) {
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      for (std::uint32_t lane = 0; lane < lanes; lane += 1U << i) {
        tiles[i].push_back(std::make_unique<Meeting>(1U << i));
      }
    }
  }

  Meeting group;
  std::array<std::vector<std::unique_ptr<Meeting>>, 6> tiles;  ///< of 1, 2, 4 ... 32 lanes
};

/// A tile with the interface of WarpTile.
class HostTile {
 public:
  HostTile(Meeting& meeting, std::uint32_t lane) : meeting_(&meeting), lane_(lane) {}
  [[nodiscard]] std::uint32_t lane() const { return lane_; }
  [[nodiscard]] std::uint32_t size() const { return meeting_->lanes(); }
  [[nodiscard]] std::uint32_t from_first(std::uint32_t value) const {
    return meeting_->exchange(lane_, value, [](const auto& values) { return values[0]; });
  }
  template <class Value, class Combine>
  [[nodiscard]] Value reduce(Value value, Combine combine) const {
    return meeting_->reduce(lane_, value, combine);
  }
  [[nodiscard]] std::uint32_t combine_xor(std::uint32_t value) const {
    return reduce(value, Xor{});
  }
  void sync() const { meeting_->sync(); }

 private:
  Meeting* meeting_;
  std::uint32_t lane_;
};

/// A group with the interface of Warp (32 lanes) or of ThreadBlock (more).
class HostWarp {
 public:
  HostWarp(HostLanes& lanes, std::uint32_t lane) : lanes_(&lanes), lane_(lane) {}
  [[nodiscard]] std::uint32_t lane() const { return lane_; }
  [[nodiscard]] std::uint32_t size() const { return lanes_->group.lanes(); }
  [[nodiscard]] bool all(bool predicate) const {
    return lanes_->group.exchange(lane_, predicate ? 1 : 0, [](const auto& values) {
      std::uint32_t every = 1;
      for (const std::uint32_t value : values) every &= value;
      return every;
    }) != 0;
  }
  [[nodiscard]] std::uint32_t from_first(std::uint32_t value) const {
    return lanes_->group.exchange(lane_, value, [](const auto& values) { return values[0]; });
  }
  template <class Value, class Combine>
  [[nodiscard]] Value reduce(Value value, Combine combine) const {
    return lanes_->group.reduce(lane_, value, combine);
  }
  [[nodiscard]] std::uint32_t combine_xor(std::uint32_t value) const {
    return reduce(value, Xor{});
  }
  [[nodiscard]] std::uint32_t exclusive_sum(std::uint32_t value) const {
    return lanes_->group.exchange(lane_, value, [this](const auto& values) {
      std::uint32_t sum = 0;
      for (std::uint32_t before = 0; before < lane_; ++before) sum += values[before];
      return sum;
    });
  }
  template <class Work>
  void by_one_warp(const Work& work) const {
    work(*this);
  }
  void sync() const { lanes_->group.sync(); }
  [[nodiscard]] HostTile tile(std::uint32_t size) const {
    const auto& tiles = lanes_->tiles[static_cast<std::size_t>(__builtin_ctz(size))];
    return {*tiles[lane_ / size], lane_ % size};
  }

 private:
  HostLanes* lanes_;
  std::uint32_t lane_;
};

/// Like HostRunner, but with a group of `lanes` threads.
template <std::uint32_t lanes>
class HostWarpRunner {
 public:
  static constexpr std::uint32_t kStride = lanes;
  using Memory = HostRunner::Memory;

  static std::string unavailable() { return {}; }

  template <class Body>
  static void run(const Body& body) {
    const HostRunner::Memory memory(sizeof(Staging));
    auto& staging = *reinterpret_cast<Staging*>(memory.data());
    HostLanes shared(lanes);
    std::vector<std::jthread> threads;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      threads.emplace_back([&, lane] { body(HostWarp(shared, lane), staging); });
    }
  }
};

}  // namespace offload::kernels::test
