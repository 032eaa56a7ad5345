#include "apps/server/admission/suspects.hpp"

#include <array>
#include <cstdint>

#include "channel/batch_buffer.hpp"
#include "channel/packets.hpp"
#include "kernels/slot_batch.hpp"

namespace offload::server {
namespace {

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

}  // namespace

void Suspects::take(channel::Requester& requester, const std::shared_ptr<const void>& memory,
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
                                                {}});
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

}  // namespace offload::server
