#include <poll.h>

#include <array>
#include <ctime>
#include <string>

#include "tests/doca/eth/eth_fixture.hpp"

/// Ethernet by tasks, over veth.
namespace offload::doca {
namespace {

struct End {
  std::uint64_t data;
  doca_error_t status;
  Bytes frame;
};

/// A receive queue of the test's engine. Tasks end with their buffers in `ended`, and are freed.
class Receiver {
 public:
  static constexpr std::uint32_t kTasks = 16;

  Receiver(doca_dev* dev, doca_pe* pe) {
    EXPECT_EQ(doca_eth_rxq_create(dev, 256, 1600, &rxq), DOCA_SUCCESS);
    EXPECT_EQ(doca_eth_rxq_set_type(rxq, DOCA_ETH_RXQ_TYPE_REGULAR), DOCA_SUCCESS);
    EXPECT_EQ(doca_eth_rxq_task_recv_set_conf(rxq, on_end, on_end, kTasks), DOCA_SUCCESS);
    ctx = doca_eth_rxq_as_doca_ctx(rxq);
    EXPECT_EQ(doca_pe_connect_ctx(pe, ctx), DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_set_user_data(ctx, {.ptr = this}), DOCA_SUCCESS);
  }
  Receiver& operator=(Receiver&&) = delete;
  ~Receiver() { EXPECT_EQ(doca_eth_rxq_destroy(rxq), DOCA_SUCCESS); }

  void start(std::uint16_t queue) {
    ASSERT_EQ(doca_ctx_start(ctx), DOCA_SUCCESS);
    ASSERT_EQ(doca_eth_rxq_apply_queue_id(rxq, queue), DOCA_SUCCESS);
  }
  doca_error_t submit(doca_buf* buf, std::uint64_t data) {
    doca_eth_rxq_task_recv* task = nullptr;
    EXPECT_EQ(doca_eth_rxq_task_recv_allocate_init(rxq, buf, {.u64 = data}, &task), DOCA_SUCCESS);
    const doca_error_t result = doca_task_submit(doca_eth_rxq_task_recv_as_doca_task(task));
    if (result != DOCA_SUCCESS) doca_task_free(doca_eth_rxq_task_recv_as_doca_task(task));
    return result;
  }

  static void on_end(doca_eth_rxq_task_recv* task, doca_data task_data, doca_data ctx_data) {
    auto& self = *static_cast<Receiver*>(ctx_data.ptr);
    doca_buf* buf = nullptr;
    EXPECT_EQ(doca_eth_rxq_task_recv_get_pkt(task, &buf), DOCA_SUCCESS);
    void* data = nullptr;
    std::size_t length = 0;
    EXPECT_EQ(doca_buf_get_data(buf, &data), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_get_data_len(buf, &length), DOCA_SUCCESS);
    const auto* const bytes = static_cast<const std::uint8_t*>(data);
    doca_task* const base = doca_eth_rxq_task_recv_as_doca_task(task);
    self.ended.push_back({task_data.u64, doca_task_get_status(base), {bytes, bytes + length}});
    self.has_metadata = doca_eth_rxq_task_recv_get_metadata_array(task, &self.metadata);
    self.has_hash = doca_eth_rxq_task_recv_get_rx_hash(task, &self.hash);
    self.has_time = doca_eth_rxq_task_recv_get_timestamp(task, &self.time);
    EXPECT_EQ(doca_buf_dec_refcount(buf, nullptr), DOCA_SUCCESS);
    doca_task_free(base);
    if (std::exchange(self.stops_in_callback, false)) {
      EXPECT_EQ(doca_ctx_stop(self.ctx), DOCA_ERROR_IN_PROGRESS);
    }
  }

  doca_eth_rxq* rxq = nullptr;
  doca_ctx* ctx = nullptr;
  std::vector<End> ended;
  bool stops_in_callback = false;
  // These describe the frame of the last task.
  const std::uint32_t* metadata = nullptr;
  std::uint32_t hash = 0;
  std::uint64_t time = 0;
  doca_error_t has_metadata = DOCA_ERROR_UNKNOWN;
  doca_error_t has_hash = DOCA_ERROR_UNKNOWN;
  doca_error_t has_time = DOCA_ERROR_UNKNOWN;
};

/// A send queue of the test's engine. The same.
class Sender {
 public:
  static constexpr std::uint32_t kTasks = 64;

  Sender(doca_dev* dev, doca_pe* pe) {
    EXPECT_EQ(doca_eth_txq_create(dev, 256, &txq), DOCA_SUCCESS);
    EXPECT_EQ(doca_eth_txq_set_type(txq, DOCA_ETH_TXQ_TYPE_REGULAR), DOCA_SUCCESS);
    EXPECT_EQ(doca_eth_txq_task_send_set_conf(txq, on_end, on_end, kTasks), DOCA_SUCCESS);
    ctx = doca_eth_txq_as_doca_ctx(txq);
    EXPECT_EQ(doca_pe_connect_ctx(pe, ctx), DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_set_user_data(ctx, {.ptr = this}), DOCA_SUCCESS);
  }
  Sender& operator=(Sender&&) = delete;
  ~Sender() { EXPECT_EQ(doca_eth_txq_destroy(txq), DOCA_SUCCESS); }

  doca_error_t submit(doca_buf* buf, std::uint64_t data) {
    doca_eth_txq_task_send* task = nullptr;
    EXPECT_EQ(doca_eth_txq_task_send_allocate_init(txq, buf, {.u64 = data}, &task), DOCA_SUCCESS);
    const doca_error_t result = doca_task_submit(doca_eth_txq_task_send_as_doca_task(task));
    if (result != DOCA_SUCCESS) doca_task_free(doca_eth_txq_task_send_as_doca_task(task));
    return result;
  }
  static void on_end(doca_eth_txq_task_send* task, doca_data task_data, doca_data ctx_data) {
    auto& self = *static_cast<Sender*>(ctx_data.ptr);
    doca_buf* buf = nullptr;
    EXPECT_EQ(doca_eth_txq_task_send_get_pkt(task, &buf), DOCA_SUCCESS);
    doca_task* const base = doca_eth_txq_task_send_as_doca_task(task);
    self.ended.push_back({task_data.u64, doca_task_get_status(base), {}});
    EXPECT_EQ(doca_buf_dec_refcount(buf, nullptr), DOCA_SUCCESS);
    doca_task_free(base);
  }

  doca_eth_txq* txq = nullptr;
  doca_ctx* ctx = nullptr;
  std::vector<End> ended;
};

TEST_F(EthTest, TasksReceiveTheFramesOfTheirQueueInOrder) {
  Receiver receiver(dev_, pe_);
  receiver.start(0);
  // Several laps of the rings, which have 1024 frames.
  constexpr unsigned kFrames = 3000;
  unsigned sent = 0;
  for (unsigned begin = 0; begin < kFrames; begin += Receiver::kTasks) {
    for (unsigned i = 0; i < Receiver::kTasks; ++i) {
      ASSERT_EQ(receiver.submit(destination(i), begin + i), DOCA_SUCCESS);
    }
    std::size_t in_flight = 0;
    EXPECT_EQ(doca_ctx_get_num_inflight_tasks(receiver.ctx, &in_flight), DOCA_SUCCESS);
    EXPECT_EQ(in_flight, Receiver::kTasks);
    veth_.write(make_datagram(9, Bytes{1}));  // for no queue
    for (unsigned i = 0; i < Receiver::kTasks; ++i) {
      veth_.write(datagram(7, 1 + sent % 1400, static_cast<std::uint8_t>(sent)));
      ++sent;
    }
    ASSERT_TRUE(eventually([&] { return receiver.ended.size() == sent; }));
  }
  for (unsigned i = 0; i < sent; ++i) {
    const End& end = receiver.ended[i];
    ASSERT_EQ(end.data, i);
    ASSERT_EQ(end.status, DOCA_SUCCESS);
    ASSERT_EQ(end.frame, datagram(7, 1 + i % 1400, static_cast<std::uint8_t>(i))) << i;
  }
  stop(receiver.ctx);
}

TEST_F(EthTest, AFrameIsWrittenBehindTheData) {
  Receiver receiver(dev_, pe_);
  receiver.start(0);
  doca_buf* const buf = destination(0);
  std::memset(piece(0), 0xaa, 16);
  ASSERT_EQ(doca_buf_set_data_len(buf, 16), DOCA_SUCCESS);
  ASSERT_EQ(receiver.submit(buf, 0), DOCA_SUCCESS);
  const Bytes frame = datagram(7, 5);
  veth_.write(frame);
  ASSERT_TRUE(eventually([&] { return !receiver.ended.empty(); }));
  Bytes expected(16, 0xaa);
  expected.insert(expected.end(), frame.begin(), frame.end());
  EXPECT_EQ(receiver.ended[0].frame, expected);
  stop(receiver.ctx);
}

TEST_F(EthTest, EachQueueHasItsRule) {
  Receiver zero(dev_, pe_);
  Receiver three(dev_, pe_);
  zero.start(0);
  three.start(3);
  for (unsigned i = 0; i < 4; ++i) {
    ASSERT_EQ(zero.submit(destination(i), i), DOCA_SUCCESS);
    ASSERT_EQ(three.submit(destination(4 + i), i), DOCA_SUCCESS);
  }
  for (unsigned i = 0; i < 8; ++i)
    veth_.write(datagram(7 + i % 2, 10, static_cast<std::uint8_t>(i)));
  ASSERT_TRUE(eventually([&] { return zero.ended.size() == 4 && three.ended.size() == 4; }));
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_EQ(zero.ended[i].frame, datagram(7, 10, static_cast<std::uint8_t>(2 * i)));
    EXPECT_EQ(three.ended[i].frame, datagram(8, 10, static_cast<std::uint8_t>(2 * i + 1)));
  }
  stop(zero.ctx);
  stop(three.ctx);
}

TEST_F(EthTest, ARestartGetsNewFramesOnly) {
  Receiver receiver(dev_, pe_);
  Receiver other(dev_, pe_);  // which keeps the interface open
  other.start(3);
  receiver.start(0);
  veth_.write(datagram(7, 10, 1));  // no task waits
  stop(receiver.ctx);
  veth_.write(datagram(7, 10, 2));  // for the kernel
  receiver.start(0);
  ASSERT_EQ(receiver.submit(destination(0), 0), DOCA_SUCCESS);
  veth_.write(datagram(7, 10, 3));
  ASSERT_TRUE(eventually([&] { return !receiver.ended.empty(); }));
  EXPECT_EQ(receiver.ended[0].frame, datagram(7, 10, 3));
  stop(receiver.ctx);
  stop(other.ctx);
}

TEST_F(EthTest, FramesHaveWhatTheQueueAsksFor) {
  Receiver receiver(dev_, pe_);
  EXPECT_EQ(doca_eth_rxq_set_metadata_num(receiver.rxq, 9), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_eth_rxq_set_metadata_num(receiver.rxq, 1), DOCA_SUCCESS);
  EXPECT_EQ(doca_eth_rxq_set_rx_hash(receiver.rxq, 1), DOCA_SUCCESS);
  EXPECT_EQ(doca_eth_rxq_set_timestamp(receiver.rxq, 1), DOCA_SUCCESS);
  receiver.start(0);
  const auto receive = [&](const Bytes& frame) {
    ASSERT_EQ(receiver.submit(destination(0), 0), DOCA_SUCCESS);
    veth_.write(frame);
    const std::size_t count = receiver.ended.size();
    ASSERT_TRUE(eventually([&] { return receiver.ended.size() > count; }));
    ASSERT_EQ(receiver.has_metadata, DOCA_SUCCESS);
    ASSERT_EQ(receiver.has_hash, DOCA_SUCCESS);
    ASSERT_EQ(receiver.has_time, DOCA_SUCCESS);
  };
  receive(datagram(7, 10));
  EXPECT_EQ(receiver.metadata[0], 0U);
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const auto nanoseconds = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
                           static_cast<std::uint64_t>(now.tv_nsec);
  EXPECT_LE(receiver.time, nanoseconds);
  EXPECT_GT(receiver.time, nanoseconds - 20'000'000'000U);
  const std::uint32_t hash = receiver.hash;
  receive(datagram(7, 100, 9));
  EXPECT_EQ(receiver.hash, hash);  // of the same sender
  Bytes of_another = datagram(7, 10);
  of_another[34] ^= 1;  // the port; the datagram's checksum does not matter
  receive(of_another);
  EXPECT_NE(receiver.hash, hash);
  stop(receiver.ctx);

  Receiver plain(dev_, pe_);
  plain.start(0);
  ASSERT_EQ(plain.submit(destination(0), 0), DOCA_SUCCESS);
  veth_.write(datagram(7, 10));
  ASSERT_TRUE(eventually([&] { return !plain.ended.empty(); }));
  EXPECT_EQ(plain.has_metadata, DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(plain.has_hash, DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(plain.has_time, DOCA_ERROR_BAD_STATE);
  stop(plain.ctx);
}

TEST_F(EthTest, ALongFrameFailsItsTaskAndStopsTheContext) {
  Receiver receiver(dev_, pe_);
  receiver.start(0);
  ASSERT_EQ(receiver.submit(destination(0, 60), 1), DOCA_SUCCESS);
  ASSERT_EQ(receiver.submit(destination(1), 2), DOCA_SUCCESS);
  veth_.write(datagram(7, 100));
  ASSERT_TRUE(eventually([&] { return state_of(receiver.ctx) == DOCA_CTX_STATE_IDLE; }));
  ASSERT_EQ(receiver.ended.size(), 2U);
  EXPECT_EQ(receiver.ended[0].status, DOCA_ERROR_IO_FAILED);
  EXPECT_EQ(receiver.ended[0].frame, Bytes());
  EXPECT_EQ(receiver.ended[1].status, DOCA_ERROR_SHUTDOWN);
}

TEST_F(EthTest, ACallbackMayStopTheContext) {
  Receiver receiver(dev_, pe_);
  receiver.start(0);
  for (unsigned i = 0; i < 4; ++i) ASSERT_EQ(receiver.submit(destination(i), i), DOCA_SUCCESS);
  receiver.stops_in_callback = true;
  for (unsigned i = 0; i < 4; ++i) veth_.write(datagram(7, 10));
  ASSERT_TRUE(eventually([&] { return state_of(receiver.ctx) == DOCA_CTX_STATE_IDLE; }));
  ASSERT_EQ(receiver.ended.size(), 4U);
  EXPECT_EQ(receiver.ended[0].status, DOCA_SUCCESS);
  EXPECT_EQ(receiver.ended[3].status, DOCA_ERROR_SHUTDOWN);
}

TEST_F(EthTest, ADescriptorTellsOfFrames) {
  Receiver receiver(dev_, pe_);
  receiver.start(0);
  ASSERT_EQ(receiver.submit(destination(0), 0), DOCA_SUCCESS);
  while (doca_pe_progress(pe_) != 0) continue;
  doca_event_handle_t handle = doca_event_invalid_handle;
  ASSERT_EQ(doca_pe_get_notification_handle(pe_, &handle), DOCA_SUCCESS);
  ASSERT_EQ(doca_pe_request_notification(pe_), DOCA_SUCCESS);
  pollfd readable{handle, POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, 0), 0);
  veth_.write(datagram(7, 10));
  EXPECT_EQ(::poll(&readable, 1, 20'000), 1);
  ASSERT_EQ(doca_pe_clear_notification(pe_, handle), DOCA_SUCCESS);
  ASSERT_TRUE(eventually([&] { return receiver.ended.size() == 1; }));
  stop(receiver.ctx);
}

TEST_F(EthTest, TasksSendFramesInOrder) {
  Sender sender(dev_, pe_);
  ASSERT_EQ(doca_ctx_start(sender.ctx), DOCA_SUCCESS);
  ASSERT_EQ(doca_eth_txq_apply_queue_id(sender.txq, 0), DOCA_SUCCESS);
  EXPECT_EQ(doca_eth_txq_apply_queue_id(sender.txq, 0), DOCA_ERROR_BAD_STATE);
  constexpr unsigned kFrames = 3000;
  for (unsigned begin = 0; begin < kFrames; begin += 50) {
    for (unsigned i = begin; i < begin + 50; ++i) {
      ASSERT_EQ(
          sender.submit(source(i % 50, datagram(9, 1 + i % 1400, static_cast<std::uint8_t>(i))), i),
          DOCA_SUCCESS);
    }
    ASSERT_TRUE(eventually([&] { return sender.ended.size() == begin + 50; }));
    for (unsigned i = begin; i < begin + 50; ++i) {
      ASSERT_EQ(read(), datagram(9, 1 + i % 1400, static_cast<std::uint8_t>(i))) << i;
      ASSERT_EQ(sender.ended[i].status, DOCA_SUCCESS);
    }
  }
  stop(sender.ctx);
}

TEST_F(EthTest, AListOfBuffersIsOneFrame) {
  Sender sender(dev_, pe_);
  ASSERT_EQ(doca_ctx_start(sender.ctx), DOCA_SUCCESS);
  const Bytes frame = datagram(9, 500);
  doca_buf* const head = source(0, Bytes(frame.begin(), frame.begin() + 42));
  doca_buf* const tail = source(1, Bytes(frame.begin() + 42, frame.end()));
  ASSERT_EQ(doca_buf_chain_list(head, tail), DOCA_SUCCESS);
  ASSERT_EQ(sender.submit(head, 0), DOCA_SUCCESS);
  ASSERT_TRUE(eventually([&] { return sender.ended.size() == 1; }));
  EXPECT_EQ(read(), frame);
  stop(sender.ctx);
}

TEST_F(EthTest, ChecksumsAreWrittenIfTheProgramAsks) {
  const Bytes right = datagram(9, 33);
  Bytes without = right;
  for (const std::size_t at : {24U, 25U, 40U, 41U}) without[at] = 0;  // of IP and UDP
  Sender sender(dev_, pe_);
  ASSERT_EQ(doca_eth_txq_set_l3_chksum_offload(sender.txq, 1), DOCA_SUCCESS);
  ASSERT_EQ(doca_eth_txq_set_l4_chksum_offload(sender.txq, 1), DOCA_SUCCESS);
  ASSERT_EQ(doca_ctx_start(sender.ctx), DOCA_SUCCESS);
  EXPECT_EQ(doca_eth_txq_set_l3_chksum_offload(sender.txq, 0), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_eth_txq_set_l4_chksum_offload(sender.txq, 0), DOCA_ERROR_BAD_STATE);
  ASSERT_EQ(sender.submit(source(0, without), 0), DOCA_SUCCESS);
  ASSERT_TRUE(eventually([&] { return sender.ended.size() == 1; }));
  EXPECT_EQ(read(), right);
  EXPECT_EQ(Bytes(piece(0), piece(0) + without.size()), without);  // the program's stays
  stop(sender.ctx);
}

TEST_F(EthTest, AProgramSendsAndReceivesOnOneEngine) {
  Receiver receiver(dev_, pe_);
  Sender sender(dev_, pe_);
  receiver.start(0);
  ASSERT_EQ(doca_ctx_start(sender.ctx), DOCA_SUCCESS);
  ASSERT_EQ(receiver.submit(destination(0), 0), DOCA_SUCCESS);
  ASSERT_EQ(sender.submit(source(1, datagram(9, 20)), 0), DOCA_SUCCESS);
  EXPECT_EQ(read().size(), 62U);
  veth_.write(datagram(7, 30));
  ASSERT_TRUE(eventually([&] { return receiver.ended.size() == 1 && sender.ended.size() == 1; }));
  stop(sender.ctx);
  stop(receiver.ctx);
}

TEST_F(EthTest, AnInterfaceThatIsGoneStopsItsContexts) {
  Receiver receiver(dev_, pe_);
  Sender sender(dev_, pe_);
  receiver.start(0);
  ASSERT_EQ(doca_ctx_start(sender.ctx), DOCA_SUCCESS);
  ASSERT_EQ(receiver.submit(destination(0), 0), DOCA_SUCCESS);
  ASSERT_EQ(std::system("ip link del v0"), 0);
  ASSERT_EQ(sender.submit(source(1, datagram(9, 20)), 0), DOCA_SUCCESS);
  ASSERT_TRUE(eventually([&] {
    return state_of(receiver.ctx) == DOCA_CTX_STATE_IDLE &&
           state_of(sender.ctx) == DOCA_CTX_STATE_IDLE;
  }));
  ASSERT_EQ(receiver.ended.size(), 1U);
  EXPECT_EQ(receiver.ended[0].status, DOCA_ERROR_NOT_CONNECTED);
  ASSERT_EQ(sender.ended.size(), 1U);
  EXPECT_EQ(sender.ended[0].status, DOCA_ERROR_NOT_CONNECTED);
  EXPECT_EQ(doca_ctx_start(receiver.ctx), DOCA_ERROR_NOT_FOUND);
}

TEST_F(EthTest, MisuseOfAReceiverIsRefused) {
  Receiver receiver(dev_, pe_);
  doca_eth_rxq_task_recv* task = nullptr;
  doca_buf* const buf = destination(0);
  EXPECT_EQ(doca_eth_rxq_apply_queue_id(receiver.rxq, 0), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_eth_rxq_task_recv_allocate_init(receiver.rxq, buf, {}, &task),
            DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_eth_rxq_set_type(receiver.rxq, DOCA_ETH_RXQ_TYPE_MANAGED_MEMPOOL),
            DOCA_ERROR_NOT_SUPPORTED);
  ASSERT_EQ(doca_ctx_start(receiver.ctx), DOCA_SUCCESS);
  EXPECT_EQ(doca_eth_rxq_destroy(receiver.rxq), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_eth_rxq_set_timestamp(receiver.rxq, 1), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_eth_rxq_apply_queue_id(receiver.rxq, 8), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_eth_rxq_apply_queue_id(receiver.rxq, 0), DOCA_SUCCESS);
  EXPECT_EQ(doca_eth_rxq_apply_queue_id(receiver.rxq, 1), DOCA_ERROR_BAD_STATE);
  {
    Receiver second(dev_, pe_);
    ASSERT_EQ(doca_ctx_start(second.ctx), DOCA_SUCCESS);
    EXPECT_EQ(doca_eth_rxq_apply_queue_id(second.rxq, 0), DOCA_ERROR_IN_USE);
    stop(second.ctx);
  }
  ASSERT_EQ(doca_eth_rxq_task_recv_allocate_init(receiver.rxq, buf, {}, &task), DOCA_SUCCESS);
  doca_task* const base = doca_eth_rxq_task_recv_as_doca_task(task);
  doca_eth_rxq_task_recv_set_pkt(task, nullptr);
  EXPECT_EQ(doca_task_submit(base), DOCA_ERROR_INVALID_VALUE);
  doca_eth_rxq_task_recv_set_pkt(task, buf);
  doca_buf* found = nullptr;
  EXPECT_EQ(doca_eth_rxq_task_recv_get_pkt(task, &found), DOCA_SUCCESS);
  EXPECT_EQ(found, buf);
  doca_buf* const tail = destination(1);
  ASSERT_EQ(doca_buf_chain_list(buf, tail), DOCA_SUCCESS);
  EXPECT_EQ(doca_task_submit(base), DOCA_ERROR_NOT_SUPPORTED);
  doca_task_free(base);
  EXPECT_EQ(doca_buf_dec_refcount(buf, nullptr), DOCA_SUCCESS);
  stop(receiver.ctx);

  EXPECT_EQ(doca_eth_rxq_as_doca_ctx(nullptr), nullptr);
  EXPECT_EQ(doca_eth_rxq_task_recv_as_doca_task(nullptr), nullptr);
  EXPECT_EQ(doca_eth_rxq_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  doca_eth_rxq* rxq = nullptr;
  EXPECT_EQ(doca_eth_rxq_create(dev_, 0, 1600, &rxq), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_eth_rxq_create(dev_, 256, 9000, &rxq), DOCA_ERROR_INVALID_VALUE);
}

TEST_F(EthTest, MisuseOfASenderIsRefused) {
  Sender sender(dev_, pe_);
  EXPECT_EQ(doca_eth_txq_apply_queue_id(sender.txq, 0), DOCA_ERROR_BAD_STATE);
  ASSERT_EQ(doca_ctx_start(sender.ctx), DOCA_SUCCESS);
  EXPECT_EQ(doca_eth_txq_destroy(sender.txq), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_eth_txq_set_type(sender.txq, DOCA_ETH_TXQ_TYPE_REGULAR), DOCA_ERROR_BAD_STATE);
  doca_buf* const buf = source(0, Bytes(13, 1));
  doca_eth_txq_task_send* task = nullptr;
  ASSERT_EQ(doca_eth_txq_task_send_allocate_init(sender.txq, buf, {}, &task), DOCA_SUCCESS);
  doca_task* const base = doca_eth_txq_task_send_as_doca_task(task);
  EXPECT_EQ(doca_task_submit(base), DOCA_ERROR_INVALID_VALUE);
  doca_eth_txq_task_send_set_pkt(task, nullptr);
  EXPECT_EQ(doca_task_submit(base), DOCA_ERROR_INVALID_VALUE);
  doca_task_free(base);
  EXPECT_EQ(doca_buf_dec_refcount(buf, nullptr), DOCA_SUCCESS);
  stop(sender.ctx);
  EXPECT_EQ(doca_eth_txq_as_doca_ctx(nullptr), nullptr);
  EXPECT_EQ(doca_eth_txq_task_send_as_doca_task(nullptr), nullptr);
  doca_eth_txq* txq = nullptr;
  EXPECT_EQ(doca_eth_txq_create(dev_, 1U << 20U, &txq), DOCA_ERROR_INVALID_VALUE);
}

TEST_F(EthTest, ADeviceSaysWhatItCan) {
  doca_devinfo* const info = doca_dev_as_devinfo(dev_);
  std::uint32_t most = 0;
  EXPECT_EQ(doca_eth_rxq_cap_get_max_burst_size(info, &most), DOCA_SUCCESS);
  EXPECT_GE(most, 16384U);
  EXPECT_EQ(doca_eth_rxq_cap_get_max_packet_size(info, &most), DOCA_SUCCESS);
  EXPECT_GE(most, 1600U);
  EXPECT_EQ(doca_eth_txq_cap_get_max_burst_size(info, 1, 0, &most), DOCA_SUCCESS);
  EXPECT_EQ(doca_eth_txq_cap_get_max_burst_size(info, 1, 64, &most), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_eth_txq_cap_get_max_burst_size(info, 33, 0, &most), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_eth_rxq_cap_is_type_supported(info, DOCA_ETH_RXQ_TYPE_REGULAR,
                                               DOCA_ETH_RXQ_DATA_PATH_TYPE_CPU),
            DOCA_SUCCESS);
  EXPECT_EQ(doca_eth_rxq_cap_is_type_supported(info, DOCA_ETH_RXQ_TYPE_MANAGED_MEMPOOL,
                                               DOCA_ETH_RXQ_DATA_PATH_TYPE_CPU),
            DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_eth_txq_cap_is_type_supported(info, DOCA_ETH_TXQ_TYPE_REGULAR,
                                               DOCA_ETH_TXQ_DATA_PATH_TYPE_CPU),
            DOCA_SUCCESS);
  std::array<std::uint8_t, DOCA_DEVINFO_MAC_ADDR_SIZE> mac{};
  EXPECT_EQ(doca_devinfo_get_mac_addr(info, mac.data(), 5), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_devinfo_get_mac_addr(info, mac.data(), mac.size()), DOCA_SUCCESS);
  char text[18] = {};
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
                mac[4], mac[5]);
  EXPECT_EQ(std::system(("ip link show v0 | grep -q " + std::string(text)).c_str()), 0);
  char name[DOCA_DEVINFO_IBDEV_NAME_SIZE] = {};
  EXPECT_EQ(doca_devinfo_get_iface_name(info, name, sizeof name), DOCA_SUCCESS);
  EXPECT_STREQ(name, "v0");
  EXPECT_EQ(doca_devinfo_get_ibdev_name(info, name, sizeof name), DOCA_SUCCESS);
  EXPECT_STREQ(name, "v0");

  doca_dev* const other = open_device(1);  // which has no interface
  doca_eth_rxq* rxq = nullptr;
  doca_eth_txq* txq = nullptr;
  EXPECT_EQ(doca_eth_rxq_create(other, 256, 1600, &rxq), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_eth_txq_create(other, 256, &txq), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_eth_rxq_cap_get_max_burst_size(doca_dev_as_devinfo(other), &most),
            DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_devinfo_get_mac_addr(doca_dev_as_devinfo(other), mac.data(), mac.size()),
            DOCA_ERROR_NOT_FOUND);
  EXPECT_EQ(doca_dev_close(other), DOCA_SUCCESS);
}

TEST_F(EthTest, ASecondHardwareQueueIsRefused) {
  const Veth two(2);
  Receiver receiver(dev_, pe_);
  EXPECT_EQ(doca_ctx_start(receiver.ctx), DOCA_ERROR_NOT_SUPPORTED);
}

TEST_F(EthTest, MalformedRulesAreRefused) {
  ::setenv("OFFLOAD_DOCA_ETH_RULES", "udp dport 7 to 8", 1);
  Receiver receiver(dev_, pe_);
  EXPECT_EQ(doca_ctx_start(receiver.ctx), DOCA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace offload::doca
