#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <doca_graph.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/doca/comch/comch_data_fixture.hpp"

namespace offload::doca {
namespace {

class ComchDirectionTest : public ComchDataTest, public testing::WithParamInterface<bool> {};

TEST_P(ComchDirectionTest, AMessageFillsAPostedBuffer) {
  start(GetParam());
  ASSERT_EQ(post(to_.empty(0, 100)), DOCA_SUCCESS);
  const std::string immediate = "now";
  send_text("hello", immediate);
  ASSERT_TRUE(
      run_until([&] { return receiver_.texts.size() == 1 && sender_.results.size() == 1; }));
  EXPECT_EQ(receiver_.texts[0], "hello");
  EXPECT_EQ(receiver_.immediates[0], "now");
  std::uint32_t producer = 0;
  EXPECT_EQ(doca_comch_producer_get_id(producer_, &producer), DOCA_SUCCESS);
  EXPECT_EQ(receiver_.producers[0], producer);
  EXPECT_EQ(receiver_.results, std::vector{DOCA_SUCCESS});
  EXPECT_EQ(sender_.results, std::vector{DOCA_SUCCESS});
}

INSTANTIATE_TEST_SUITE_P(ToServerAndToClient, ComchDirectionTest, testing::Bool());

TEST_F(ComchDataTest, AnMmapIsNotDestroyedBeforeItsConsumer) {
  start();
  ASSERT_EQ(doca_mmap_destroy(to_.mmap), DOCA_ERROR_NOT_PERMITTED);
  ASSERT_EQ(post(to_.empty(0, 100)), DOCA_SUCCESS);
  send_text("still there");
  ASSERT_TRUE(run_until([&] { return receiver_.texts.size() == 1; }));
}

TEST_F(ComchDataTest, WithoutAPostedBufferASendIsToBeTriedAgain) {
  start();
  EXPECT_EQ(send(from_.filled(0, "early")), DOCA_ERROR_AGAIN);
  // The submission itself has to find the buffer, without a turn between: DOCA's samples rely on
  // it.
  ASSERT_EQ(post(to_.empty(0, 100)), DOCA_SUCCESS);
  doca_error_t result = DOCA_ERROR_AGAIN;
  for (int i = 0; i < 100000 && result == DOCA_ERROR_AGAIN; ++i) {
    result = send(from_.filled(0, "early"));
  }
  EXPECT_EQ(result, DOCA_SUCCESS);
  EXPECT_EQ(send(from_.filled(8, "too much")), DOCA_ERROR_AGAIN) << "the buffer is taken";
  ASSERT_TRUE(run_until([&] { return receiver_.texts.size() == 1; }));
}

TEST_F(ComchDataTest, AMessageThatDoesNotFitIsRefusedAndTheBufferStays) {
  start();
  ASSERT_EQ(post(to_.empty(0, 4)), DOCA_SUCCESS);
  doca_error_t result = DOCA_ERROR_AGAIN;
  ASSERT_TRUE(run_until([&] {
    result = send(from_.filled(0, "12345"));
    return result != DOCA_ERROR_AGAIN;
  }));
  EXPECT_EQ(result, DOCA_ERROR_INVALID_VALUE);
  send_text("1234");
  ASSERT_TRUE(run_until([&] { return receiver_.texts.size() == 1; }));
  EXPECT_EQ(receiver_.texts[0], "1234");
}

TEST_F(ComchDataTest, ALongMessageArrivesWholeAndBehindWhatTheBufferHas) {
  start();
  doca_buf* const buf = to_.filled(0, "head:");
  EXPECT_EQ(doca_buf_dec_refcount(buf, nullptr), DOCA_SUCCESS);
  doca_buf* const room = to_.empty(0, kMemory);
  EXPECT_EQ(doca_buf_set_data(room, to_.bytes.data(), 5), DOCA_SUCCESS);
  ASSERT_EQ(post(room), DOCA_SUCCESS);
  std::string text(std::size_t{3} * 1024 * 1024, '\0');
  std::iota(text.begin(), text.end(), '\0');
  send_text(text);
  ASSERT_TRUE(run_until([&] { return receiver_.texts.size() == 1; }));
  EXPECT_TRUE(receiver_.texts[0] == "head:" + text);
}

TEST_F(ComchDataTest, AListOfBuffersIsOneMessage) {
  start();
  ASSERT_EQ(post(to_.empty(0, 100)), DOCA_SUCCESS);
  doca_buf* const first = from_.filled(0, "one ");
  EXPECT_EQ(doca_buf_chain_list(first, from_.filled(100, "message")), DOCA_SUCCESS);
  doca_error_t result = DOCA_ERROR_AGAIN;
  EXPECT_EQ(doca_buf_inc_refcount(first, nullptr), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] {
    if (result != DOCA_ERROR_AGAIN) return true;
    result = send(first);
    if (result == DOCA_ERROR_AGAIN) {
      EXPECT_EQ(doca_buf_inc_refcount(first, nullptr), DOCA_SUCCESS);
    }
    return result != DOCA_ERROR_AGAIN;
  }));
  EXPECT_EQ(result, DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_dec_refcount(first, nullptr), DOCA_SUCCESS);
  ASSERT_TRUE(
      run_until([&] { return receiver_.texts.size() == 1 && sender_.results.size() == 1; }));
  EXPECT_EQ(receiver_.texts[0], "one message");
}

TEST_F(ComchDataTest, ImmediateBytesAloneNeedNoBuffers) {
  start();
  ASSERT_EQ(post(nullptr), DOCA_SUCCESS);
  const std::string immediate(32, 'i');
  doca_error_t result = DOCA_ERROR_AGAIN;
  ASSERT_TRUE(run_until([&] {
    if (result == DOCA_ERROR_AGAIN) result = send(nullptr, immediate);
    return result != DOCA_ERROR_AGAIN;
  }));
  EXPECT_EQ(result, DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return receiver_.immediates.size() == 1; }));
  EXPECT_EQ(receiver_.immediates[0], immediate);
}

TEST_F(ComchDataTest, AStoppedConsumerExpiresAndCanBeStartedAgain) {
  start();
  ASSERT_EQ(post(to_.empty(0, 100)), DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_stop(receiver_.ctx), DOCA_ERROR_IN_PROGRESS);
  ASSERT_TRUE(run_until([&] { return receiver_.state() == DOCA_CTX_STATE_IDLE; }));
  EXPECT_EQ(receiver_.results, std::vector{DOCA_ERROR_SHUTDOWN});
  ASSERT_TRUE(run_until([&] { return client_side_.expired_consumers.size() == 1; }));
  EXPECT_EQ(client_side_.expired_consumers[0], id_);
  EXPECT_EQ(send(from_.filled(0, "x")), DOCA_ERROR_NOT_CONNECTED);
  ASSERT_EQ(doca_ctx_start(receiver_.ctx), DOCA_ERROR_IN_PROGRESS);
  ASSERT_TRUE(run_until([&] {
    return receiver_.state() == DOCA_CTX_STATE_RUNNING && client_side_.new_consumers.size() == 2;
  }));
  EXPECT_NE(client_side_.new_consumers[1], id_);
}

TEST_F(ComchDataTest, AProducerWithoutAConsumerIsRefused) {
  start();
  id_ = 99;
  EXPECT_EQ(send(from_.filled(0, "x")), DOCA_ERROR_NOT_CONNECTED);
}

TEST_F(ComchDataTest, TheEndOfTheConnectionEndsItsConsumers) {
  start();
  ASSERT_EQ(post(to_.empty(0, 100)), DOCA_SUCCESS);
  EXPECT_EQ(doca_comch_client_destroy(client_), DOCA_ERROR_BAD_STATE);
  stop(client_side_);
  EXPECT_EQ(doca_comch_client_destroy(client_), DOCA_ERROR_IN_USE) << "it has a producer";
  ASSERT_TRUE(run_until([&] { return receiver_.state() == DOCA_CTX_STATE_IDLE; }));
  EXPECT_EQ(receiver_.results, std::vector{DOCA_ERROR_CONNECTION_RESET});
  EXPECT_EQ(send(from_.filled(0, "x")), DOCA_ERROR_NOT_CONNECTED);
  EXPECT_EQ(doca_ctx_start(receiver_.ctx), DOCA_ERROR_NOT_CONNECTED);
}

TEST_F(ComchDataTest, WhatHasArrivedIsReceivedThoughTheProducerIsGone) {
  start();
  ASSERT_EQ(post(to_.empty(0, 10)), DOCA_SUCCESS);
  ASSERT_EQ(post(to_.empty(10, 10)), DOCA_SUCCESS);
  for (const char* text : {"one", "two"}) {  // the receiver has no turns
    doca_error_t result = DOCA_ERROR_AGAIN;
    for (int i = 0; i < 100000 && result == DOCA_ERROR_AGAIN; ++i) {
      result = send(from_.filled(0, text));
    }
    ASSERT_EQ(result, DOCA_SUCCESS);
  }
  EXPECT_EQ(doca_ctx_stop(client_side_.ctx), DOCA_ERROR_IN_PROGRESS);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (client_side_.state() != DOCA_CTX_STATE_IDLE) {  // the receiver still has no turns
    ASSERT_LT(std::chrono::steady_clock::now(), limit);
    client_side_.turn();
  }
  EXPECT_EQ(post(to_.empty(20, 10)), DOCA_SUCCESS) << "it cannot be sent";
  ASSERT_TRUE(run_until([&] { return receiver_.state() == DOCA_CTX_STATE_IDLE; }));
  EXPECT_EQ(receiver_.results,
            (std::vector{DOCA_SUCCESS, DOCA_SUCCESS, DOCA_ERROR_CONNECTION_RESET}));
  EXPECT_EQ(receiver_.texts, (std::vector<std::string>{"one", "two", ""}));
}

TEST_F(ComchDataTest, AStopWakesAProgramThatIsAboutToSleep) {
  start();
  ASSERT_EQ(post(nullptr), DOCA_SUCCESS);
  for (int i = 0; i < 100; ++i) receiver_.turn();
  doca_event_handle_t handle{};
  ASSERT_EQ(doca_pe_get_notification_handle(receiver_.pe, &handle), DOCA_SUCCESS);
  ASSERT_EQ(doca_pe_request_notification(receiver_.pe), DOCA_SUCCESS);
  pollfd readable{handle, POLLIN, 0};
  ASSERT_EQ(::poll(&readable, 1, 0), 0) << "there is nothing to do";
  EXPECT_EQ(doca_ctx_stop(receiver_.ctx), DOCA_ERROR_IN_PROGRESS);
  EXPECT_EQ(::poll(&readable, 1, 0), 1) << "the callback of the task is due";
  ASSERT_EQ(doca_pe_clear_notification(receiver_.pe, handle), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return receiver_.state() == DOCA_CTX_STATE_IDLE; }));
}

/// The client and its producer in another process than the server.
class ComchDataProcessTest : public ComchDataTest {
 protected:
  static constexpr std::size_t kLength = std::size_t{1024} * 1024;

  static char byte_at(std::size_t index) { return static_cast<char>(index * 7 + index / 251); }

  /// Sends one message. Returns the exit status: 0 if all went well.
  int run_producer_process() {
    Side own;  // with other engines: those of the test are shared with the parent
    End end;
    doca_comch_client* const client = make_client(own, kName);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto turn_until = [&](const std::function<bool()>& ready) {
      while (!ready() && std::chrono::steady_clock::now() < limit) own.turn();
      return ready();
    };
    if (doca_ctx_start(own.ctx) != DOCA_ERROR_IN_PROGRESS) return 1;
    if (!turn_until([&] { return own.new_consumers.size() == 1; })) return 2;
    doca_comch_connection* connection = nullptr;
    if (doca_comch_client_get_connection(client, &connection) != DOCA_SUCCESS) return 3;
    producer_ = make_producer(end, connection);
    id_ = own.new_consumers[0];
    if (doca_ctx_start(end.ctx) != DOCA_SUCCESS) return 4;
    std::string text(kLength, '\0');
    for (std::size_t i = 0; i < kLength; ++i) text[i] = byte_at(i);
    doca_error_t result = DOCA_ERROR_AGAIN;
    if (!turn_until([&] {
          if (result == DOCA_ERROR_AGAIN) result = send(from_.filled(0, text));
          return result != DOCA_ERROR_AGAIN;
        })) {
      return 5;
    }
    while (end.results.empty() && std::chrono::steady_clock::now() < limit) end.turn();
    if (end.results != std::vector{DOCA_SUCCESS}) return 6;
    // The parent takes what the system has, and expects no end of the connection.
    if (!turn_until([&] { return own.messages.size() == 1; })) return 7;
    ::_exit(testing::Test::HasFailure() ? 8 : 0);
  }
};

TEST_F(ComchDataProcessTest, AMessageOfAnotherProcessFillsAPostedBuffer) {
  ASSERT_EQ(doca_ctx_start(server_side_.ctx), DOCA_SUCCESS);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run_producer_process());
  ASSERT_GT(child, 0);
  ASSERT_TRUE(run_until([&] { return server_side_.connects == 1; }));
  consumer_ = make_consumer(receiver_, server_side_.connection);
  ASSERT_EQ(doca_ctx_start(receiver_.ctx), DOCA_ERROR_IN_PROGRESS);
  ASSERT_TRUE(run_until([&] { return receiver_.state() == DOCA_CTX_STATE_RUNNING; }));
  ASSERT_EQ(post(to_.empty(0, kLength)), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return receiver_.texts.size() == 1; }));
  ASSERT_EQ(receiver_.texts[0].size(), kLength);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kLength; ++i) wrong += receiver_.texts[0][i] != byte_at(i) ? 1U : 0U;
  EXPECT_EQ(wrong, 0U);
  const std::string text = "received";
  ASSERT_EQ(send_from_server(text), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return server_side_.disconnects == 1; }));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(ComchDataTest, ProducersOfSeveralThreadsShareAConsumer) {
  connect();
  constexpr std::uint32_t kMessages = 200;
  consumer_ = make_consumer(receiver_, server_side_.connection);
  End other;
  doca_comch_producer* const producers[] = {make_producer(sender_, client_side_.connection),
                                            make_producer(other, client_side_.connection)};
  ASSERT_EQ(doca_ctx_start(receiver_.ctx), DOCA_ERROR_IN_PROGRESS);
  ASSERT_TRUE(run_until([&] {
    return receiver_.state() == DOCA_CTX_STATE_RUNNING && client_side_.new_consumers.size() == 1;
  }));
  id_ = client_side_.new_consumers[0];
  const auto all = std::exchange(producers_, {});
  std::atomic<bool> gives_up{false};
  std::atomic<int> done{0};
  const auto run = [&](End& end, doca_comch_producer* producer) {
    EXPECT_EQ(doca_ctx_start(end.ctx), DOCA_SUCCESS);
    std::uint8_t immediate[4] = {'a', 'b', 'c', 'd'};
    for (std::uint32_t sent = 0; sent < kMessages && !gives_up;) {
      doca_comch_producer_task_send* task = nullptr;
      if (doca_comch_producer_task_send_alloc_init(producer, nullptr, immediate, 4, id_, &task) ==
              DOCA_SUCCESS &&
          submit_task(doca_comch_producer_task_send_as_task(task), nullptr) == DOCA_SUCCESS) {
        ++sent;
      } else {
        std::this_thread::yield();  // to the consumer, which has to post a buffer
      }
      end.turn();
    }
    while (end.results.size() < kMessages && !gives_up) end.turn();
    ++done;
  };
  std::thread first(run, std::ref(sender_), producers[0]);
  std::thread second(run, std::ref(other), producers[1]);
  const bool all_done = run_until(
      [&] {
        while (post(nullptr) == DOCA_SUCCESS) continue;
        return receiver_.immediates.size() == 2 * kMessages && done == 2;
      },
      std::chrono::seconds(60));  // three threads, which a loaded machine's sanitizers slow down
  gives_up = true;
  first.join();
  second.join();
  for (const auto& [end, producer] : all) {
    EXPECT_EQ(doca_ctx_stop(end->ctx), DOCA_SUCCESS);
    EXPECT_EQ(doca_comch_producer_destroy(producer), DOCA_SUCCESS);
  }
  ASSERT_TRUE(all_done) << receiver_.immediates.size() << " messages are received";
  EXPECT_EQ(receiver_.immediates.back(), "abcd");
  EXPECT_EQ(
      std::count(receiver_.producers.begin(), receiver_.producers.end(), receiver_.producers[0]),
      kMessages);
}

TEST_F(ComchDataTest, CapabilitiesAreThoseOfHostDevices) {
  const doca_devinfo* const host = doca_dev_as_devinfo(host_);
  std::uint32_t value = 0;
  EXPECT_EQ(doca_comch_consumer_cap_is_supported(host), DOCA_SUCCESS);
  EXPECT_EQ(doca_comch_producer_cap_is_supported(host), DOCA_SUCCESS);
  EXPECT_EQ(doca_comch_consumer_cap_is_supported(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_consumer_cap_get_max_num_tasks(host, &value), DOCA_SUCCESS);
  EXPECT_EQ(doca_comch_consumer_cap_get_max_buf_size(host, &value), DOCA_SUCCESS);
  EXPECT_EQ(value, 1U << 30);
  EXPECT_EQ(doca_comch_consumer_cap_get_max_imm_data_len(host, &value), DOCA_SUCCESS);
  EXPECT_EQ(value, 32U);
  EXPECT_EQ(doca_comch_producer_cap_get_max_num_tasks(host, &value), DOCA_SUCCESS);
  EXPECT_EQ(doca_comch_producer_cap_get_max_buf_size(host, &value), DOCA_SUCCESS);
  EXPECT_EQ(value, 1U << 30);
  EXPECT_EQ(doca_comch_producer_cap_get_max_buf_list_len(host, &value), DOCA_SUCCESS);
  EXPECT_EQ(value, 32U);
  EXPECT_EQ(doca_comch_producer_cap_get_max_buf_size(nullptr, &value), DOCA_ERROR_INVALID_VALUE);
}

TEST_F(ComchDataTest, MisuseIsRefused) {
  doca_comch_consumer* consumer = nullptr;
  doca_comch_producer* producer = nullptr;
  EXPECT_EQ(doca_comch_consumer_create(nullptr, to_.mmap, &consumer), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_producer_create(nullptr, &producer), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_consumer_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_producer_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_consumer_as_ctx(nullptr), nullptr);
  EXPECT_EQ(doca_comch_producer_as_ctx(nullptr), nullptr);
  start();
  doca_mmap* unusable = nullptr;
  EXPECT_EQ(doca_mmap_create(&unusable), DOCA_SUCCESS);
  EXPECT_EQ(doca_comch_consumer_create(server_side_.connection, unusable, &consumer),
            DOCA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(doca_mmap_destroy(unusable), DOCA_SUCCESS);
  EXPECT_EQ(doca_comch_consumer_destroy(consumer_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_comch_producer_destroy(producer_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_comch_consumer_set_imm_data_len(consumer_, 8), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_comch_consumer_set_imm_data_len(consumer_, 33), DOCA_ERROR_INVALID_VALUE);
  std::uint32_t value = 1;
  EXPECT_EQ(doca_comch_consumer_get_imm_data_len(consumer_, &value), DOCA_SUCCESS);
  EXPECT_EQ(value, 0U);
  EXPECT_EQ(post(from_.empty(0, 10)), DOCA_ERROR_INVALID_VALUE) << "a buffer of another mmap";
  EXPECT_EQ(send(nullptr), DOCA_ERROR_INVALID_VALUE) << "nothing to send";
  EXPECT_EQ(send(nullptr, std::string(33, 'i')), DOCA_ERROR_INVALID_VALUE);
  for (std::uint32_t i = 0; i < kDataTasks; ++i) ASSERT_EQ(post(nullptr), DOCA_SUCCESS);
  EXPECT_EQ(post(nullptr), DOCA_ERROR_NO_MEMORY);
  doca_comch_producer_task_send* task = nullptr;
  std::uint8_t byte = 1;
  ASSERT_EQ(doca_comch_producer_task_send_alloc_init(producer_, nullptr, &byte, 1, id_, &task),
            DOCA_SUCCESS);
  doca_comch_producer_task_send_set_consumer_id(task, 77);
  EXPECT_EQ(doca_comch_producer_task_send_get_consumer_id(task), 77U);
  doca_comch_producer_task_send_set_buf(task, nullptr);
  EXPECT_EQ(doca_comch_producer_task_send_get_buf(task), nullptr);
  doca_task_free(doca_comch_producer_task_send_as_task(task));
  EXPECT_EQ(doca_comch_producer_task_send_get_buf(nullptr), nullptr);
  EXPECT_EQ(doca_comch_consumer_task_post_recv_get_buf(nullptr), nullptr);
  EXPECT_EQ(doca_comch_consumer_task_post_recv_get_imm_data(nullptr), nullptr);
  doca_comch_consumer_task_post_recv_set_buf(nullptr, nullptr);
}

/// NVIDIA's reference application exchanges the ids of consumers by messages, and gives the
/// connection no turns between the answer and the consumer's start.
TEST_F(ComchDataTest, AControlMessageComesBehindTheConsumersBeforeIt) {
  connect();
  consumer_ = make_consumer(receiver_, client_side_.connection);
  others_ = nullptr;  // the consumer itself gets no turns
  std::string known;
  server_side_.on_text = [&](const std::string& text) {
    known = text + std::to_string(server_side_.new_consumers.size());
  };
  ASSERT_EQ(doca_ctx_start(receiver_.ctx), DOCA_ERROR_IN_PROGRESS);
  ASSERT_EQ(send_from_client("consumers: "), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return !known.empty(); }));
  EXPECT_EQ(known, "consumers: 1");

  // The server's consumer has its stream when the client's answer arrives.
  End end;
  doca_comch_consumer* const second = make_consumer(end, server_side_.connection);
  others_ = nullptr;
  bool is_answered = false;
  client_side_.on_text = [&](const std::string&) {
    EXPECT_EQ(send_from_client("answer"), DOCA_SUCCESS);
  };
  server_side_.on_text = [&](const std::string&) { is_answered = true; };
  ASSERT_EQ(doca_ctx_start(end.ctx), DOCA_ERROR_IN_PROGRESS);
  ASSERT_EQ(send_from_server("question"), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return is_answered; }));
  for (int i = 0; i < 100 && end.state() != DOCA_CTX_STATE_RUNNING; ++i) end.turn();
  EXPECT_EQ(end.state(), DOCA_CTX_STATE_RUNNING);
  end_of(end);
  EXPECT_EQ(doca_comch_consumer_destroy(second), DOCA_SUCCESS);
  consumers_.pop_back();
}

TEST_F(ComchDataTest, AServerWithFewTurnsFindsItsClientSoon) {
  ASSERT_EQ(doca_ctx_start(server_side_.ctx), DOCA_SUCCESS);
  server_side_.turn();
  ASSERT_EQ(doca_ctx_start(client_side_.ctx), DOCA_ERROR_IN_PROGRESS);
  for (int turns = 0; turns < 6 && server_side_.connects == 0; ++turns) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    client_side_.turn();
    server_side_.turn();
  }
  EXPECT_EQ(server_side_.connects, 1);
}

TEST_F(ComchDataTest, ASubmittedControlMessageIsCopied) {
  ASSERT_EQ(doca_comch_server_set_recv_queue_size(server_, 1), DOCA_SUCCESS);
  connect();
  std::string text = "first";
  // The first is sent at once, the others wait.
  std::size_t count = 0;
  for (; count < kTasks; ++count) ASSERT_EQ(send_from_client(text), DOCA_SUCCESS);
  text = "other";
  ASSERT_TRUE(run_until([&] { return server_side_.messages.size() == count; }));
  EXPECT_EQ(server_side_.messages, std::vector<std::string>(count, "first"));
}

TEST_F(ComchDataTest, WhatAGraphHasNodesOfIsNeitherDestroyedNorConfigured) {
  doca_graph* graph = nullptr;
  doca_graph_node* node = nullptr;
  ASSERT_EQ(doca_graph_create(server_side_.pe, &graph), DOCA_SUCCESS);
  for (const doca_ctx* ctx : {server_side_.ctx, client_side_.ctx}) {
    ASSERT_EQ(doca_graph_node_create_from_ctx(graph, ctx, &node), DOCA_SUCCESS);
  }
  EXPECT_EQ(doca_comch_server_destroy(server_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_comch_client_destroy(client_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_comch_server_task_send_set_conf(server_, Side::on_sent, Side::on_sent, 1),
            DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_comch_client_task_send_set_conf(client_, Side::on_sent, Side::on_sent, 1),
            DOCA_ERROR_IN_USE);
  connect();
  consumer_ = make_consumer(receiver_, server_side_.connection);
  producer_ = make_producer(sender_, client_side_.connection);
  for (const doca_ctx* ctx : {receiver_.ctx, sender_.ctx}) {
    ASSERT_EQ(doca_graph_node_create_from_ctx(graph, ctx, &node), DOCA_SUCCESS);
  }
  EXPECT_EQ(doca_comch_consumer_destroy(consumer_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_comch_producer_destroy(producer_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_comch_consumer_task_post_recv_set_conf(consumer_, on_received, on_received, 1),
            DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_comch_producer_task_send_set_conf(producer_, on_data_sent, on_data_sent, 1),
            DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_graph_destroy(graph), DOCA_SUCCESS);  // then they can be destroyed
}

}  // namespace
}  // namespace offload::doca
