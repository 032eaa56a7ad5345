#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "channel/batch_buffer.hpp"
#include "channel/packets.hpp"
#include "channel/requester.hpp"
#include "core/clock.hpp"
#include "kernels/slot_batch.hpp"

namespace offload::server {

/// Reads the requests of a channel's slots, from the oldest without a response on. The memory of
/// requests is the server's: its worker cannot write there.
class SlotReader {
 public:
  explicit SlotReader(const channel::SlotQueue& slots)
      : view_(slots.view()), next_(slots.received()) {}

  /// The next request, until the next call.
  std::span<const std::byte> next() {
    if (read_ == count_) open();
    if (count_ == 1) {
      ++read_;
      return content_;
    }
    const std::byte* const entry = content_.data() + kernels::batch_table(read_++);
    const auto length = static_cast<std::uint32_t>(entry[0]) | static_cast<std::uint32_t>(entry[1])
                                                                   << 8U;
    const auto message = content_.subspan(at_, length);
    at_ += length;
    return message;
  }

 private:
  void open() {
    const kernels::Slot slot = view_.request(next_);
    const kernels::Packet header = kernels::load_packet(slot.packets);
    const std::uint32_t length = header.data[0];
    const auto* bytes = reinterpret_cast<const std::byte*>(slot.plain());
    if (length <= kernels::kMaxPacketPayload) {
      (void)channel::read_packets(slot.packets, view_.layout.flag_of(next_), packed_.data(),
                                  length);
      bytes = packed_.data();
    }
    content_ = {bytes, length};
    const std::uint32_t batch = header.data[2];  // 0: one message, which is no batch
    count_ = batch == 0 ? 1 : batch;
    at_ = kernels::batch_table(batch);
    read_ = 0;
    ++next_;
  }

  kernels::ChannelView view_;
  std::uint64_t next_;  ///< slot
  std::span<const std::byte> content_;
  std::uint32_t count_ = 0;  ///< messages of the slot
  std::uint32_t read_ = 0;   ///< of them
  std::size_t at_ = 0;       ///< in the content
  std::array<std::byte, channel::kPacketRoom> packed_{};
};

class Client;

/// The requests that were in a channel when its worker was lost, in their order. One of them may
/// have crashed it. They are held back here until they are posted again. One thread.
class Suspects {
 public:
  struct Request {
    Client* client;
    core::Duration age;    ///< how long it was with workers
    std::uint32_t losses;  ///< of workers, while it was in the channel
    std::span<const std::byte> payload;
    std::vector<std::byte> copy;         ///< of the payload, if it is short
    std::shared_ptr<const void> memory;  ///< in which a long payload lies
    core::TimePoint arrived{};           ///< as RequestTask's
    std::uint32_t waited_us = 0;         ///< as RequestTask's
  };

  /// Takes all requests that `requester` has posted, flushed and has no response to, in front of
  /// those that are here; there they are given up. `memory` keeps the memory that the requester is
  /// in. `losses`: of workers with each of these. Throws std::bad_alloc; then nothing has changed.
  void take(channel::Requester& requester, const std::shared_ptr<const void>& memory,
            std::uint32_t losses, core::RunTime now) {
    SlotReader reader(requester.slots());
    std::list<Request> taken;
    requester.for_each_pending([&](channel::RequestTask& request) {
      const auto payload = reader.next();
      if (request.user_data == nullptr) return;
      Request& added = taken.emplace_back(Request{static_cast<Client*>(request.user_data),
                                                  now - request.posted_at(),
                                                  losses,
                                                  payload,
                                                  {},
                                                  {},
                                                  request.arrived,
                                                  request.waited_us});
      if (payload.size() <= channel::BatchBuffer::kLongest) {
        added.copy.assign(payload.begin(), payload.end());
        added.payload = added.copy;
      } else {
        added.memory = memory;
      }
    });
    requester.for_each_pending([](channel::RequestTask& request) { request.user_data = nullptr; });
    requests_.splice(requests_.begin(), taken);
  }

  [[nodiscard]] bool empty() const noexcept { return requests_.empty(); }
  [[nodiscard]] const Request& front() const noexcept { return requests_.front(); }
  void pop_front() noexcept { requests_.pop_front(); }
  /// Removes those for which `predicate`(const Request&) is true, oldest first.
  template <class Predicate>
  void remove_if(Predicate predicate) {
    requests_.remove_if(predicate);
  }
  /// Moves those for which `predicate`(const Request&) is true to `to`, in their order and in front
  /// of those that are there.
  template <class Predicate>
  void move_if(Suspects& to, Predicate predicate) noexcept {
    const auto first = to.requests_.begin();
    for (auto next = requests_.begin(); next != requests_.end();) {
      const auto each = next++;
      if (predicate(*each)) to.requests_.splice(first, requests_, each);
    }
  }

 private:
  std::list<Request> requests_;
};

}  // namespace offload::server
