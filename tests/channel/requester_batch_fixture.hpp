#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/slot_batch.hpp"
#include "protocol/frame.hpp"
#include "tests/channel/channel_fixture.hpp"

namespace offload::channel::test {

using support::Bytes;

/// The frame in which a client gets this response.
inline Bytes frame_of(const Bytes& payload) {
  return protocol::make_frame(protocol::MessageId::client_response, payload);
}

/// A requester whose messages share slots, and the worker that answers them.
class RequesterBatch : public testing::Test {
 protected:
  static constexpr std::uint32_t kLongest = 3000;

  /// Posts a message of `length` bytes, which is not flushed.
  bool post(std::size_t length) {
    const auto message =
        support::random_bytes(length, static_cast<std::uint32_t>(messages_.size()));
    if (!requester_.post(message, Server::somebody()).ok()) return false;
    messages_.push_back(message);
    return true;
  }
  /// Expects the next response to be that to the next message, and frees its slot.
  void expect_next() {
    PostRecvTask* const task = ends_.server.receive();
    ASSERT_NE(task, nullptr) << answered_;
    EXPECT_EQ(task->response_status(), kernels::ResponseStatus::ok);
    EXPECT_EQ(task->sequence(), answered_);
    EXPECT_EQ(support::copy_of(task->payload()), support::reversed(messages_[answered_++]));
    EXPECT_TRUE(requester_.release(*task).ok());
    requester_.flush();
  }
  /// The statuses of all responses that have come; those that are not ok have no payload.
  std::vector<kernels::ResponseStatus> statuses() {
    std::vector<kernels::ResponseStatus> all;
    while (PostRecvTask* const task = ends_.server.receive()) {
      all.push_back(task->response_status());
      EXPECT_TRUE(all.back() == kernels::ResponseStatus::ok || task->payload().empty());
      EXPECT_TRUE(all.back() == kernels::ResponseStatus::ok || task->frame().empty());
      EXPECT_TRUE(requester_.release(*task).ok());
    }
    requester_.flush();
    return all;
  }
  /// Posts three messages of 20 bytes in one slot and answers them.
  void exchange_three() {
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(post(20));
    requester_.flush();
    ASSERT_EQ(ends_.serve(0), kernels::Outcome::answered);
  }
  /// Writes as a worker over the bytes of response slot 0 from `offset` of its content on, which
  /// fits in packets.
  void overwrite(std::size_t offset, const Bytes& bytes) {
    kernels::Packet* const packets = ends_.worker.view().response(0).packets;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      kernels::Packet& packet = packets[1 + (offset + i) / kernels::kPacketData];
      std::memcpy(reinterpret_cast<std::byte*>(&packet) + (offset + i) % kernels::kPacketData,
                  &bytes[i], 1);
    }
  }

  Ends ends_{8, kLongest};
  Requester& requester_ = ends_.server.requester;
  std::vector<Bytes> messages_;
  std::size_t answered_ = 0;
};

}  // namespace offload::channel::test
