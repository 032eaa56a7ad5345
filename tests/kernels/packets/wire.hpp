#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/packets/queue.hpp"
#include "tests/kernels/bodies/host_runner.hpp"

/// The other side of a queue in tests. `Place` selects the memory that a test's groups reach
/// (HostPlace, DeviceGroups).
namespace offload::kernels::packets::test {

using Bytes = std::vector<std::uint8_t>;

/// A thread that takes turns until end() is called, and then until a condition holds, or for 20 s.
class Turns {
 public:
  Turns() = default;
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;
  ~Turns() { end(); }

  /// `turn`() returns whether there was work; `is_done`() is called only after end().
  template <class Turn, class IsDone>
  void begin(Turn turn, IsDone is_done) {
    thread_ = std::thread([this, turn, is_done] {
      using Clock = std::chrono::steady_clock;
      Clock::time_point deadline{};
      for (;;) {
        const bool worked = turn();
        if (ends_) {
          if (deadline == Clock::time_point{}) deadline = Clock::now() + std::chrono::seconds(20);
          if (is_done() || Clock::now() > deadline) return;
        }
        if (!worked) std::this_thread::yield();
      }
    });
  }
  void end() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

/// A ring of AF_XDP: its words, each on its own cache line, and its entries.
template <class Place, class Entry>
class TestRing {
 public:
  explicit TestRing(std::uint32_t size)
      : size_(size), memory_(kWords * sizeof(std::uint32_t) + size * sizeof(Entry)) {}
  [[nodiscard]] Ring<Entry> view() const {
    auto* const words = reinterpret_cast<std::uint32_t*>(memory_.data());
    return {reinterpret_cast<Entry*>(words + kWords), words, words + 16, words + 32, size_ - 1};
  }

 private:
  static constexpr std::uint32_t kWords = 48;
  std::uint32_t size_;
  typename Place::Memory memory_;
};

/// Frames in two rings, equally many in each: those to receive into, and those to send.
template <class Place>
class TestFrames {
 public:
  static constexpr std::uint32_t kFrameBytes = 2048;

  explicit TestFrames(std::uint32_t frames)
      : frames_(frames),
        memory_(std::size_t{2} * frames * kFrameBytes),
        fill_(frames),
        free_(frames),
        homes_(2 * sizeof(FrameRing)),
        orders_(2 * sizeof(RingOrder)) {
    const RingOrder full{frames, frames, 0, 0};
    for (std::uint32_t home = 0; home < 2; ++home) {
      auto* const order = reinterpret_cast<RingOrder*>(orders_.data()) + home;
      Place::put(order, &full, sizeof full);
      const FrameRing ring{(home == 0 ? fill_ : free_).view(), order};
      for (std::uint32_t i = 0; i < frames; ++i) {
        ring.ring.entries[i] = (std::uint64_t{home} * frames + i) * kFrameBytes;
      }
      *ring.ring.producer = frames;
      homes()[home] = ring;
    }
  }

  [[nodiscard]] std::uint32_t count() const { return frames_; }
  [[nodiscard]] std::uint8_t* bytes() const { return memory_.data(); }
  [[nodiscard]] std::size_t size() const { return std::size_t{2} * frames_ * kFrameBytes; }
  [[nodiscard]] FrameRing* homes() const { return reinterpret_cast<FrameRing*>(homes_.data()); }
  [[nodiscard]] Frames view() const { return {bytes(), homes(), kFrameBytes, frames_, 2}; }
  /// Returns the number of frames in the two rings.
  [[nodiscard]] std::uint32_t at_home() const {
    std::uint32_t count = 0;
    for (int home = 0; home < 2; ++home) {
      count += *homes()[home].ring.producer - *homes()[home].ring.consumer;
    }
    return count;
  }

 private:
  std::uint32_t frames_;
  typename Place::Memory memory_;
  TestRing<Place, std::uint64_t> fill_, free_;
  typename Place::Memory homes_;
  typename Place::Scratch orders_;
};

/// Emulates the Linux kernel at the other side of AF_XDP's rings, in a thread: it takes frames of
/// the fill ring for packets that arrive, and completes those that are sent. It uses the memory
/// orders of the kernel's xsk_queue.h: acquire for the other side's position, release for this
/// side's. One hardware queue with one queue.
template <class Place>
class RingWire {
 public:
  static constexpr std::uint32_t kFrameBytes = TestFrames<Place>::kFrameBytes;
  static constexpr std::uint32_t kHeadroom = 256;

  explicit RingWire(std::uint32_t frames)
      : frames_(frames),
        receive_(frames),
        send_(2 * frames),
        completions_(2 * frames),
        orders_(2 * sizeof(RingOrder)) {
    auto* const orders = reinterpret_cast<RingOrder*>(orders_.data());
    queue_ = {receive_.view(),
              send_.view(),
              orders,
              frames_.homes()[1],
              {completions_.view(), orders + 1},
              frames_.view()};
  }

  [[nodiscard]] const Queue& queue() const { return queue_; }

  /// Adds a packet that will arrive.
  void add(Bytes packet) { coming_.push_back(std::move(packet)); }
  /// Starts the driver.
  void start() {
    turns_.begin(
        [this] {
          const bool came = carry_in();
          return carry_out() || came;
        },
        [this] { return sent_.size() >= expected_ && !carry_out(); });
  }
  /// Returns once all packets that were sent, at least `expected`, are in sent().
  void drain(std::size_t expected = 0) {
    expected_ = expected;
    turns_.end();
  }
  /// Ends the wire. Returns the violation of the queue's format; empty if there was none.
  static std::string stop() { return {}; }
  [[nodiscard]] const std::vector<Bytes>& sent() const { return sent_; }
  /// Returns the number of unused frames.
  [[nodiscard]] std::uint32_t frames_at_home() const { return frames_.at_home(); }

 private:
  static std::uint32_t acquire(const std::uint32_t* word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
  }
  static void release(std::uint32_t* word, std::uint32_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
  }

  bool carry_in() {
    if (next_ == coming_.size()) return false;
    const auto fill = frames_.homes()[0].ring;
    const auto receive = receive_.view();
    const std::uint32_t at = *fill.consumer;
    if (acquire(fill.producer) == at) return false;
    const std::uint32_t to = *receive.producer;
    if (to - acquire(receive.consumer) == receive.mask + 1) return false;
    const std::uint64_t address = fill.at(at) + kHeadroom;
    const Bytes& packet = coming_[next_++];
    std::memcpy(frames_.bytes() + address, packet.data(), packet.size());
    receive.at(to) = {address, static_cast<std::uint32_t>(packet.size()), 0};
    release(fill.consumer, at + 1);
    release(receive.producer, to + 1);
    return true;
  }

  bool carry_out() {
    const auto send = send_.view();
    const auto completions = completions_.view();
    const std::uint32_t at = *send.consumer;
    if (acquire(send.producer) == at) return false;
    const FrameDescriptor packet = send.at(at);
    if (packet.address < frames_.size()) {
      const std::uint8_t* const begin = frames_.bytes() + packet.address;
      sent_.emplace_back(begin, begin + packet.length);
      const std::uint32_t to = *completions.producer;
      completions.at(to) = packet.address;
      release(completions.producer, to + 1);
    }
    release(send.consumer, at + 1);
    return true;
  }

  TestFrames<Place> frames_;
  TestRing<Place, FrameDescriptor> receive_, send_;
  TestRing<Place, std::uint64_t> completions_;
  typename Place::Scratch orders_;
  Queue queue_{};
  std::vector<Bytes> coming_;
  std::size_t next_ = 0;
  std::vector<Bytes> sent_;
  std::atomic<std::size_t> expected_{0};
  Turns turns_;  // the last member: it ends first
};
using Wire = RingWire<kernels::test::HostPlace>;

}  // namespace offload::kernels::packets::test
