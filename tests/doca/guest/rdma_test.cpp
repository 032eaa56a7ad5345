#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/doca/rdma_fixture.hpp"

/// Contexts for RDMA over a real device, connected by bytes.
namespace offload::doca {
namespace {

constexpr doca_be32_t kImmediate = 0x1234abcd;

class DocaRdmaTest : public testing::Test {
 protected:
  DocaRdmaTest() : dev_(open_rdma_device()) {}
  void SetUp() override { ASSERT_NE(dev_, nullptr) << "there is no RDMA device"; }
  ~DocaRdmaTest() override {
    a_.reset();
    b_.reset();
    EXPECT_EQ(doca_dev_close(dev_), DOCA_SUCCESS);
  }

  void make() {
    a_ = std::make_unique<Peer>(dev_);
    b_ = std::make_unique<Peer>(dev_);
  }
  /// Starts both, connects them, and imports the memory of `b` into `a`.
  void start_and_connect() {
    ASSERT_EQ(doca_ctx_start(a_->ctx), DOCA_SUCCESS);
    ASSERT_EQ(doca_ctx_start(b_->ctx), DOCA_SUCCESS);
    connect(*a_, of_a_, *b_, of_b_);
    ASSERT_EQ(a_->import(b_->exported_memory()), DOCA_SUCCESS);
  }
  void make_connected() {
    make();
    start_and_connect();
  }
  static void connect(Peer& a, doca_rdma_connection*& of_a, Peer& b, doca_rdma_connection*& of_b) {
    const Bytes from_a = a.make_connection(of_a);
    const Bytes from_b = b.make_connection(of_b);
    ASSERT_EQ(a.connect(from_b, of_a), DOCA_SUCCESS);
    ASSERT_EQ(b.connect(from_a, of_b), DOCA_SUCCESS);
  }
  static bool all_are(const std::uint8_t* bytes, std::size_t count, std::uint8_t value) {
    return std::all_of(bytes, bytes + count, [&](std::uint8_t each) { return each == value; });
  }

  doca_dev* dev_;
  std::unique_ptr<Peer> a_, b_;
  doca_rdma_connection* of_a_ = nullptr;
  doca_rdma_connection* of_b_ = nullptr;
};

TEST_F(DocaRdmaTest, WritesAndReadsAPeersMemoryBehindTheDataOfTheDestination) {
  make_connected();
  doca_buf* const there = a_->far(100, 64, false);
  ASSERT_EQ(a_->write(of_a_, a_->source(0, 40, 0x11), there), DOCA_SUCCESS);
  ASSERT_TRUE(a_->ends(1));
  EXPECT_EQ(a_->ended[0].status, DOCA_SUCCESS);
  EXPECT_EQ(Peer::data_length(there), 40U);
  ASSERT_EQ(a_->write(of_a_, a_->source(64, 24, 0x22), there), DOCA_SUCCESS);
  ASSERT_TRUE(a_->ends(2));
  EXPECT_EQ(Peer::data_length(there), 64U);
  EXPECT_TRUE(all_are(b_->memory.data() + 100, 40, 0x11));
  EXPECT_TRUE(all_are(b_->memory.data() + 140, 24, 0x22));
  EXPECT_EQ(b_->memory[99], 0);
  EXPECT_EQ(b_->memory[164], 0);

  doca_buf* const here = a_->destination(1000, 100);
  ASSERT_EQ(a_->read(of_a_, a_->far(130, 30, true), here), DOCA_SUCCESS);
  ASSERT_TRUE(a_->ends(3));
  EXPECT_EQ(a_->ended[2].status, DOCA_SUCCESS);
  EXPECT_EQ(Peer::data_length(here), 30U);
  EXPECT_TRUE(all_are(a_->memory.data() + 1000, 10, 0x11));
  EXPECT_TRUE(all_are(a_->memory.data() + 1010, 20, 0x22));
  EXPECT_TRUE(b_->ended.empty());
}

TEST_F(DocaRdmaTest, MessagesAndImmediatesTakeReceivesInOrder) {
  make_connected();
  doca_buf* const first = b_->destination(0, 100);
  doca_buf* const second = b_->destination(200, 100);
  ASSERT_EQ(b_->receive(first, 1), DOCA_SUCCESS);
  ASSERT_EQ(b_->receive(second, 2), DOCA_SUCCESS);
  ASSERT_EQ(b_->receive(nullptr, 3), DOCA_SUCCESS);
  ASSERT_EQ(b_->receive(nullptr, 4), DOCA_SUCCESS);
  ASSERT_EQ(a_->send(of_a_, a_->source(0, 30, 0x33)), DOCA_SUCCESS);
  ASSERT_EQ(a_->send_imm(of_a_, a_->source(64, 50, 0x44), kImmediate), DOCA_SUCCESS);
  ASSERT_EQ(a_->write_imm(of_a_, a_->source(128, 20, 0x55), a_->far(500, 20, false), kImmediate),
            DOCA_SUCCESS);
  ASSERT_EQ(a_->send(of_a_, nullptr), DOCA_SUCCESS);
  ASSERT_TRUE(a_->ends(4, b_.get()));
  ASSERT_TRUE(b_->ends(4, a_.get()));
  for (const EndedTask& end : a_->ended) EXPECT_EQ(end.status, DOCA_SUCCESS);
  const std::vector<std::uint32_t> lengths{30, 50, 20, 0};
  const std::vector<doca_rdma_opcode> opcodes{
      DOCA_RDMA_OPCODE_RECV_SEND, DOCA_RDMA_OPCODE_RECV_SEND_WITH_IMM,
      DOCA_RDMA_OPCODE_RECV_WRITE_WITH_IMM, DOCA_RDMA_OPCODE_RECV_SEND};
  for (std::size_t i = 0; i < 4; ++i) {
    const EndedTask& end = b_->ended[i];
    EXPECT_EQ(end.user_data, i + 1);
    EXPECT_EQ(end.status, DOCA_SUCCESS);
    EXPECT_EQ(end.length, lengths[i]) << i;
    EXPECT_EQ(end.opcode, opcodes[i]) << i;
    EXPECT_EQ(end.immediate, i == 1 || i == 2 ? kImmediate : 0) << i;
    EXPECT_EQ(end.connection, of_b_);
  }
  EXPECT_EQ(Peer::data_length(first), 30U);
  EXPECT_EQ(Peer::data_length(second), 50U);
  EXPECT_TRUE(all_are(b_->memory.data(), 30, 0x33));
  EXPECT_TRUE(all_are(b_->memory.data() + 200, 50, 0x44));
  EXPECT_TRUE(all_are(b_->memory.data() + 500, 20, 0x55));
}

TEST_F(DocaRdmaTest, ReceivesOfAContextServeAllItsConnections) {
  make();
  Peer c(dev_);
  ASSERT_EQ(doca_rdma_set_max_num_connections(b_->rdma, 2), DOCA_SUCCESS);
  start_and_connect();
  ASSERT_EQ(doca_ctx_start(c.ctx), DOCA_SUCCESS);
  doca_rdma_connection* of_c = nullptr;
  doca_rdma_connection* second_of_b = nullptr;
  connect(c, of_c, *b_, second_of_b);
  doca_rdma_connection* third = nullptr;
  const void* details = nullptr;
  std::size_t size = 0;
  EXPECT_EQ(doca_rdma_export(b_->rdma, &details, &size, &third), DOCA_ERROR_FULL);

  ASSERT_EQ(b_->receive(b_->destination(0, 64)), DOCA_SUCCESS);
  ASSERT_EQ(b_->receive(b_->destination(64, 64)), DOCA_SUCCESS);
  ASSERT_EQ(c.send(of_c, c.source(0, 16, 0x66)), DOCA_SUCCESS);
  ASSERT_TRUE(b_->ends(1, &c));
  ASSERT_EQ(a_->send(of_a_, a_->source(0, 16, 0x77)), DOCA_SUCCESS);
  ASSERT_TRUE(b_->ends(2, a_.get()));
  EXPECT_EQ(b_->ended[0].connection, second_of_b);
  EXPECT_EQ(b_->ended[1].connection, of_b_);
  EXPECT_TRUE(all_are(b_->memory.data(), 16, 0x66));
  EXPECT_TRUE(all_are(b_->memory.data() + 64, 16, 0x77));
  ASSERT_TRUE(c.ends(1));
  ASSERT_TRUE(a_->ends(1));
}

TEST_F(DocaRdmaTest, AStopFlushesTasksAndReportsThemInATurn) {
  make_connected();
  ASSERT_EQ(a_->receive(a_->destination(0, 64), 7), DOCA_SUCCESS);
  ASSERT_EQ(a_->send_unflushed(of_a_, a_->source(64, 16, 1)), DOCA_SUCCESS);
  std::size_t in_flight = 0;
  EXPECT_EQ(doca_ctx_get_num_inflight_tasks(a_->ctx, &in_flight), DOCA_SUCCESS);
  EXPECT_EQ(in_flight, 2U);
  EXPECT_EQ(doca_ctx_stop(a_->ctx), DOCA_ERROR_IN_PROGRESS);
  EXPECT_TRUE(a_->ended.empty());
  ASSERT_TRUE(a_->until([&] { return a_->state() == DOCA_CTX_STATE_IDLE; }));
  ASSERT_EQ(a_->ended.size(), 2U);
  for (const EndedTask& end : a_->ended) EXPECT_EQ(end.status, DOCA_ERROR_SHUTDOWN);
  EXPECT_EQ(a_->states,
            (std::vector{DOCA_CTX_STATE_RUNNING, DOCA_CTX_STATE_STOPPING, DOCA_CTX_STATE_IDLE}));
  // It starts again, and its former connection is gone.
  ASSERT_EQ(doca_ctx_start(a_->ctx), DOCA_SUCCESS);
  const Bytes description = a_->make_connection(of_a_);
  EXPECT_FALSE(description.empty());
}

TEST_F(DocaRdmaTest, AFlushStartsWhatWasSubmittedWithoutOne) {
  make_connected();
  ASSERT_EQ(b_->receive(b_->destination(0, 64)), DOCA_SUCCESS);
  ASSERT_EQ(a_->send_unflushed(of_a_, a_->source(64, 16, 3)), DOCA_SUCCESS);
  doca_ctx_flush_tasks(a_->ctx);
  ASSERT_TRUE(a_->ends(1, b_.get()));
  EXPECT_EQ(a_->ended[0].status, DOCA_SUCCESS);
}

TEST_F(DocaRdmaTest, AStoppedContextWithoutTasksIsIdleAfterItsConnections) {
  make();
  ASSERT_EQ(doca_ctx_start(a_->ctx), DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_stop(a_->ctx), DOCA_SUCCESS);
  EXPECT_EQ(a_->state(), DOCA_CTX_STATE_IDLE);
}

TEST_F(DocaRdmaTest, ATaskThatFailsStopsItsContext) {
  make_connected();
  ASSERT_EQ(doca_mmap_stop(b_->mmap), DOCA_SUCCESS);  // the peer's card refuses the key
  ASSERT_EQ(a_->write(of_a_, a_->source(0, 16, 1), a_->far(0, 16, false)), DOCA_SUCCESS);
  ASSERT_TRUE(a_->ends(1));
  EXPECT_EQ(a_->ended[0].status, DOCA_ERROR_IO_FAILED);
  ASSERT_TRUE(a_->until([&] { return a_->state() == DOCA_CTX_STATE_IDLE; }));
  EXPECT_EQ(b_->state(), DOCA_CTX_STATE_RUNNING);
}

TEST_F(DocaRdmaTest, RefusesBuffersThatATaskCannotHave) {
  make();
  Peer reader(dev_, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ);
  start_and_connect();
  Peer& a = *a_;
  doca_buf* const there = a.far(0, 16, false);
  EXPECT_EQ(a.write(of_a_, a.source(0, 17, 1), there), DOCA_ERROR_INVALID_VALUE);  // too long
  EXPECT_EQ(a.write(of_a_, a.source(0, 8, 1), a.destination(64, 16)), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(a.write(of_a_, a.far(0, 16, true), there), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(a.read(of_a_, a.source(0, 8, 1), a.destination(64, 16)), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(a.read(of_a_, a.far(0, 16, true), a.destination(64, 15)), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(a.read(of_a_, a.far(0, 16, true), there), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(a.send(of_a_, a.far(0, 16, true)), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(a.receive(there), DOCA_ERROR_INVALID_VALUE);
  // A right that the peer did not give.
  ASSERT_EQ(b_->import(reader.exported_memory()), DOCA_SUCCESS);
  EXPECT_EQ(b_->write(of_b_, b_->source(0, 8, 1), b_->far(0, 8, false)), DOCA_ERROR_NOT_PERMITTED);
  EXPECT_TRUE(a.ended.empty());
  EXPECT_EQ(a.state(), DOCA_CTX_STATE_RUNNING);
}

TEST_F(DocaRdmaTest, TheQueuesHaveTheSizesThatWereSet) {
  make();
  ASSERT_EQ(doca_rdma_set_send_queue_size(a_->rdma, 2), DOCA_SUCCESS);
  ASSERT_EQ(doca_rdma_set_recv_queue_size(a_->rdma, 3), DOCA_SUCCESS);
  start_and_connect();
  for (int i = 0; i < 2; ++i) ASSERT_EQ(a_->send(of_a_, a_->source(0, 8, 1)), DOCA_SUCCESS);
  EXPECT_EQ(a_->send(of_a_, a_->source(0, 8, 1)), DOCA_ERROR_FULL);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(a_->receive(nullptr), DOCA_SUCCESS);
  EXPECT_EQ(a_->receive(nullptr), DOCA_ERROR_FULL);
}

TEST_F(DocaRdmaTest, RefusesCallsThatTheStateDoesNotAllow) {
  make();
  Peer& a = *a_;
  const void* details = nullptr;
  std::size_t size = 0;
  EXPECT_EQ(doca_rdma_export(a.rdma, &details, &size, &of_a_), DOCA_ERROR_BAD_STATE);
  doca_rdma_task_receive* receive = nullptr;
  EXPECT_EQ(doca_rdma_task_receive_allocate_init(a.rdma, nullptr, {}, &receive),
            DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_rdma_set_transport_type(a.rdma, DOCA_RDMA_TRANSPORT_TYPE_RC), DOCA_SUCCESS);
  EXPECT_EQ(doca_rdma_set_transport_type(a.rdma, DOCA_RDMA_TRANSPORT_TYPE_DC),
            DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_rdma_set_permissions(a.rdma, DOCA_ACCESS_FLAG_PCI_READ_ONLY),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_set_gid_index(a.rdma, 256), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_set_grh_enabled(a.rdma, 1), DOCA_SUCCESS);
  EXPECT_EQ(doca_rdma_set_send_queue_size(a.rdma, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_set_recv_queue_size(a.rdma, 32769), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_set_max_num_connections(a.rdma, 0), DOCA_ERROR_INVALID_VALUE);
  start_and_connect();
  EXPECT_EQ(doca_rdma_set_permissions(a.rdma, 0), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_rdma_set_gid_index(a.rdma, 0), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_rdma_set_grh_enabled(a.rdma, 0), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_rdma_set_send_queue_size(a.rdma, 8), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_rdma_set_recv_queue_size(a.rdma, 8), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_rdma_set_max_num_connections(a.rdma, 8), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_rdma_set_transport_type(a.rdma, DOCA_RDMA_TRANSPORT_TYPE_RC),
            DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_rdma_destroy(a.rdma), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_dev_close(dev_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(a.connect(Bytes(1), of_b_), DOCA_ERROR_INVALID_VALUE);  // of another context
  EXPECT_EQ(a.connect(Bytes(1), of_a_), DOCA_ERROR_BAD_STATE);      // it is connected
  doca_rdma_task_send* send = nullptr;
  EXPECT_EQ(doca_rdma_task_send_allocate_init(a.rdma, of_b_, nullptr, {}, &send),
            DOCA_ERROR_INVALID_VALUE);
  for (std::uint32_t i = 0; i < Peer::kTasks; ++i) {
    ASSERT_EQ(a.receive(nullptr), DOCA_SUCCESS);
  }
  EXPECT_EQ(doca_rdma_task_receive_allocate_init(a.rdma, nullptr, {}, &receive),
            DOCA_ERROR_NO_MEMORY);
}

TEST_F(DocaRdmaTest, ATaskIsSubmittedOnlyToAConnectedConnection) {
  make();
  ASSERT_EQ(doca_ctx_start(a_->ctx), DOCA_SUCCESS);
  static_cast<void>(a_->make_connection(of_a_));
  EXPECT_EQ(a_->send(of_a_, a_->source(0, 8, 1)), DOCA_ERROR_NOT_CONNECTED);
  // A connection has the data of the program.
  EXPECT_EQ(doca_rdma_connection_set_user_data(of_a_, {.u64 = 77}), DOCA_SUCCESS);
  doca_data data{};
  EXPECT_EQ(doca_rdma_connection_get_user_data(of_a_, &data), DOCA_SUCCESS);
  EXPECT_EQ(data.u64, 77U);
}

TEST_F(DocaRdmaTest, RefusesDescriptionsThatAreDamagedOrCutOff) {
  make();
  ASSERT_EQ(doca_ctx_start(a_->ctx), DOCA_SUCCESS);
  ASSERT_EQ(doca_ctx_start(b_->ctx), DOCA_SUCCESS);
  static_cast<void>(a_->make_connection(of_a_));
  const Bytes good = b_->make_connection(of_b_);
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_EQ(
        a_->connect({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)}, of_a_),
        DOCA_ERROR_INVALID_VALUE)
        << length;
  }
  for (std::size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] ^= std::byte{0x10};
    EXPECT_NE(a_->connect(bad, of_a_), DOCA_SUCCESS) << i;
  }
  EXPECT_EQ(a_->connect(good, of_a_), DOCA_SUCCESS);
}

TEST_F(DocaRdmaTest, AnExportIsTheSameUntilTheStop) {
  make();
  const void* first = nullptr;
  const void* second = nullptr;
  std::size_t size = 0;
  ASSERT_EQ(doca_mmap_export_rdma(a_->mmap, dev_, &first, &size), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_export_rdma(a_->mmap, dev_, &second, &size), DOCA_SUCCESS);
  EXPECT_EQ(first, second);
  const Peer closed(dev_, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
  EXPECT_EQ(doca_mmap_export_rdma(closed.mmap, dev_, &first, &size), DOCA_ERROR_NOT_PERMITTED);
  ASSERT_EQ(b_->import(a_->exported_memory()), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_export_rdma(b_->remote, dev_, &first, &size), DOCA_ERROR_NOT_PERMITTED);
  ASSERT_EQ(doca_mmap_stop(a_->mmap), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_export_rdma(a_->mmap, dev_, &first, &size), DOCA_ERROR_NOT_PERMITTED);
}

/// Ends of tasks that are submitted again with other arguments.
struct Again {
  doca_buf* source = nullptr;
  doca_buf* destination = nullptr;
  int left = 1;
  doca_error_t submitted = DOCA_ERROR_UNKNOWN;
};

TEST_F(DocaRdmaTest, ATaskIsSubmittedAgainWithOtherBuffers) {
  make();
  const auto again = [](doca_rdma_task_write* task, doca_data user_data, doca_data) {
    auto& state = *static_cast<Again*>(user_data.ptr);
    if (state.left-- == 0) return doca_task_free(doca_rdma_task_write_as_task(task));
    doca_rdma_task_write_set_src_buf(task, state.source);
    doca_rdma_task_write_set_dst_buf(task, state.destination);
    state.submitted = doca_task_submit(doca_rdma_task_write_as_task(task));
    doca_rdma_task_write_set_dst_buf(task, nullptr);  // is refused: it is in flight
    EXPECT_EQ(doca_rdma_task_write_get_src_buf(task), state.source);
    EXPECT_EQ(doca_rdma_task_write_get_dst_buf(task), state.destination);
  };
  ASSERT_EQ(doca_rdma_task_write_set_conf(a_->rdma, again, again, 1), DOCA_SUCCESS);
  start_and_connect();
  Again state{a_->source(100, 8, 9), a_->far(100, 8, false)};
  doca_rdma_task_write* task = nullptr;
  ASSERT_EQ(doca_rdma_task_write_allocate_init(a_->rdma, of_a_, a_->source(0, 8, 8),
                                               a_->far(0, 8, false), {.ptr = &state}, &task),
            DOCA_SUCCESS);
  ASSERT_EQ(doca_task_submit(doca_rdma_task_write_as_task(task)), DOCA_SUCCESS);
  ASSERT_TRUE(a_->until([&] { return state.left < 0; }));
  EXPECT_EQ(state.submitted, DOCA_SUCCESS);
  EXPECT_TRUE(all_are(b_->memory.data(), 8, 8));
  EXPECT_TRUE(all_are(b_->memory.data() + 100, 8, 9));
}

/// The end of a task of an event.
struct EventEnd {
  std::vector<doca_error_t> all;
  static void get(doca_rdma_task_remote_net_sync_event_get* task, doca_data data, doca_data) {
    took(doca_rdma_task_remote_net_sync_event_get_as_task(task), data);
  }
  static void set(doca_rdma_task_remote_net_sync_event_notify_set* task, doca_data data,
                  doca_data) {
    took(doca_rdma_task_remote_net_sync_event_notify_set_as_task(task), data);
  }

 private:
  static void took(doca_task* task, doca_data data) {
    static_cast<EventEnd*>(data.ptr)->all.push_back(doca_task_get_status(task));
    doca_task_free(task);
  }
};

TEST_F(DocaRdmaTest, GetsAndSetsAnEventOfThePeer) {
  make();
  EventEnd ends;
  ASSERT_EQ(
      doca_rdma_task_remote_net_sync_event_get_set_conf(a_->rdma, EventEnd::get, EventEnd::get, 1),
      DOCA_SUCCESS);
  ASSERT_EQ(doca_rdma_task_remote_net_sync_event_notify_set_set_conf(a_->rdma, EventEnd::set,
                                                                     EventEnd::set, 1),
            DOCA_SUCCESS);
  start_and_connect();
  doca_sync_event* event = nullptr;
  ASSERT_EQ(doca_sync_event_create(&event), DOCA_SUCCESS);
  ASSERT_EQ(doca_sync_event_add_publisher_location_remote_net(event), DOCA_SUCCESS);
  ASSERT_EQ(doca_sync_event_add_subscriber_location_cpu(event, dev_), DOCA_SUCCESS);
  ASSERT_EQ(doca_sync_event_start(event), DOCA_SUCCESS);
  ASSERT_EQ(doca_sync_event_update_set(event, 1234567890123), DOCA_SUCCESS);
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
  ASSERT_EQ(doca_sync_event_export_to_remote_net(event, &data, &size), DOCA_SUCCESS);
  doca_sync_event_remote_net* remote = nullptr;
  ASSERT_EQ(doca_sync_event_remote_net_create_from_export(dev_, data, size, &remote), DOCA_SUCCESS);

  doca_rdma_task_remote_net_sync_event_get* get = nullptr;
  doca_buf* const into = a_->destination(0, 8);
  ASSERT_EQ(doca_rdma_task_remote_net_sync_event_get_allocate_init(
                a_->rdma, of_a_, remote, a_->destination(8, 7), {.ptr = &ends}, &get),
            DOCA_SUCCESS);
  doca_task* const getting = doca_rdma_task_remote_net_sync_event_get_as_task(get);
  EXPECT_EQ(doca_task_submit(getting), DOCA_ERROR_INVALID_VALUE);  // 7 bytes
  doca_rdma_task_remote_net_sync_event_get_set_dst_buf(get, into);
  EXPECT_EQ(doca_rdma_task_remote_net_sync_event_get_get_dst_buf(get), into);
  ASSERT_EQ(doca_task_submit(getting), DOCA_SUCCESS);
  ASSERT_TRUE(a_->until([&] { return ends.all.size() == 1; }));
  EXPECT_EQ(Peer::data_length(into), 8U);
  std::uint64_t value = 0;
  std::memcpy(&value, a_->memory.data(), sizeof value);
  EXPECT_EQ(value, 1234567890123U);

  doca_rdma_task_remote_net_sync_event_notify_set* set = nullptr;
  doca_buf* const from = a_->source(64, 8, 0x01);
  ASSERT_EQ(doca_rdma_task_remote_net_sync_event_notify_set_allocate_init(
                a_->rdma, of_a_, remote, a_->source(128, 9, 1), {.ptr = &ends}, &set),
            DOCA_SUCCESS);
  doca_task* const setting = doca_rdma_task_remote_net_sync_event_notify_set_as_task(set);
  EXPECT_EQ(doca_task_submit(setting), DOCA_ERROR_INVALID_VALUE);  // 9 bytes
  doca_rdma_task_remote_net_sync_event_notify_set_set_src_buf(set, from);
  EXPECT_EQ(doca_rdma_task_remote_net_sync_event_notify_set_get_src_buf(set), from);
  ASSERT_EQ(doca_task_submit(setting), DOCA_SUCCESS);
  ASSERT_TRUE(a_->until([&] { return ends.all.size() == 2; }));
  EXPECT_EQ(ends.all, (std::vector{DOCA_SUCCESS, DOCA_SUCCESS}));
  EXPECT_EQ(doca_sync_event_get(event, &value), DOCA_SUCCESS);
  EXPECT_EQ(value, 0x0101010101010101U);
  EXPECT_EQ(doca_sync_event_remote_net_destroy(remote), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_stop(event), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_destroy(event), DOCA_SUCCESS);
}

TEST_F(DocaRdmaTest, TasksHaveTheArgumentsThatWereSet) {
  make_connected();
  Peer& a = *a_;
  doca_buf* const near = a.source(0, 8, 1);
  doca_buf* const other = a.source(8, 8, 1);
  doca_buf* const there = a.far(0, 8, false);
  doca_rdma_task_write_imm* write = nullptr;
  ASSERT_EQ(doca_rdma_task_write_imm_allocate_init(a.rdma, of_a_, near, there, 1, {}, &write),
            DOCA_SUCCESS);
  doca_rdma_task_write_imm_set_src_buf(write, other);
  doca_rdma_task_write_imm_set_dst_buf(write, near);
  doca_rdma_task_write_imm_set_immediate_data(write, 2);
  EXPECT_EQ(doca_rdma_task_write_imm_get_src_buf(write), other);
  EXPECT_EQ(doca_rdma_task_write_imm_get_dst_buf(write), near);
  EXPECT_EQ(doca_rdma_task_write_imm_get_immediate_data(write), 2U);
  doca_task_free(doca_rdma_task_write_imm_as_task(write));
  doca_rdma_task_send_imm* send_imm = nullptr;
  ASSERT_EQ(doca_rdma_task_send_imm_allocate_init(a.rdma, of_a_, near, 1, {}, &send_imm),
            DOCA_SUCCESS);
  doca_rdma_task_send_imm_set_src_buf(send_imm, other);
  doca_rdma_task_send_imm_set_immediate_data(send_imm, 2);
  EXPECT_EQ(doca_rdma_task_send_imm_get_src_buf(send_imm), other);
  EXPECT_EQ(doca_rdma_task_send_imm_get_immediate_data(send_imm), 2U);
  doca_task_free(doca_rdma_task_send_imm_as_task(send_imm));
  doca_rdma_task_send* send = nullptr;
  ASSERT_EQ(doca_rdma_task_send_allocate_init(a.rdma, of_a_, near, {}, &send), DOCA_SUCCESS);
  doca_rdma_task_send_set_src_buf(send, other);
  EXPECT_EQ(doca_rdma_task_send_get_src_buf(send), other);
  doca_task_free(doca_rdma_task_send_as_task(send));
  EXPECT_EQ(doca_rdma_task_send_get_src_buf(send), other);  // programs read it then too
  doca_rdma_task_read* read = nullptr;
  ASSERT_EQ(doca_rdma_task_read_allocate_init(a.rdma, of_a_, there, near, {}, &read), DOCA_SUCCESS);
  doca_rdma_task_read_set_src_buf(read, near);
  doca_rdma_task_read_set_dst_buf(read, other);
  EXPECT_EQ(doca_rdma_task_read_get_src_buf(read), near);
  EXPECT_EQ(doca_rdma_task_read_get_dst_buf(read), other);
  doca_task_free(doca_rdma_task_read_as_task(read));
  doca_rdma_task_receive* receive = nullptr;
  ASSERT_EQ(doca_rdma_task_receive_allocate_init(a.rdma, near, {}, &receive), DOCA_SUCCESS);
  doca_rdma_task_receive_set_dst_buf(receive, other);
  EXPECT_EQ(doca_rdma_task_receive_get_dst_buf(receive), other);
  doca_task_free(doca_rdma_task_receive_as_task(receive));
}

}  // namespace
}  // namespace offload::doca
