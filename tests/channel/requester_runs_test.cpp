#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/channel/requester_batch_fixture.hpp"

/// Responses of one batch that are delivered together.
namespace offload::channel {
namespace {

using kernels::Outcome;
using kernels::ResponseStatus;
using protocol::MessageId;
using support::Bytes;

/// The arguments of a call to a handler that takes runs.
struct Delivered {
  void* user_data;
  std::uint32_t count;
  std::uint64_t last;
  ResponseStatus status;
  Bytes frames;  ///< else, of one response: empty
  Bytes payload;

  bool operator==(const Delivered&) const = default;
};

class RequesterRuns : public testing::Test {
 protected:
  static constexpr std::uint32_t kLongest = 3000;

  RequesterRuns()
      : memory_(0, 8, kLongest, -1),
        requester_(memory_.endpoint(), *this),
        worker_(memory_.descriptor(), test::passed_fds(memory_)) {
    requester_.open(engine_);
    requester_.set_wakeup(Wakeup::doorbell);
  }

  /// Posts a message of 20 bytes for that client.
  void post(int& client) {
    messages_.push_back(support::random_bytes(20, static_cast<std::uint32_t>(messages_.size())));
    ASSERT_TRUE(requester_.post(messages_.back(), &client).ok());
  }
  void post_all(std::initializer_list<int*> clients) {
    for (int* const client : clients) post(*client);
    requester_.flush();
  }
  void serve(std::uint64_t slot) {
    ASSERT_EQ(
        kernels::serve(kernels::SingleLane{}, worker_.view(), slot, kernels::Reverse{}, staging_),
        Outcome::answered);
  }
  /// Overwrites the frames of slot 0, which are in packets.
  void overwrite(std::size_t at, const Bytes& bytes) {
    kernels::Packet* const packets = worker_.view().response(0).packets;
    for (std::size_t i = 0; i < bytes.size(); ++i, ++at) {
      std::memcpy(reinterpret_cast<std::byte*>(&packets[1 + at / 12]) + at % 12, &bytes[i], 1);
    }
  }
  const std::vector<Delivered>& take() {
    while (engine_.progress()) continue;
    return delivered_;
  }
  Bytes frame(std::size_t message) const {
    return test::frame_of(support::reversed(messages_[message]));
  }
  Bytes frames(std::size_t from, std::size_t to) const {
    Bytes all;
    for (std::size_t i = from; i <= to; ++i) {
      const Bytes one = frame(i);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  Delivered run(int& client, std::size_t from, std::size_t to) const {
    const Bytes all = frames(from, to);
    return {&client, static_cast<std::uint32_t>(to - from + 1),
            to,      ResponseStatus::ok,
            all,     from == to ? Bytes(all.begin() + kernels::kFrameHeader, all.end()) : Bytes{}};
  }
  Delivered bad(int& client, std::size_t message) const {
    return {&client, 1, message, ResponseStatus::bad_length, {}, {}};
  }

 public:
  // For the requester.
  void on_response(PostRecvTask& task) {
    newest_ = &task;
    delivered_.push_back({task.user_data, task.count(), task.sequence(), task.response_status(),
                          support::copy_of(task.frame()),
                          task.count() == 1 ? support::copy_of(task.payload()) : Bytes{}});
  }
  std::uint32_t longest_response(std::uint32_t length) const { return length + allowed_beyond_; }

 protected:
  std::uint32_t allowed_beyond_ = 0;
  ChannelMemory memory_;
  progress::Engine engine_;
  Requester requester_;
  ImportedChannel worker_;
  kernels::Staging staging_{};
  std::vector<Bytes> messages_;
  std::vector<Delivered> delivered_;
  PostRecvTask* newest_ = nullptr;
  int a_ = 0;
  int b_ = 0;
};

TEST_F(RequesterRuns, AreOfOneClientEach) {
  post_all({&a_, &a_, &a_, &b_, &a_, &a_});
  serve(0);
  EXPECT_EQ(take(), (std::vector{run(a_, 0, 2), run(b_, 3, 3), run(a_, 4, 5)}));
}

TEST_F(RequesterRuns, FollowEachOther) {
  post_all({&a_, &a_, &b_, &b_, &b_, &a_, &a_});
  serve(0);
  EXPECT_EQ(take(), (std::vector{run(a_, 0, 1), run(b_, 2, 4), run(a_, 5, 6)}));
}

TEST_F(RequesterRuns, EndWithAFrameThatHasNoPayload) {
  for (const std::size_t length : {20U, 0U, 0U}) {
    messages_.push_back(support::random_bytes(length, 1));
    ASSERT_TRUE(requester_.post(messages_.back(), &a_).ok());
  }
  requester_.flush();
  serve(0);
  EXPECT_EQ(take(), std::vector{run(a_, 0, 2)});
}

TEST_F(RequesterRuns, EndWhereTheContentIsCutOff) {
  for (const std::uint32_t rest : {0U, 1U, 5U, 11U, 12U, 13U, 31U}) {
    SCOPED_TRACE(rest);
    delivered_.clear();
    const std::size_t first = messages_.size();
    const std::uint64_t slot = requester_.slots().posted();
    post_all({&a_, &a_, &a_});
    serve(slot);
    worker_.view().response(slot).packets[0].data[0] = 64 + rest;
    EXPECT_EQ(take(), (std::vector{run(a_, first, first + 1), bad(a_, first + 2)}));
    EXPECT_TRUE(requester_.release(*newest_).ok());
    requester_.flush();
  }
}

// The fourth frame would be the answer to a request of another slot.
TEST_F(RequesterRuns, AreNoLongerThanTheirBatch) {
  post_all({&a_, &a_, &a_});
  post_all({&a_});
  serve(0);
  serve(1);
  overwrite(96, frame(3));
  kernels::Packet* const packets = worker_.view().response(0).packets;
  for (std::uint32_t i = 0; i < kernels::packets_for(128); ++i) packets[i].flag = packets[0].flag;
  packets[0].data[0] = 128;
  Delivered alone = run(a_, 3, 3);
  alone.frames = {};
  EXPECT_EQ(take(), (std::vector{run(a_, 0, 2), alone}));
}

// 373 bytes of frames are the shortest content that stays in memory that the worker can write.
TEST_F(RequesterRuns, OfTheShortestPlainBatchCannotBeChangedByTheWorker) {
  for (int i = 0; i < 11; ++i) post(a_);
  messages_.push_back(support::random_bytes(9, 1));
  ASSERT_TRUE(requester_.post(messages_.back(), &a_).ok());
  requester_.flush();
  serve(0);
  ASSERT_EQ(worker_.view().response(0).packets[0].data[0], 373U);
  ASSERT_EQ(take().size(), 1U);
  const std::span<std::byte> held = newest_->frame();
  std::memset(worker_.view().response(0).plain(), 0xff, 373);
  EXPECT_EQ(support::copy_of(held), frames(0, 11));
}

TEST_F(RequesterRuns, TheUnreleasedOnesAreFoundInOrder) {
  const auto unreleased = [&] {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> found;
    requester_.for_each_unreleased(
        [&](const PostRecvTask& task) { found.emplace_back(task.sequence(), task.count()); });
    return found;
  };
  using Found = std::vector<std::pair<std::uint64_t, std::uint32_t>>;
  std::uint64_t first = 0;
  for (std::uint64_t slot = 0; slot < 300; slot += 2, first += 7) {
    EXPECT_EQ(unreleased(), Found{});
    post_all({&a_, &a_, &b_, &a_, &a_});
    post_all({&b_, &b_});
    serve(slot);
    take();
    serve(slot + 1);
    EXPECT_EQ(unreleased(), (Found{{first + 1, 2}, {first + 2, 1}, {first + 4, 2}}));
    PostRecvTask* const task = newest_;
    take();
    ASSERT_EQ(unreleased(),
              (Found{{first + 1, 2}, {first + 2, 1}, {first + 4, 2}, {first + 6, 2}}));
    EXPECT_TRUE(requester_.release(*task).ok());
    requester_.flush();
    EXPECT_EQ(unreleased(), (Found{{first + 6, 2}}));
    EXPECT_TRUE(requester_.release(*newest_).ok());
    requester_.flush();
  }
}

TEST_F(RequesterRuns, EndWithTheBatch) {
  post_all({&a_, &a_});
  post_all({&a_, &a_, &a_});
  serve(0);
  serve(1);
  EXPECT_EQ(take(), (std::vector{run(a_, 0, 1), run(a_, 2, 4)}));
}

TEST_F(RequesterRuns, OfAPlainBatchCannotBeChangedByTheWorkerAnyMore) {
  for (int i = 0; i < 40; ++i) post(a_);
  requester_.flush();
  serve(0);
  ASSERT_EQ(take().size(), 1U);
  const std::span<std::byte> held = newest_->frame();
  std::memset(worker_.view().response(0).plain(), 0xff, 40 * 32);
  EXPECT_EQ(support::copy_of(held), frames(0, 39));
}

TEST_F(RequesterRuns, AreReleasedByTheirTask) {
  for (std::uint64_t slot = 0; slot < 50; ++slot) {
    post_all({&a_, &a_, &a_});
    serve(slot);
    ASSERT_EQ(take().size(), slot + 1) << slot;
    EXPECT_EQ(requester_.awaited(), 0U);
    EXPECT_TRUE(requester_.release(*newest_).ok());
    EXPECT_EQ(requester_.release(*newest_).error(), core::ErrorCode::bad_state);
    requester_.flush();
  }
}

TEST_F(RequesterRuns, AResponseThatIsTooLongIsBadAlone) {
  post_all({&a_, &a_, &a_, &a_, &a_});
  serve(0);
  // The second and third take the room of the second to fourth.
  const Bytes longer = test::frame_of(support::random_bytes(21, 1));
  overwrite(32, longer);
  const Bytes shorter = test::frame_of(support::random_bytes(19, 2));
  overwrite(32 + longer.size(), shorter);
  Delivered third = run(a_, 2, 2);
  third.payload = support::random_bytes(19, 2);
  const Bytes rest = frames(3, 4);
  Delivered behind{&a_, 3, 4, ResponseStatus::ok, shorter, {}};
  behind.frames.insert(behind.frames.end(), rest.begin(), rest.end());
  EXPECT_EQ(take(), (std::vector{run(a_, 0, 0), bad(a_, 1), behind}));
}

TEST_F(RequesterRuns, AResponseMayBeLongerThanItsRequestWhereTheHandlerSaysSo) {
  allowed_beyond_ = 1;
  post_all({&a_, &a_, &a_});
  serve(0);
  const Bytes longer = test::frame_of(support::random_bytes(21, 1));
  overwrite(32, longer);
  overwrite(32 + longer.size(), test::frame_of(support::random_bytes(19, 2)));
  ASSERT_EQ(take().size(), 1U);
  EXPECT_EQ(delivered_[0].count, 3U);
}

TEST_F(RequesterRuns, ARefusalEndsOne) {
  post_all({&a_, &a_, &a_, &a_});
  serve(0);
  const Bytes refused = protocol::make_frame(MessageId::error, {});
  const Bytes rest = frames(2, 3);
  overwrite(32, refused);
  overwrite(32 + refused.size(), rest);
  EXPECT_EQ(take(), (std::vector{run(a_, 0, 0), bad(a_, 1), run(a_, 2, 3)}));
}

TEST_F(RequesterRuns, EndWhereAFrameIsNone) {
  for (const std::size_t at : {0U, 4U, 8U}) {
    SCOPED_TRACE(at);
    delivered_.clear();
    const std::size_t first = messages_.size();
    const std::uint64_t slot = requester_.slots().posted();
    post_all({&a_, &a_, &a_, &a_});
    serve(slot);
    kernels::Packet* const packets = worker_.view().response(slot).packets;
    const std::size_t of_third = 64 + at;
    reinterpret_cast<std::byte*>(&packets[1 + of_third / 12])[of_third % 12] ^= std::byte{0x40};
    EXPECT_EQ(take(),
              (std::vector{run(a_, first, first + 1), bad(a_, first + 2), bad(a_, first + 3)}));
    EXPECT_TRUE(requester_.release(*newest_).ok());
    requester_.flush();
  }
}

TEST_F(RequesterRuns, OfWhatWasGivenUpAreNobodys) {
  post_all({&a_, &a_, &a_});
  requester_.for_each_pending([](RequestTask& request) { request.user_data = nullptr; });
  serve(0);
  ASSERT_EQ(take().size(), 1U);
  EXPECT_EQ(delivered_[0].user_data, nullptr);
  EXPECT_EQ(delivered_[0].count, 3U);
}

TEST_F(RequesterRuns, ALongResponseThatIsTooLongIsBad) {
  messages_.push_back(support::random_bytes(2000, 1));
  ASSERT_TRUE(requester_.post(messages_.back(), &a_).ok());
  requester_.flush();
  serve(0);
  worker_.view().response(0).packets[0].data[0] = 2001;
  EXPECT_EQ(take(), std::vector{bad(a_, 0)});
  EXPECT_TRUE(requester_.release(*newest_).ok());
  requester_.flush();
  EXPECT_EQ(requester_.slots().room(), requester_.slots().depth());
}

}  // namespace
}  // namespace offload::channel
