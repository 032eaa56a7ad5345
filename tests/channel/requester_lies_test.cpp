#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "channel/channel_memory.hpp"
#include "tests/channel/requester_batch_fixture.hpp"

/// A worker is not trusted either: tests its answers to a batch.
namespace offload::channel {
namespace {

using kernels::Outcome;
using kernels::ResponseStatus;
using protocol::MessageId;
using support::Bytes;
using support::random_bytes;
using support::reversed;
using test::Ends;
using test::frame_of;

class RequesterLies : public test::RequesterBatch {};

TEST_F(RequesterLies, ARefusedBatchRefusesEachOfItsMessages) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(post(20));
  requester_.flush();
  kernels::refuse(kernels::SingleLane{}, ends_.worker.view().response(0), 1);
  EXPECT_EQ(statuses(), std::vector(3, ResponseStatus::bad_length));
}

TEST_F(RequesterLies, ARefusedMessageIsRefusedAlone) {
  exchange_three();
  // Its frame is shorter then: the next one moves up.
  const Bytes refused = protocol::make_frame(MessageId::error, {});
  const Bytes last = frame_of(reversed(messages_[2]));
  overwrite(32, refused);
  overwrite(32 + refused.size(), last);
  EXPECT_EQ(statuses(),
            (std::vector{ResponseStatus::ok, ResponseStatus::bad_length, ResponseStatus::ok}));
}

TEST_F(RequesterLies, AnotherNumberOfResponsesIsNone) {
  for (const std::uint32_t count : {0U, 1U, 2U, 4U, 64U, 65U, 0xffff'ffffU}) {
    Ends ends(8, kLongest);
    for (std::uint32_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(ends.server.requester.post(random_bytes(20, i), test::Server::somebody()).ok());
    }
    ends.server.requester.flush();
    ASSERT_EQ(ends.serve(0), Outcome::answered);
    ends.worker.view().response(0).packets[0].data[2] = count;
    for (int i = 0; i < 3; ++i) {
      PostRecvTask* const task = ends.server.receive();
      ASSERT_NE(task, nullptr);
      EXPECT_EQ(task->response_status(), ResponseStatus::bad_length) << count;
      EXPECT_TRUE(task->payload().empty());
    }
    EXPECT_EQ(ends.server.receive(), nullptr);
  }
}

TEST_F(RequesterLies, ABatchIsNoAnswerToOneMessage) {
  ASSERT_TRUE(post(20));
  requester_.flush();
  ASSERT_EQ(ends_.serve(0), Outcome::answered);
  ends_.worker.view().response(0).packets[0].data[2] = 1;
  EXPECT_EQ(statuses(), std::vector(1, ResponseStatus::bad_length));
}

TEST_F(RequesterLies, ABatchThatIsTooLongIsNone) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(post(20));
  requester_.flush();
  // The frames are right, so nothing but the length is wrong.
  const kernels::Slot slot = ends_.worker.view().response(0);
  std::uint8_t* to = slot.plain();
  for (const Bytes& message : messages_) {
    const Bytes frame = frame_of(reversed(message));
    std::memcpy(to, frame.data(), frame.size());
    to += frame.size();
  }
  kernels::store_packet(slot.packets, {{kernels::kMaxBatchContent + 1, 0, 3}, 1});
  EXPECT_EQ(statuses(), std::vector(3, ResponseStatus::bad_length));
}

// After the first invalid frame, the begin of the next one is unknown.
TEST_F(RequesterLies, WhatFollowsAFrameThatIsNoneIsNone) {
  struct Lie {
    std::size_t offset;  ///< in the second frame's header
    Bytes bytes;
  };
  const auto big_endian = [](std::uint32_t value) {
    Bytes bytes(4);
    protocol::store_big_endian(bytes.data(), value);
    return bytes;
  };
  for (const Lie& lie :
       {Lie{0, big_endian(31)}, Lie{0, big_endian(33)}, Lie{0, big_endian(0)},
        Lie{0, big_endian(0xffff'ffff)}, Lie{4, big_endian(4)}, Lie{4, big_endian(0)},
        Lie{4, big_endian(6)}, Lie{8, big_endian(19)}, Lie{8, big_endian(21)},
        Lie{8, big_endian(0xffff'fff4)}, Lie{8, big_endian(0xffff'ffff)}}) {
    Ends ends(8, kLongest);
    for (std::uint32_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(ends.server.requester.post(random_bytes(20, i), test::Server::somebody()).ok());
    }
    ends.server.requester.flush();
    ASSERT_EQ(ends.serve(0), Outcome::answered);
    kernels::Packet* const packets = ends.worker.view().response(0).packets;
    // The second frame begins 32 bytes behind the header's packet.
    for (std::size_t i = 0; i < lie.bytes.size(); ++i) {
      const std::size_t at = 32 + lie.offset + i;
      std::memcpy(reinterpret_cast<std::byte*>(&packets[1 + at / 12]) + at % 12, &lie.bytes[i], 1);
    }
    std::vector<ResponseStatus> found;
    while (PostRecvTask* const task = ends.server.receive()) {
      found.push_back(task->response_status());
    }
    EXPECT_EQ(found, (std::vector{ResponseStatus::ok, ResponseStatus::bad_length,
                                  ResponseStatus::bad_length}))
        << lie.offset;
  }
}

TEST_F(RequesterLies, WhatIsCutOffIsNone) {
  std::uint64_t slot = 0;
  for (const std::uint32_t rest : {0U, 5U, 11U, 12U, 13U, 31U}) {
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(post(20));
    requester_.flush();
    ASSERT_EQ(ends_.serve(slot), Outcome::answered);
    ends_.worker.view().response(slot++).packets[0].data[0] = 2 * 32 + rest;
    EXPECT_EQ(statuses(),
              (std::vector{ResponseStatus::ok, ResponseStatus::ok, ResponseStatus::bad_length}))
        << rest;
  }
}

TEST_F(RequesterLies, AWorkerCannotChangeWhatWasChecked) {
  for (std::size_t i = 0; i < 40; ++i) ASSERT_TRUE(post(50));
  requester_.flush();
  ASSERT_EQ(ends_.serve(0), Outcome::answered);
  std::vector<PostRecvTask*> tasks;
  while (PostRecvTask* const task = ends_.server.receive()) tasks.push_back(task);
  ASSERT_EQ(tasks.size(), 40U);
  std::memset(ends_.worker.view().response(0).plain(), 0xff, 40 * 62);
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(support::copy_of(tasks[i]->frame()), frame_of(reversed(messages_[i])));
  }
}

}  // namespace
}  // namespace offload::channel
