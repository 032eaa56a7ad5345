#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/packet/queue.hpp"

/// What the Linux kernel does at the other side of AF_XDP's rings, in a thread: it takes frames of
/// the fill ring for packets that come, and completes those that are sent. The same orders as the
/// kernel's xsk_queue.h: acquire of the other side's position, release of its own.
namespace offload::kernels::packet::test {

using Bytes = std::vector<std::uint8_t>;

template <class Entry>
class TestRing {
 public:
  explicit TestRing(std::uint32_t size) : entries_(size) {}
  [[nodiscard]] Ring<Entry> view() {
    return {entries_.data(), &words_[0], &words_[16], &words_[32],
            static_cast<std::uint32_t>(entries_.size()) - 1};
  }

 private:
  std::vector<Entry> entries_;
  std::uint32_t words_[48]{};
};

/// One hardware queue with one queue, and a thread that is the driver.
class Wire {
 public:
  static constexpr std::uint32_t kFrameBytes = 2048;
  static constexpr std::uint32_t kHeadroom = 256;

  explicit Wire(std::uint32_t frames)
      : memory_(std::size_t{2} * frames * kFrameBytes),
        receive_(frames),
        send_(2 * frames),
        fill_(frames),
        free_(frames),
        completions_(2 * frames) {
    homes_[0] = {fill_.view(), &orders_[0]};
    homes_[1] = {free_.view(), &orders_[1]};
    for (std::uint32_t home = 0; home < 2; ++home) {
      for (std::uint32_t i = 0; i < frames; ++i) {
        homes_[home].ring.entries[i] = (std::uint64_t{home} * frames + i) * kFrameBytes;
      }
      *homes_[home].ring.producer = frames;
      orders_[home] = {frames, frames, 0, 0};
    }
    queue_ = {receive_.view(),
              send_.view(),
              &orders_[2],
              homes_[1],
              {completions_.view(), &orders_[3]},
              {memory_.data(), homes_, kFrameBytes, frames, 2}};
  }
  ~Wire() { stop(); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  [[nodiscard]] const Queue& queue() const { return queue_; }

  /// A packet that is to come.
  void add(Bytes packet) { coming_.push_back(std::move(packet)); }
  /// From here on the driver works; what was sent is there after stop().
  void start() {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const bool came = carry_in();
        if (!carry_out() && !came) std::this_thread::yield();
      }
      while (carry_out()) continue;
    });
  }
  void stop() {
    if (thread_.joinable()) {
      thread_.request_stop();
      thread_.join();
    }
  }
  [[nodiscard]] const std::vector<Bytes>& sent() const { return sent_; }
  /// Frames that lie in the fill ring and the free ring.
  [[nodiscard]] std::uint32_t frames_at_home() {
    std::uint32_t count = 0;
    for (const FrameRing& home : homes_) count += *home.ring.producer - *home.ring.consumer;
    return count;
  }

 private:
  static std::uint32_t acquire(const std::uint32_t* word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
  }
  static void release(std::uint32_t* word, std::uint32_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
  }

  bool carry_in() {
    if (next_ == coming_.size()) return false;
    const auto fill = fill_.view();
    const auto receive = receive_.view();
    const std::uint32_t at = *fill.consumer;
    if (acquire(fill.producer) == at) return false;
    const std::uint32_t to = *receive.producer;
    if (to - acquire(receive.consumer) == receive.mask + 1) return false;
    const std::uint64_t address = fill.at(at) + kHeadroom;
    const Bytes& packet = coming_[next_++];
    std::memcpy(memory_.data() + address, packet.data(), packet.size());
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
    const Descriptor packet = send.at(at);
    if (packet.address < memory_.size()) {
      const std::uint8_t* const begin = memory_.data() + packet.address;
      sent_.emplace_back(begin, begin + packet.length);
      const std::uint32_t to = *completions.producer;
      completions.at(to) = packet.address;
      release(completions.producer, to + 1);
    }
    release(send.consumer, at + 1);
    return true;
  }

  std::vector<std::uint8_t> memory_;
  TestRing<Descriptor> receive_, send_;
  TestRing<std::uint64_t> fill_, free_, completions_;
  FrameRing homes_[2]{};
  RingOrder orders_[4]{};
  Queue queue_{};
  std::vector<Bytes> coming_;
  std::size_t next_ = 0;
  std::vector<Bytes> sent_;
  std::jthread thread_;
};

}  // namespace offload::kernels::packet::test
