#include <fcntl.h>

#include <algorithm>

#include "tests/softcard/fixture.hpp"

/// All operations by the real libmlx5, with the data compared.
namespace offload::softcard::test {
namespace {

constexpr std::chrono::milliseconds kWhile(5);

bool equal(std::span<const std::byte> one, std::span<const std::byte> other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end());
}

TEST_F(SoftcardTest, AWriteOfEachLength) {
  here_.fill(1);
  for (const std::uint32_t length : {1U, 7U, 8U, 63U, 64U, 65U, 4095U, 4096U, 4097U, 60000U}) {
    std::ranges::fill(there_.bytes(), std::byte{});
    const auto completion =
        go(remote_work(IBV_WR_RDMA_WRITE, there_, 8, length), {here_.piece(16, length)});
    EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
    EXPECT_EQ(completion.wr_id, length);
    EXPECT_EQ(completion.opcode, IBV_WC_RDMA_WRITE);
    EXPECT_TRUE(equal(there_.bytes().subspan(8, length), here_.bytes().subspan(16, length)));
    EXPECT_EQ(there_.bytes()[7], std::byte{});
    EXPECT_EQ(there_.bytes()[8 + length], std::byte{});
  }
}

TEST_F(SoftcardTest, AWriteOfSeveralPieces) {
  here_.fill(2);
  EXPECT_EQ(go(remote_work(IBV_WR_RDMA_WRITE, there_, 0),
               {here_.piece(100, 10), here_.piece(5000, 300), here_.piece(1, 1)})
                .status,
            IBV_WC_SUCCESS);
  EXPECT_TRUE(equal(there_.bytes().first(10), here_.bytes().subspan(100, 10)));
  EXPECT_TRUE(equal(there_.bytes().subspan(10, 300), here_.bytes().subspan(5000, 300)));
  EXPECT_EQ(there_.bytes()[310], here_.bytes()[1]);
}

// Entries of one to four blocks go over the end of the ring at each place of them.
TEST_F(SoftcardTest, InlineDataGoesOverTheEndOfTheRing) {
  for (std::uint32_t i = 0; i < 1000; ++i) {
    here_.fill(i);
    const std::uint32_t length = i * 13 % 201;
    auto request = remote_work(IBV_WR_RDMA_WRITE, there_, i, i);
    request.send_flags |= IBV_SEND_INLINE;
    ASSERT_EQ(go(request, {here_.piece(i, length)}).status, IBV_WC_SUCCESS) << i;
    ASSERT_TRUE(equal(there_.bytes().subspan(i, length), here_.bytes().subspan(i, length))) << i;
  }
}

TEST_F(SoftcardTest, AReadIntoSeveralPieces) {
  there_.fill(3);
  const auto completion =
      go(remote_work(IBV_WR_RDMA_READ, there_, 77), {here_.piece(0, 100), here_.piece(200, 5000)});
  EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
  EXPECT_EQ(completion.opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(completion.byte_len, 5100U);
  EXPECT_TRUE(equal(here_.bytes().first(100), there_.bytes().subspan(77, 100)));
  EXPECT_TRUE(equal(here_.bytes().subspan(200, 5000), there_.bytes().subspan(177, 5000)));
}

TEST_F(SoftcardTest, AtomicsReturnWhatWasThere) {
  there_.word(2) = 40;
  auto completion =
      go(atomic_work(IBV_WR_ATOMIC_FETCH_AND_ADD, there_, 16, 2, 0), {here_.piece(0, 8)});
  EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
  EXPECT_EQ(completion.opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(completion.byte_len, 8U);
  EXPECT_EQ(here_.word(0), 40U);
  EXPECT_EQ(there_.word(2), 42U);
  for (const std::uint64_t before : {42U, 7U}) {  // the second finds another
    completion = go(atomic_work(IBV_WR_ATOMIC_CMP_AND_SWP, there_, 16, 42, 7), {here_.piece(0, 8)});
    EXPECT_EQ(completion.opcode, IBV_WC_COMP_SWAP);
    EXPECT_EQ(here_.word(0), before);
    EXPECT_EQ(there_.word(2), 7U);
  }
}

TEST_F(SoftcardTest, SendsUseReceivesInTheirOrder) {
  here_.fill(4);
  for (std::uint32_t i = 0; i < 200; ++i) {  // over the end of the ring
    const std::uint32_t length = i % 100;
    ASSERT_EQ(other_.post_receive(i, {there_.piece(0, 50), there_.piece(1000, 50)}), 0);
    auto request = work(i % 2 == 0 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, i);
    request.imm_data = htobe32(i * 1000);
    if (i % 3 == 0) request.send_flags |= IBV_SEND_INLINE;
    ASSERT_EQ(go(request, {here_.piece(i, length)}).status, IBV_WC_SUCCESS) << i;
    const auto came = other_.next_came();
    ASSERT_EQ(came.status, IBV_WC_SUCCESS) << i;
    EXPECT_EQ(came.wr_id, i);
    EXPECT_EQ(came.opcode, IBV_WC_RECV);
    EXPECT_EQ(came.byte_len, length);
    EXPECT_EQ(came.qp_num, other_.number());
    EXPECT_EQ((came.wc_flags & IBV_WC_WITH_IMM) != 0, i % 2 != 0);
    if (i % 2 != 0) {
      EXPECT_EQ(be32toh(came.imm_data), i * 1000);
    }
    const std::uint32_t first = std::min(length, 50U);
    EXPECT_TRUE(equal(there_.bytes().first(first), here_.bytes().subspan(i, first)));
    EXPECT_TRUE(equal(there_.bytes().subspan(1000, length - first),
                      here_.bytes().subspan(i + first, length - first)));
  }
}

// The records of both queues of a pair count at the same time.
TEST_F(SoftcardTest, BothEndsSendAndReceive) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    for (Pair* pair : {&one_, &other_}) {
      for (std::uint64_t receive = 0; receive < 3; ++receive) {
        ASSERT_EQ(pair->post_receive(i, {there_.piece(0, 64)}), 0);
      }
    }
    for (Pair* pair : {&one_, &other_}) {
      for (std::uint64_t send = 0; send < 3; ++send) {
        ibv_sge piece = here_.piece(0, 64);
        ASSERT_EQ(pair->post(work(IBV_WR_SEND, i), {&piece, 1}), 0);
      }
      for (std::uint64_t send = 0; send < 3; ++send) {
        ASSERT_EQ(pair->next_sent().status, IBV_WC_SUCCESS) << i;
      }
    }
    for (Pair* pair : {&one_, &other_}) {
      for (std::uint64_t receive = 0; receive < 3; ++receive) {
        ASSERT_EQ(pair->next_came().wr_id, i);
      }
    }
  }
}

TEST_F(SoftcardTest, AWriteWithAnImmediateUsesAReceive) {
  here_.fill(5);
  ASSERT_EQ(other_.post_receive(9, {}), 0);
  auto request = remote_work(IBV_WR_RDMA_WRITE_WITH_IMM, there_, 128);
  request.imm_data = htobe32(99);
  EXPECT_EQ(go(request, {here_.piece(0, 64)}).status, IBV_WC_SUCCESS);
  const auto came = other_.next_came();
  EXPECT_EQ(came.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(came.wr_id, 9U);
  EXPECT_EQ(came.byte_len, 64U);
  EXPECT_EQ(be32toh(came.imm_data), 99U);
  EXPECT_TRUE(equal(there_.bytes().subspan(128, 64), here_.bytes().first(64)));
}

TEST_F(SoftcardTest, ASignaledEntryCompletesThoseBeforeIt) {
  for (std::uint32_t round = 0; round < 50; ++round) {
    for (std::uint32_t i = 0; i < 10; ++i) {
      here_.word(i) = round * 100 + i;
      auto request = remote_work(IBV_WR_RDMA_WRITE, there_, 8 * i, i);
      if (i != 9) request.send_flags = 0;
      ibv_sge piece = here_.piece(8 * i, 8);
      ASSERT_EQ(one_.post(request, {&piece, 1}), 0);
    }
    ASSERT_EQ(one_.next_sent().wr_id, 9U);
    for (std::uint32_t i = 0; i < 10; ++i) ASSERT_EQ(there_.word(i), round * 100 + i);
    ibv_wc more{};
    ASSERT_EQ(ibv_poll_cq(one_.sent(), 1, &more), 0);
  }
}

// The owner bit of the completions changes with each lap: none is seen twice, and none is missed.
TEST_F(SoftcardTest, CompletionsGoOverTheEndOfTheirQueue) {
  Pair one(domain_.get(), {}, 7);
  Pair other(domain_.get(), {}, 7);
  one.connect(other.number());
  other.connect(one.number());
  for (std::uint64_t i = 0; i < 100; ++i) {
    here_.word(0) = i;
    ibv_sge piece = here_.piece(0, 8);
    ASSERT_EQ(one.post(remote_work(IBV_WR_RDMA_WRITE, there_, 0, i), {&piece, 1}), 0);
    ASSERT_EQ(one.next_sent().wr_id, i);
    ASSERT_EQ(there_.word(0), i);
    ibv_wc more{};
    ASSERT_EQ(ibv_poll_cq(one.sent(), 1, &more), 0) << i;
  }
}

// The receiver finds the whole message when it sees the completion. Its end is looked at first, as
// that would come last.
TEST_F(SoftcardTest, ACompletionComesBehindItsData) {
  constexpr std::uint32_t kLength = 1 << 20;
  constexpr std::size_t kLast = kLength / 8 - 1;
  Memory from(domain_.get(), kLength);
  Memory to(domain_.get(), kLength);
  for (std::uint32_t i = 1; i <= 40; ++i) {
    from.fill(i);
    ASSERT_EQ(other_.post_receive(i, {to.piece(0, kLength)}), 0);
    ibv_sge piece = from.piece(0, kLength);
    ASSERT_EQ(one_.post(work(IBV_WR_SEND, i), {&piece, 1}), 0);
    ASSERT_EQ(other_.next_came().status, IBV_WC_SUCCESS);
    const std::uint64_t last = to.word(kLast);
    ASSERT_EQ(last, from.word(kLast)) << i;
    ASSERT_TRUE(equal(to.bytes(), from.bytes())) << i;
    ASSERT_EQ(one_.next_sent().status, IBV_WC_SUCCESS);
  }
}

// A thread polls the last byte of a write, without a completion, and must see what was written
// before it.
TEST_F(SoftcardTest, TheLastByteOfAWriteComesBehindTheOthers) {
  constexpr std::uint32_t kLength = 32768;
  auto* const last = reinterpret_cast<std::uint8_t*>(&there_.bytes()[kLength - 1]);
  for (std::uint32_t i = 1; i <= 100; ++i) {
    here_.fill(i);
    here_.bytes()[kLength - 1] = std::byte(i);
    ibv_sge piece = here_.piece(0, kLength);
    ASSERT_EQ(one_.post(remote_work(IBV_WR_RDMA_WRITE, there_, 0, i), {&piece, 1}), 0);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != i) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::yield();
    }
    ASSERT_TRUE(equal(there_.bytes().first(kLength), here_.bytes().first(kLength))) << i;
    ASSERT_EQ(one_.next_sent().status, IBV_WC_SUCCESS);
  }
}

TEST_F(SoftcardTest, QueuePairsShareReceives) {
  ibv_srq_init_attr wanted{};
  wanted.attr = {16, 2, 0};
  const auto shared = held(ibv_create_srq(domain_.get(), &wanted), ibv_destroy_srq, "receives");
  ASSERT_EQ(fcntl(device_->async_fd, F_SETFL, O_NONBLOCK), 0);
  PairOptions options;
  options.shared = shared.get();
  Pair a(domain_.get(), options);
  Pair b(domain_.get(), options);
  a.connect(b.number());
  b.connect(a.number());
  here_.fill(6);
  for (std::uint32_t i = 0; i < 100; ++i) {
    ibv_sge pieces[2] = {there_.piece(0, 16), there_.piece(100, 100)};
    ibv_recv_wr receive{i, nullptr, pieces, 2};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(shared.get(), &receive, &bad), 0);
    Pair& from = i % 3 == 0 ? a : b;
    Pair& to = i % 3 == 0 ? b : a;
    ibv_sge piece = here_.piece(i, 50);
    ASSERT_EQ(from.post(work(IBV_WR_SEND, i), {&piece, 1}), 0);
    ASSERT_EQ(from.next_sent().status, IBV_WC_SUCCESS);
    const auto came = to.next_came();
    ASSERT_EQ(came.status, IBV_WC_SUCCESS);
    EXPECT_EQ(came.wr_id, i);
    EXPECT_EQ(came.qp_num, to.number());
    EXPECT_TRUE(equal(there_.bytes().first(16), here_.bytes().subspan(i, 16)));
    EXPECT_TRUE(equal(there_.bytes().subspan(100, 34), here_.bytes().subspan(i + 16, 34)));
  }
}

TEST_F(SoftcardTest, TheLimitOfSharedReceivesIsAnEventOnce) {
  ibv_srq_init_attr wanted{};
  wanted.attr = {16, 1, 0};
  const auto shared = held(ibv_create_srq(domain_.get(), &wanted), ibv_destroy_srq, "receives");
  ASSERT_EQ(fcntl(device_->async_fd, F_SETFL, O_NONBLOCK), 0);
  PairOptions options;
  options.shared = shared.get();
  Pair to(domain_.get(), options);
  Pair from(domain_.get(), {});
  from.connect(to.number());
  to.connect(from.number());
  for (std::uint64_t i = 0; i < 8; ++i) {
    ibv_sge piece = there_.piece(0, 16);
    ibv_recv_wr receive{i, nullptr, &piece, 1};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(shared.get(), &receive, &bad), 0);
  }
  ibv_srq_attr limit{0, 0, 7};
  ASSERT_EQ(ibv_modify_srq(shared.get(), &limit, IBV_SRQ_LIMIT), 0);
  ASSERT_EQ(ibv_query_srq(shared.get(), &limit), 0);
  EXPECT_EQ(limit.srq_limit, 7U);
  for (int i = 0; i < 4; ++i) {
    ibv_sge piece = here_.piece(0, 8);
    ASSERT_EQ(from.post(work(IBV_WR_SEND), {&piece, 1}), 0);
    ASSERT_EQ(from.next_sent().status, IBV_WC_SUCCESS);
  }
  const auto event = next_event();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event->element.srq, shared.get());
  std::this_thread::sleep_for(kWhile);  // a second one would come in this time
  ibv_async_event another{};
  const bool has_another = ibv_get_async_event(device_.get(), &another) == 0;
  EXPECT_FALSE(has_another);
  if (has_another) ibv_ack_async_event(&another);
}

TEST_F(SoftcardTest, AnArmedQueueHasOneEvent) {
  const auto channel =
      held(ibv_create_comp_channel(device_.get()), ibv_destroy_comp_channel, "a channel");
  Pair one(domain_.get(), {}, 16, channel.get());
  Pair other(domain_.get(), {}, 16, channel.get());
  one.connect(other.number());
  other.connect(one.number());
  ASSERT_EQ(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
  const auto event_of = [&]() -> ibv_cq* {
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (ibv_get_cq_event(channel.get(), &queue, &context) != 0) {
      if (std::chrono::steady_clock::now() > deadline) return nullptr;
      std::this_thread::yield();
    }
    ibv_ack_cq_events(queue, 1);
    return queue;
  };
  // Waits for a while, in which an event would come.
  const auto has_event = [&] {
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    std::this_thread::sleep_for(kWhile);
    if (ibv_get_cq_event(channel.get(), &queue, &context) != 0) return false;
    ibv_ack_cq_events(queue, 1);
    return true;
  };
  const auto send = [&](unsigned flags) {
    ASSERT_EQ(other.post_receive(0, {there_.piece(0, 16)}), 0);
    auto request = work(IBV_WR_SEND);
    request.send_flags |= flags;
    ibv_sge piece = here_.piece(0, 8);
    ASSERT_EQ(one.post(request, {&piece, 1}), 0);
    ASSERT_EQ(one.next_sent().status, IBV_WC_SUCCESS);
  };
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(ibv_req_notify_cq(other.came(), 0), 0);
    send(0);
    send(0);
    EXPECT_EQ(event_of(), other.came());
    EXPECT_FALSE(has_event());
    // A completion that is there when the queue is armed makes an event, too.
    ASSERT_EQ(ibv_req_notify_cq(other.came(), 0), 0);
    EXPECT_EQ(event_of(), other.came());
    ASSERT_EQ(other.next_came().status, IBV_WC_SUCCESS);
    ASSERT_EQ(other.next_came().status, IBV_WC_SUCCESS);
  }
  ASSERT_EQ(ibv_req_notify_cq(other.came(), 1), 0);
  send(0);
  ASSERT_EQ(other.next_came().status, IBV_WC_SUCCESS);
  EXPECT_FALSE(has_event());
  send(IBV_SEND_SOLICITED);
  EXPECT_EQ(event_of(), other.came());
  ASSERT_EQ(other.next_came().status, IBV_WC_SUCCESS);
}

TEST_F(SoftcardTest, AQueuePairWorksAgainAfterAReset) {
  for (int round = 0; round < 3; ++round) {
    const auto completion = go(remote_work(IBV_WR_RDMA_WRITE, there_, 0), {here_.piece(0, 8)});
    EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
    for (Pair* pair : {&one_, &other_}) {
      ibv_qp_attr attributes{};
      attributes.qp_state = IBV_QPS_RESET;
      pair->change(attributes, IBV_QP_STATE);
      attributes.qp_state = IBV_QPS_INIT;
      attributes.port_num = 1;
      attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
      pair->change(attributes,
                   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    }
    one_.connect(other_.number());
    other_.connect(one_.number());
  }
}

}  // namespace
}  // namespace offload::softcard::test
