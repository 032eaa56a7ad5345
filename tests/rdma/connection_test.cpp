#include "rdma/connection.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <memory>

#include "memory/inventory.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/rdma/outcomes.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using core::Status;
using progress::Context;
using progress::TaskPool;
using support::thrown_by;
using test::fake;
using test::FakeQueuePair;

ConnectionOptions small_queues() {
  ConnectionOptions options;
  options.queues.send_depth = 4;
  options.queues.receive_depth = 4;
  options.queues.gather = 2;
  return options;
}

ConnectionDescriptor a_peer() {
  ConnectionDescriptor peer;
  peer.gid = parse_gid("10.0.0.2");
  peer.queue_pair = 77;
  peer.first_packet = 5;
  peer.reads_in = 4;
  return peer;
}

/// One connection, on a device that does what the test says.
class ConnectionTest : public FakeDeviceTest {
 protected:
  explicit ConnectionTest(const ConnectionOptions& options = small_queues())
      : device_("fake0"),
        domain_(device_),
        registrar_(domain_),
        loop_(device_, engine_, 8),
        connection_({device_, domain_, registrar_, loop_}, options),
        region_({"region", memory::kLocalAccess}, {memory::allocate_range(64 * 1024)}),
        buffers_(16) {
    region_.add_registrar(registrar_);
    region_.start();
    buffers_.start();
    connection_.connect(engine_);
    sends_.emplace(connection_, 8, outcomes_.callbacks<SendTask>());
    receives_.emplace(connection_, 8, outcomes_.callbacks<ReceiveTask>());
    writes_.emplace(connection_, 8, outcomes_.callbacks<WriteTask>());
    reads_.emplace(connection_, 8, outcomes_.callbacks<ReadTask>());
    swaps_.emplace(connection_, 8, outcomes_.callbacks<CompareAndSwapTask>());
    adds_.emplace(connection_, 8, outcomes_.callbacks<FetchAndAddTask>());
  }
  ~ConnectionTest() override {
    if (connection_.state() != Context::State::idle) connection_.stop();
    turn();
    EXPECT_EQ(connection_.state(), Context::State::idle);
  }

  void start_connected() {
    connection_.start();
    connection_.connect_to(a_peer());
  }
  FakeQueuePair& queue() { return *fake().queue_pairs.at(0); }
  void turn() {
    for (int i = 0; i < 40; ++i) engine_.progress();
  }
  memory::BufferRef room(std::size_t offset, std::size_t length) {
    return buffers_.take(region_, {region_.ranges()[0].address + offset, length}).buffer;
  }
  memory::BufferRef data(std::size_t offset, std::size_t length) {
    return buffers_.take_by_data(region_, {region_.ranges()[0].address + offset, length}).buffer;
  }
  Status send(bool flush = true) {
    SendTask& task = *sends_->allocate();
    return flush ? connection_.submit(task) : connection_.submit_unflushed(task);
  }
  Status receive() { return connection_.submit(*receives_->allocate()); }
  static RemotePlace place(std::uint64_t length, std::uint64_t offset = 0) {
    return {{0x10000, length, 9}, offset};
  }

  DeviceContext device_;
  ProtectionDomain domain_;
  Registrar registrar_;
  progress::Engine engine_;
  CompletionLoop loop_;
  Connection connection_;
  memory::MemoryRegion region_;
  memory::BufferInventory buffers_;
  Outcomes outcomes_;
  std::optional<TaskPool<SendTask>> sends_;
  std::optional<TaskPool<ReceiveTask>> receives_;
  std::optional<TaskPool<WriteTask>> writes_;
  std::optional<TaskPool<ReadTask>> reads_;
  std::optional<TaskPool<CompareAndSwapTask>> swaps_;
  std::optional<TaskPool<FetchAndAddTask>> adds_;
};

TEST_F(ConnectionTest, OptionsThatNameNoConnectionAreRefused) {
  const auto refused = [&](auto change) {
    ConnectionOptions options;
    change(options.queues);
    const Endpoint endpoint{device_, domain_, registrar_, loop_};
    EXPECT_EQ(thrown_by([&] { const Connection connection(endpoint, options); }).code(),
              ErrorCode::invalid_value);
  };
  refused([](QueuePairOptions& queues) { queues.transport = Transport::ud; });
  refused([](QueuePairOptions& queues) { queues.send_depth = 0; });
  refused([](QueuePairOptions& queues) { queues.receive_depth = 0; });
  refused([](QueuePairOptions& queues) { queues.gather = 0; });
}

TEST_F(ConnectionTest, IsDescribedAndConnectedWhileItRuns) {
  EXPECT_EQ(thrown_by([&] { static_cast<void>(connection_.descriptor()); }).code(),
            ErrorCode::bad_state);
  EXPECT_EQ(thrown_by([&] { connection_.connect_to(a_peer()); }).code(), ErrorCode::bad_state);
  connection_.start();
  const auto descriptor = connection_.descriptor();
  EXPECT_EQ(descriptor.queue_pair, 100U);
  EXPECT_EQ(to_string(descriptor.gid), "10.0.0.1");
  EXPECT_EQ(descriptor.reads_in, 16);
  EXPECT_FALSE(connection_.connected());
  connection_.connect_to(a_peer());
  EXPECT_TRUE(connection_.connected());
  EXPECT_EQ(queue().attributes.max_rd_atomic, 4);  // what the peer takes
  EXPECT_EQ(thrown_by([&] { connection_.connect_to(a_peer()); }).code(), ErrorCode::bad_state);
  connection_.stop();
  EXPECT_EQ(fake().open["ibv_create_qp"], 0);
}

TEST_F(ConnectionTest, APeerOfAnotherKindIsRefused) {
  connection_.start();
  auto peer = a_peer();
  peer.transport = Transport::uc;
  EXPECT_EQ(thrown_by([&] { connection_.connect_to(peer); }).code(), ErrorCode::invalid_value);
  peer = a_peer();
  peer.ethernet = false;
  EXPECT_EQ(thrown_by([&] { connection_.connect_to(peer); }).code(), ErrorCode::invalid_value);
}

TEST_F(ConnectionTest, AStartThatFailsLeavesNothing) {
  fake().port.state = IBV_PORT_DOWN;
  EXPECT_EQ(thrown_by([&] { connection_.start(); }).code(), ErrorCode::not_connected);
  fake().port.state = IBV_PORT_ACTIVE;
  for (const char* call :
       {"ibv_query_port", "ibv_query_gid_table", "ibv_create_qp", "ibv_modify_qp"}) {
    fake().fail_call = call;
    EXPECT_EQ(thrown_by([&] { connection_.start(); }).code(), ErrorCode::io_failed) << call;
    EXPECT_EQ(fake().open["ibv_create_qp"], 0) << call;
    EXPECT_EQ(connection_.state(), Context::State::idle);
  }
  fake().fail_call.clear();
  connection_.start();
}

TEST_F(ConnectionTest, TheCompletionQueueTakesNoMoreThanItHasRoomFor) {
  connection_.start();
  Connection other({device_, domain_, registrar_, loop_}, small_queues(), "other");
  other.connect(engine_);
  EXPECT_EQ(thrown_by([&] { other.start(); }).code(), ErrorCode::full);
  connection_.stop();
  other.start();
  other.stop();
}

TEST_F(ConnectionTest, SendsWaitForThePeerAndReceivesDoNot) {
  connection_.start();
  EXPECT_EQ(send(), ErrorCode::not_connected);
  EXPECT_EQ(receive(), Status());
  connection_.connect_to(a_peer());
  EXPECT_EQ(send(), Status());
}

TEST_F(ConnectionTest, ABatchIsOneDoorbellAndOneCompletion) {
  start_connected();
  const int doorbells = fake().doorbells;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(send(false), Status());
  EXPECT_EQ(fake().doorbells, doorbells);
  EXPECT_EQ(connection_.flush(), Status());
  EXPECT_EQ(fake().doorbells, doorbells + 1);
  ASSERT_EQ(queue().sends.size(), 3U);
  for (int i = 0; i < 3; ++i) fake().finish_send(queue());
  EXPECT_EQ(fake().completions.size(), 1U);
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"ok", "ok", "ok"}));
}

TEST_F(ConnectionTest, AnErrorInABatchIsThatOfItsTaskAndWhatFollows) {
  start_connected();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(send(false), Status());
  EXPECT_EQ(connection_.flush(), Status());
  fake().finish_send(queue());
  fake().finish_send(queue(), IBV_WC_REM_ACCESS_ERR);
  fake().finish_send(queue(), IBV_WC_WR_FLUSH_ERR);
  fake().finish_send(queue(), IBV_WC_WR_FLUSH_ERR);
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"ok", "io_failed", "io_failed", "io_failed"}));
  const auto tasks = sends_->tasks();
  const auto failed = std::count_if(tasks.begin(), tasks.end(), [](const SendTask& task) {
    return task.cause() ==
               core::Cause{core::Cause::Domain::work_completion, IBV_WC_REM_ACCESS_ERR, 0x88} &&
           task.explain().find("its key or range is wrong") != std::string::npos;
  });
  EXPECT_EQ(failed, 1);
  EXPECT_FALSE(connection_.connected());
  EXPECT_EQ(send(), ErrorCode::not_connected);
  EXPECT_EQ(receive(), ErrorCode::not_connected);
}

TEST_F(ConnectionTest, AQueueThatIsFullSaysSoUntilOneEnds) {
  start_connected();
  for (int round = 0; round < 10; ++round) {
    outcomes_.all.clear();
    std::vector<SendTask*> out;
    for (int i = 0; i < 4; ++i) {
      out.push_back(sends_->allocate());
      EXPECT_EQ(connection_.submit(*out.back()), Status());
    }
    SendTask& refused = *sends_->allocate();
    EXPECT_EQ(connection_.submit(refused), ErrorCode::full);
    for (int i = 0; i < 4; ++i) fake().finish_send(queue());
    turn();
    EXPECT_EQ(outcomes_.all.size(), 4U);
    EXPECT_EQ(connection_.submit(refused), Status());
    fake().finish_send(queue());
    turn();
    for (SendTask* task : out) EXPECT_EQ(sends_->release(*task), Status());
    EXPECT_EQ(sends_->release(refused), Status());
  }
}

TEST_F(ConnectionTest, AReceiveTellsWhatCame) {
  start_connected();
  auto first = room(0, 10);
  auto second = room(100, 50);
  ASSERT_TRUE(first->append_chain(second));
  ReceiveTask& task = *receives_->allocate();
  task.destination = first.get();
  EXPECT_EQ(connection_.submit(task), Status());
  ASSERT_EQ(queue().receives.at(0).pieces.size(), 2U);
  EXPECT_EQ(queue().receives.at(0).pieces[1].length, 50U);
  ibv_wc told{};
  told.byte_len = 25;
  told.wc_flags = IBV_WC_WITH_IMM;
  told.imm_data = htonl(0x12345678);
  fake().finish_receive(queue(), told);
  turn();
  EXPECT_EQ(outcomes_.all, Lines{"ok"});
  EXPECT_EQ(task.length(), 25U);
  EXPECT_EQ(task.immediate(), 0x12345678U);
  EXPECT_FALSE(task.written_elsewhere());
  EXPECT_EQ(first->data().size(), 10U);
  EXPECT_EQ(first->next()->data().size(), 15U);

  first->reset();
  EXPECT_EQ(connection_.submit(task), Status());
  told = {};
  told.byte_len = 4096;
  told.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  fake().finish_receive(queue(), told);
  turn();
  EXPECT_TRUE(task.written_elsewhere());
  EXPECT_EQ(task.length(), 4096U);
  EXPECT_EQ(task.immediate(), std::nullopt);
  EXPECT_TRUE(first->data().empty());
}

TEST_F(ConnectionTest, WorkRequestsNameWhatTheTasksSay) {
  start_connected();
  auto source = data(16, 100);
  auto target = room(256, 64);
  WriteTask& write = *writes_->allocate();
  write.source = source.get();
  write.to = place(200, 100);
  write.immediate = 7;
  EXPECT_EQ(connection_.submit(write), Status());
  ReadTask& read = *reads_->allocate();
  read.destination = target.get();
  read.from = place(40, 8);
  read.length = 32;
  EXPECT_EQ(connection_.submit(read), Status());
  FetchAndAddTask& add = *adds_->allocate();
  add.destination = target.get();
  add.at = place(16, 8);
  add.add = 3;
  EXPECT_EQ(connection_.submit(add), Status());
  ASSERT_EQ(queue().sends.size(), 3U);
  const auto& written = queue().sends[0];
  EXPECT_EQ(written.send.opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
  EXPECT_EQ(written.send.imm_data, htonl(7));
  EXPECT_EQ(written.send.wr.rdma.remote_addr, 0x10064U);
  EXPECT_EQ(written.send.wr.rdma.rkey, 9U);
  ASSERT_EQ(written.pieces.size(), 1U);
  EXPECT_EQ(written.pieces[0].addr, reinterpret_cast<std::uint64_t>(source->data().data()));
  EXPECT_EQ(written.pieces[0].lkey, 11U);
  EXPECT_EQ(queue().sends[1].pieces.at(0).length, 32U);
  EXPECT_EQ(queue().sends[2].send.opcode, IBV_WR_ATOMIC_FETCH_AND_ADD);
  EXPECT_EQ(queue().sends[2].send.wr.atomic.compare_add, 3U);
  EXPECT_EQ(queue().sends[2].send.wr.atomic.remote_addr, 0x10008U);
  for (int i = 0; i < 3; ++i) fake().finish_send(queue());
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"ok", "ok", "ok"}));
  EXPECT_EQ(target->data().size(), 40U);
}

TEST_F(ConnectionTest, WhatDoesNotFitIsRefused) {
  start_connected();
  auto source = data(0, 100);
  auto small = room(256, 7);
  WriteTask& write = *writes_->allocate();
  write.source = source.get();
  for (const RemotePlace& to : {place(99), place(100, 1), place(100, 101), place(~0ULL, ~0ULL)}) {
    write.to = to;
    EXPECT_EQ(connection_.submit(write), ErrorCode::invalid_value);
  }
  ReadTask& read = *reads_->allocate();
  read.destination = small.get();
  read.from = place(100);
  read.length = 8;
  EXPECT_EQ(connection_.submit(read), ErrorCode::invalid_value);
  read.length = ~0ULL;
  EXPECT_EQ(connection_.submit(read), ErrorCode::invalid_value);
  FetchAndAddTask& add = *adds_->allocate();
  add.destination = small.get();
  add.at = place(8);
  EXPECT_EQ(connection_.submit(add), ErrorCode::invalid_value);
  auto enough = room(512, 8);
  add.destination = enough.get();
  add.at = place(16, 4);
  EXPECT_EQ(connection_.submit(add), ErrorCode::invalid_value);  // not aligned
  CompareAndSwapTask& swap = *swaps_->allocate();
  swap.destination = enough.get();
  swap.at = place(7);
  EXPECT_EQ(connection_.submit(swap), ErrorCode::invalid_value);
  EXPECT_EQ(connection_.in_flight(), 0U);
}

TEST_F(ConnectionTest, TooManyPiecesAndForeignMemoryAreRefused) {
  start_connected();
  auto chain = data(0, 10);
  for (std::size_t i = 1; i < 3; ++i) {
    auto more = data(i * 10, 10);
    ASSERT_TRUE(chain->append_chain(more));
  }
  SendTask& task = *sends_->allocate();
  task.source = chain.get();
  EXPECT_EQ(connection_.submit(task), ErrorCode::invalid_value);
  memory::MemoryRegion stranger({"stranger", memory::Access::local_read},
                                {memory::allocate_range(4096)});
  stranger.start();
  auto foreign = buffers_.take(stranger, {stranger.ranges()[0].address, 100}).buffer;
  ReceiveTask& receive = *receives_->allocate();
  receive.destination = foreign.get();
  EXPECT_EQ(connection_.submit(receive), ErrorCode::invalid_value);
  foreign.reset();
  stranger.stop();
  stranger.add_registrar(registrar_);
  stranger.start();
  foreign = buffers_.take(stranger, {stranger.ranges()[0].address, 100}).buffer;
  receive.destination = foreign.get();
  EXPECT_EQ(connection_.submit(receive), ErrorCode::not_permitted);
}

TEST_F(ConnectionTest, StopFlushesAndSaysShutdown) {
  start_connected();
  EXPECT_EQ(receive(), Status());
  EXPECT_EQ(send(), Status());
  EXPECT_EQ(send(false), Status());
  connection_.stop();
  EXPECT_EQ(connection_.state(), Context::State::stopping);
  turn();
  EXPECT_EQ(connection_.state(), Context::State::idle);
  EXPECT_EQ(outcomes_.all, (Lines{"shutdown", "shutdown", "shutdown"}));
  EXPECT_EQ(fake().open["ibv_create_qp"], 0);
  outcomes_.all.clear();
  start_connected();
  EXPECT_EQ(send(), Status());
  fake().finish_send(queue());
  turn();
  EXPECT_EQ(outcomes_.all, Lines{"ok"});
}

TEST_F(ConnectionTest, ACallbackMayStopIt) {
  start_connected();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(send(false), Status());
  EXPECT_EQ(connection_.flush(), Status());
  for (int i = 0; i < 4; ++i) fake().finish_send(queue());
  outcomes_.to_stop = &connection_;
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"ok", "ok", "ok", "ok"}));
  EXPECT_EQ(connection_.state(), Context::State::idle);
}

TEST_F(ConnectionTest, APostThatFailsBreaksItAndLosesNoTask) {
  start_connected();
  fake().fail_at = static_cast<int>(fake().calls.size()) + 1;  // the second of the batch
  for (int i = 0; i < 3; ++i) EXPECT_EQ(send(false), Status());
  EXPECT_EQ(connection_.flush(), Status());
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"driver", "driver", "driver"}));
  EXPECT_EQ(connection_.queue_pair(), nullptr);
  EXPECT_EQ(send(), ErrorCode::not_connected);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(connection_.descriptor()); }).code(),
            ErrorCode::bad_state);
  connection_.stop();
  start_connected();
  EXPECT_EQ(send(), Status());
}

TEST_F(ConnectionTest, ACompletionQueueThatIsLostBreaksIt) {
  start_connected();
  EXPECT_EQ(send(), Status());
  EXPECT_EQ(receive(), Status());
  fake().fail_call = "poll_cq";
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"driver", "driver"}));
  EXPECT_FALSE(connection_.connected());
  // Nobody would be told of the end of anything.
  fake().fail_call.clear();
  connection_.stop();
  EXPECT_EQ(thrown_by([&] { connection_.start(); }).code(), ErrorCode::driver);
}

TEST_F(ConnectionTest, ADeviceThatDoesNotFailTheQueuePairIsStoppedAllTheSame) {
  const support::LogCapture log;
  start_connected();
  EXPECT_EQ(send(), Status());
  fake().fail_call = "ibv_modify_qp";
  connection_.stop();
  EXPECT_EQ(connection_.state(), Context::State::idle);
  EXPECT_EQ(outcomes_.all, Lines{"shutdown"});
  EXPECT_TRUE(log.has("does not get from RTS to ERR"));
}

TEST_F(ConnectionTest, WhatIsToldOfFormerWorkIsDropped) {
  start_connected();
  EXPECT_EQ(send(), Status());
  ibv_wc stale{};
  stale.wr_id = 3;  // of this connection, and nothing under way has that number
  fake().completions.push_back(stale);
  stale.wr_id = std::uint64_t{55} << 32;  // of a connection that is no more
  fake().completions.push_back(stale);
  turn();
  EXPECT_TRUE(outcomes_.all.empty());
  fake().finish_send(queue());
  turn();
  EXPECT_EQ(outcomes_.all, Lines{"ok"});
}

TEST_F(ConnectionTest, AnEngineSleepsUntilTheChannelRings) {
  start_connected();
  EXPECT_EQ(engine_.arm(), core::Duration::max());
  engine_.disarm();
  EXPECT_EQ(fake().arms, 0);  // nothing is under way
  EXPECT_EQ(receive(), Status());
  turn();
  EXPECT_EQ(engine_.arm(), core::Duration::max());
  EXPECT_EQ(fake().arms, 1);
  fake().finish_receive(queue(), {});
  fake().ring();
  engine_.run_once(core::Clock::now() + std::chrono::seconds(10));
  engine_.disarm();
  turn();
  EXPECT_EQ(outcomes_.all, Lines{"ok"});
  EXPECT_EQ(receive(), Status());
  turn();
  engine_.arm();
  EXPECT_EQ(fake().arms, 2);  // anew after the event
  engine_.disarm();
}

TEST_F(ConnectionTest, ReadsAndAtomicsAreForThoseWhoHaveThem) {
  connection_.start();
  auto peer = a_peer();
  peer.reads_in = 0;
  connection_.connect_to(peer);
  auto target = room(0, 8);
  ReadTask& read = *reads_->allocate();
  read.destination = target.get();
  read.from = place(8);
  read.length = 8;
  EXPECT_EQ(connection_.submit(read), ErrorCode::not_supported);
  FetchAndAddTask& add = *adds_->allocate();
  add.destination = target.get();
  add.at = place(8);
  EXPECT_EQ(connection_.submit(add), ErrorCode::not_supported);
}

}  // namespace
}  // namespace offload::rdma
