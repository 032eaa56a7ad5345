#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "channel/packets.hpp"
#include "comch/session/worker_channel.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"

namespace offload::fuzz {

/// A worker of one channel, controlled slot by slot: it reverses, or lies. Like a process that
/// cannot be stopped, it keeps the channel's memory: no client sees the bytes that it writes once
/// it was taken for lost.
class SlotWorker {
 public:
  explicit SlotWorker(std::shared_ptr<comch::WorkerChannel> channel)
      : channel_(std::move(channel)), view_(channel_->memory.endpoint().view) {}

  [[nodiscard]] comch::WorkerId id() const noexcept { return channel_->worker; }
  [[nodiscard]] channel::Wakeup wakeup() const noexcept { return channel_->wakeup; }
  [[nodiscard]] std::uint32_t depth() const noexcept { return view_.layout.depth; }

  /// Answers the next slot's requests; false if there are none.
  bool serve() {
    if (kernels::serve(kernels::SingleLane{}, view_, sequence_, kernels::Reverse{}, staging()) ==
        kernels::Outcome::nothing) {
      return false;
    }
    ++sequence_;
    return true;
  }
  int serve_all() {
    int count = 0;
    while (serve()) ++count;
    return count;
  }
  /// Answers the next slot with an error, whether it has come or not.
  void refuse() {
    kernels::refuse(kernels::SingleLane{}, view_.response(sequence_),
                    view_.layout.flag_of(sequence_));
    ++sequence_;
  }
  /// Answers it with `bytes`, declared as `length` in `count` messages, whether it has come or not.
  void lie(std::uint32_t length, std::uint32_t count, std::span<const std::byte> bytes) {
    const kernels::Slot slot = view_.response(sequence_);
    const std::uint32_t flag = view_.layout.flag_of(sequence_);
    if (length <= kernels::kMaxPacketPayload) {
      std::byte content[kernels::kMaxPacketPayload]{};
      std::copy_n(bytes.begin(), std::min(bytes.size(), sizeof content), content);
      channel::write_packets(slot.packets, flag, content, length, 0, count);
    } else {
      put(slot, 0, bytes);
      kernels::store_packet(slot.packets, {{length, 0, count}, flag});
    }
    ++sequence_;
  }
  /// Answers the next slot, and overwrites a part of a long answer with `bytes`.
  bool spoil(std::size_t at, std::span<const std::byte> bytes) {
    if (!serve()) return false;
    put(view_.response(sequence_ - 1), at, bytes);
    return true;
  }
  /// Leaves the next slot unanswered.
  void skip() { ++sequence_; }

 private:
  void put(const kernels::Slot& slot, std::size_t at, std::span<const std::byte> bytes) {
    const std::size_t room = view_.layout.max_content;
    if (at >= room) return;
    std::copy_n(bytes.begin(), std::min(bytes.size(), room - at),
                reinterpret_cast<std::byte*>(slot.plain()) + at);
  }
  static kernels::Staging& staging() {
    static kernels::Staging one{};
    return one;
  }

  std::shared_ptr<comch::WorkerChannel> channel_;
  kernels::ChannelView view_;
  std::uint64_t sequence_ = 0;
};

}  // namespace offload::fuzz
