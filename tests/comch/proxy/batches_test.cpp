#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "channel/packets.hpp"
#include "protocol/frame.hpp"
#include "tests/comch/proxy/proxies_fixture.hpp"

/// Batches through the proxies, and malformed batches of a peer.
namespace offload::comch::test {
namespace {

using kernels::ResponseStatus;
using protocol::MessageId;
using support::bytes_of;
using support::copy_of;
using support::random_bytes;
using support::reversed;
using Messages = std::vector<Bytes>;

void append(Bytes& to, const Bytes& bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Returns the content of a batch of requests.
Bytes requests_of(const Messages& messages) {
  Bytes all;
  for (const Bytes& message : messages) {
    all.push_back(static_cast<std::byte>(message.size() & 0xff));
    all.push_back(static_cast<std::byte>(message.size() >> 8));
  }
  for (const Bytes& message : messages) append(all, message);
  return all;
}

Bytes frame(const Bytes& payload, MessageId kind = MessageId::client_response) {
  Bytes all(protocol::kFrameHeaderSize);
  protocol::store_header(all.data(), kind, static_cast<std::uint32_t>(payload.size()));
  append(all, payload);
  return all;
}

/// Returns the content of the batch of their responses.
Bytes frames_of(const Messages& messages) {
  Bytes all;
  for (const Bytes& message : messages) append(all, frame(message));
  return all;
}

Messages messages_of(std::size_t count, std::size_t length, std::uint32_t seed) {
  Messages messages;
  for (std::size_t i = 0; i < count; ++i) messages.push_back(random_bytes(length, seed++));
  return messages;
}

/// Headers that no batch has, for slots whose messages may be longer than one.
const std::vector<DataHeader> kNoBatches{
    {0, 0, 1},
    {0, 1, 1},
    {0, 5, 3},
    {0, 127, 64},
    {0, 200, 65},
    {0, 200, 0xffff},
    {0, kernels::kMaxBatchContent + 1, 2},
    {0, ~0U, 2},
};

class RemoteBatches : public RemoteTest {
 protected:
  explicit RemoteBatches(std::uint32_t longest = kLongest) : RemoteTest(longest) {}

  /// Posts a batch in one slot.
  void post_batch(const Messages& messages) {
    for (const Bytes& message : messages) ASSERT_TRUE(gather(message));
    server_.requester.flush();
  }
  void expect_responses(const Messages& expected) {
    for (const Bytes& response : expected) ASSERT_EQ(next_response(), response);
  }
};

/// Tests of channels whose messages are shorter than a batch may be.
class ShortBatches : public RemoteBatches {
 protected:
  ShortBatches() : RemoteBatches(60) {}
};

TEST_F(RemoteBatches, ABatchLooksLikeThisOnTheWire) {
  post_batch({copy_of(bytes_of("a")), {}, copy_of(bytes_of("bcd"))});
  EXPECT_EQ(read(26), support::bytes({0,   0,   0,   0,  0, 0, 0, 0,  // sequence
                                      0,   0,   0,   10,              // length
                                      0,   3,   0,   0,               // count, status
                                      1,   0,   0,   0,  3, 0,        // the table
                                      'a', 'b', 'c', 'd'}));
  write(support::bytes({0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 37, 0,   3, 0, 0,  // header
                        0, 0, 0, 13, 0, 0, 0, 5, 0, 0, 0, 1,  'x',           // first frame
                        0, 0, 0, 12, 0, 0, 0, 6, 0, 0, 0, 0,                 // refused
                        0, 0, 0, 12, 0, 0, 0, 5, 0, 0, 0, 0}));
  EXPECT_EQ(next_response(), copy_of(bytes_of("x")));
  EXPECT_EQ(next_response(), Bytes{});
  EXPECT_EQ(server_.last_status, ResponseStatus::bad_length);
  EXPECT_EQ(next_response(), Bytes{});
  EXPECT_EQ(server_.last_status, ResponseStatus::ok);
}

// The longest content in packets, the shortest that is plain, the longest.
TEST_F(RemoteBatches, OfEachFormInAnyPieces) {
  struct Case {
    std::size_t count;
    std::size_t length;
  };
  std::uint64_t sequence = 0;
  for (const Case& batch : {Case{2, 0}, Case{6, 60}, Case{31, 10}, Case{60, 73}, Case{64, 68}}) {
    SCOPED_TRACE(batch.count);
    const Messages messages = messages_of(batch.count, batch.length, 1);
    const auto count = static_cast<std::uint16_t>(batch.count);
    post_batch(messages);
    const Bytes expected = on_wire(sequence, requests_of(messages), count);
    EXPECT_EQ(read(expected.size()), expected);
    const Messages answers = messages_of(batch.count, batch.length, 1000);
    const Bytes all = on_wire(sequence++, frames_of(answers), count);
    for (std::size_t at = 0; at < all.size(); at += 101) {
      const std::size_t end = std::min(at + 101, all.size());
      write({all.begin() + static_cast<std::ptrdiff_t>(at),
             all.begin() + static_cast<std::ptrdiff_t>(end)});
    }
    expect_responses(answers);
  }
}

TEST_F(RemoteBatches, TheNextWorkerGetsWhatIsNotAnsweredWhole) {
  const Messages first = messages_of(5, 30, 1);
  const Messages second = messages_of(40, 64, 10);
  post_batch(first);
  post_batch(second);
  read(2 * kDataHeaderSize + requests_of(first).size() + requests_of(second).size());
  write(on_wire(0, frames_of(first), 5));
  expect_responses(first);
  Bytes half = on_wire(1, frames_of(second), 40);
  half.resize(half.size() - 1);
  write(half);

  auto [here, there] = connection();
  peer_ = std::move(there);
  move_on(std::move(here));
  const Bytes expected = on_wire(0, requests_of(second), 40);
  EXPECT_EQ(read(expected.size()), expected);
  write(on_wire(0, frames_of(second), 40));
  expect_responses(second);
}

TEST_F(RemoteBatches, HeadersThatNoneHas) {
  for (const DataHeader& header : kNoBatches) {
    SCOPED_TRACE(header.count);
    post_batch(messages_of(3, 10, 1));
    read(kDataHeaderSize + 36);
    write(on_wire(header));
    expect_failed("bytes, which are not a batch of " + std::to_string(header.count) + " messages");
    auto [here, there] = connection();
    peer_ = std::move(there);
    move_on(std::move(here));
    read(kDataHeaderSize + 36);
    write(on_wire(0, frames_of(messages_of(3, 5, 7)), 3));
    expect_responses(messages_of(3, 5, 7));
  }
}

// The connection carries them; the requester detects the fault, and no other message is affected.
TEST_F(ShortBatches, ContentsThatLieCostTheirMessages) {
  const Messages right = messages_of(3, 20, 5);
  const Bytes one = frame(right[0]);
  const auto with = [&](const Bytes& rest) {
    Bytes all = one;
    append(all, rest);
    return all;
  };
  Bytes too_long = frame(right[1]);
  too_long[11] = std::byte{200};
  too_long[3] = std::byte{212};
  Bytes other_size = frame(right[1]);
  other_size[3] ^= std::byte{1};
  Bytes beyond(12, std::byte{0xff});  // lengths that wrap around
  beyond[4] = beyond[5] = beyond[6] = std::byte{0};
  beyond[7] = std::byte{5};

  struct Lie {
    const char* what;
    std::uint16_t count;
    Bytes content;
    std::size_t good;  ///< how many of three messages are answered
  };
  const std::vector<Lie> lies{
      {"of fewer messages", 2, frames_of({right[0], right[1]}), 0},
      {"of more", 4, frames_of(messages_of(4, 20, 5)), 0},
      {"one message", 0, right[0], 0},
      {"nothing", 0, {}, 0},
      {"zeros", 3, Bytes(60), 0},
      {"one frame of three", 3, one, 1},
      {"and half a header", 3, with(Bytes(11)), 1},
      {"a frame beyond the end", 3, with(too_long), 1},
      {"another size", 3, with(other_size), 1},
      {"the longest length", 3, with(beyond), 1},
      {"longer than a message", 3, with(frame(random_bytes(longest_ + 1, 9))), 1},
      {"a request", 3, with(frame(right[1], MessageId::client_request)), 1},
      {"a kind that is none", 3, with(frame(right[1], static_cast<MessageId>(99))), 1},
      {"an error of a text", 3, with(frame(right[1], MessageId::error)), 1},
  };
  std::uint64_t sequence = 0;
  for (const Lie& lie : lies) {
    SCOPED_TRACE(lie.what);
    post_batch(messages_of(3, 10, 1));
    read(kDataHeaderSize + 36);
    write(on_wire(sequence++, lie.content, lie.count));
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(next_response(), i < lie.good ? right[i] : Bytes{});
      EXPECT_EQ(server_.last_status,
                i < lie.good ? ResponseStatus::ok : ResponseStatus::bad_length);
    }
    post_batch(messages_of(3, 10, 1));
    read(kDataHeaderSize + 36);
    write(on_wire(sequence++, frames_of(right), 3));
    expect_responses(right);
  }
  EXPECT_EQ(remote_worker_->failure(), nullptr);
}

TEST_F(RemotePair, BatchesAmongLongMessages) {
  constexpr std::uint32_t kMessages = 600;
  std::deque<Bytes> expected;
  const auto length_of = [](std::uint32_t i) {
    if (i % 97 == 0) return kLongest - i;
    if (i % 13 == 0) return 1000 + i;
    return i % 5 == 0 ? i : i % 100;
  };
  for (std::uint32_t i = 0; i < kMessages || !expected.empty();) {
    while (i < kMessages) {
      const Bytes request = random_bytes(length_of(i), i);
      if (!gather(request)) break;
      expected.push_back(reversed(request));
      if (++i % 37 == 0) break;
    }
    server_.requester.flush();
    ASSERT_EQ(next_response(), expected.front());
    expected.pop_front();
  }
  EXPECT_LT(server_.requester.slots().posted(), kMessages / 2) << "messages share slots";
}

/// Tests of channels whose messages are shorter than the content of a slot may be.
class ShortPair : public RemotePair {
 protected:
  ShortPair() : RemotePair(60) {}
};

TEST_F(ShortPair, SlotsHaveRoomForTheLongestBatch) {
  for (std::uint32_t round = 0; round < 20; ++round) {
    const Messages messages = messages_of(kernels::kMaxBatchCount, 60, 1000 * round);
    for (const Bytes& message : messages) ASSERT_TRUE(gather(message));
    server_.requester.flush();
    for (const Bytes& message : messages) ASSERT_EQ(next_response(), reversed(message));
  }
}

/// A worker with a back end; the test has the server's end of the connection.
class RemoteBackEnd : public RemoteServerTest {
 protected:
  void expect_answered(std::uint64_t sequence) {
    const Messages messages = messages_of(9, 50, 1);
    Messages answers;
    for (const Bytes& message : messages) answers.push_back(reversed(message));
    send(on_wire(sequence, requests_of(messages), 9));
    const Bytes expected = on_wire(sequence, frames_of(answers), 9);
    EXPECT_EQ(read(expected.size()), expected);
  }

  Reverser backend_{remote_->channel()};
};

// The connection carries them; the back end detects the fault.
TEST_F(RemoteBackEnd, TablesThatLieAreRefused) {
  const Messages right = messages_of(3, 20, 1);
  Bytes longer = requests_of(right);
  longer[4] = std::byte{21};
  Bytes shorter = requests_of(right);
  shorter[4] = std::byte{19};
  Bytes longest = requests_of(right);
  longest[1] = longest[3] = longest[5] = std::byte{0xff};
  std::uint64_t sequence = 0;
  for (const Bytes& lie : {longer, shorter, longest, Bytes(kernels::kMaxBatchContent)}) {
    send(on_wire(sequence, lie, 3));
    EXPECT_EQ(read(kDataHeaderSize), on_wire({sequence, 0, 0, 1}));
    expect_answered(++sequence);
    ++sequence;
  }
  EXPECT_EQ(remote_->failure(), nullptr);
}

TEST_F(RemoteServerTest, HeadersThatNoBatchHas) {
  send(on_wire({0, 200, 65}));
  expect_failed("200 bytes, which are not a batch of 65 messages");
}

// The slots are byte for byte as docs/reference/wire-protocol.md describes them.
TEST_F(RemoteBackEnd, ABatchLooksLikeThisInItsSlots) {
  send(on_wire(0, requests_of({copy_of(bytes_of("a")), {}, copy_of(bytes_of("bcd"))}), 3));
  read(kDataHeaderSize + 40);
  const auto bytes_at = [](const kernels::Slot& slot, std::size_t packets) {
    std::vector<kernels::Packet> read;
    for (std::size_t i = 0; i < packets; ++i)
      read.push_back(kernels::load_packet(slot.packets + i));
    return copy_of(std::as_bytes(std::span(read)));
  };
  const kernels::ChannelView& view = remote_->channel()->view();
  EXPECT_EQ(bytes_at(view.request(0), 2),
            support::bytes({10, 0, 0, 0, 0, 0, 0,   0,   3,   0,   0, 0, 1, 0, 0, 0,
                            1,  0, 0, 0, 3, 0, 'a', 'b', 'c', 'd', 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(bytes_at(view.response(0), 4),
            support::bytes({40, 0, 0, 0, 0, 0, 0, 0, 3,  0, 0,   0, 1, 0, 0,  0, 0, 0, 0, 13, 0, 0,
                            0,  5, 0, 0, 0, 1, 1, 0, 0,  0, 'a', 0, 0, 0, 12, 0, 0, 0, 5, 0,  0, 0,
                            1,  0, 0, 0, 0, 0, 0, 0, 15, 0, 0,   0, 5, 0, 0,  0, 1, 0, 0, 0}));
  const Bytes last = bytes_at({view.response(0).packets + 4}, 1);
  EXPECT_EQ(Bytes(last.begin(), last.begin() + 4), support::bytes({3, 'd', 'c', 'b'}));
}

// Invalid responses of the worker's own back end cannot break the connection.
TEST_F(RemoteServerTest, ResponsesThatAreNone) {
  struct Case {
    std::uint32_t status;
    std::uint32_t length;
    std::uint32_t count;
  };
  const kernels::ChannelView view = remote_->channel()->view();
  std::uint64_t sequence = 0;
  for (const Case& none : {Case{0, 10, 65}, Case{0, 10, 0x10002}, Case{0, 3, 2}, Case{0, ~0U, 0},
                           Case{0, kernels::kMaxBatchContent + 1, 2}, Case{1, 10, 0},
                           Case{0x10000, 0, 0}, Case{1, 0, 3}}) {
    SCOPED_TRACE(testing::Message() << none.status << " " << none.length << " " << none.count);
    send({sequence, 10, 0}, 10);
    const kernels::Slot slot = view.response(sequence);
    const std::uint32_t flag = view.layout.flag_of(sequence);
    ASSERT_TRUE(
        support::eventually([&] { return kernels::is_complete(view.request(sequence), flag); }));
    const Bytes any(kernels::kMaxPacketPayload);
    if (none.length <= any.size()) {
      channel::write_packets(slot.packets, flag, any.data(), none.length, none.status, none.count);
    } else {
      kernels::store_packet(slot.packets, {{none.length, none.status, none.count}, flag});
    }
    channel::Ringer(remote_->channel()->ringer()).ring();
    EXPECT_EQ(read(kDataHeaderSize), on_wire({sequence++, 0, 0, 1}));
  }
  EXPECT_EQ(remote_->failure(), nullptr);
}

}  // namespace
}  // namespace offload::comch::test
