#include <doca_comch.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "tests/doca/comch/comch_fixture.hpp"

namespace offload::doca {
namespace {

using namespace std::chrono_literals;

TEST_F(ComchTest, AClientConnectsInTurnsAndBothSidesSendMessages) {
  connect();
  EXPECT_EQ(client_side_.states, (std::vector{DOCA_CTX_STATE_STARTING, DOCA_CTX_STATE_RUNNING}));
  EXPECT_EQ(server_side_.states, std::vector{DOCA_CTX_STATE_RUNNING});
  const std::string ping = "ping";
  const std::string pong(4080, 'p');
  ASSERT_EQ(send_from_client(ping), DOCA_SUCCESS);
  EXPECT_TRUE(client_side_.sent.empty()) << "a callback in the submission";
  ASSERT_TRUE(run_until([&] { return !server_side_.messages.empty(); }));
  EXPECT_EQ(server_side_.messages[0], ping);
  ASSERT_EQ(send_from_server(pong), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return !client_side_.messages.empty(); }));
  EXPECT_EQ(client_side_.messages[0], pong);
  EXPECT_EQ(client_side_.sent, std::vector{DOCA_SUCCESS});
  EXPECT_EQ(server_side_.sent, std::vector{DOCA_SUCCESS});
}

// As NVIDIA's samples of sync events, which sleep for a second between two turns.
TEST_F(ComchTest, AProgramWithPausesConnectsInAFewTurns) {
  ASSERT_EQ(doca_ctx_start(server_side_.ctx), DOCA_SUCCESS);
  ASSERT_EQ(doca_ctx_start(client_side_.ctx), DOCA_ERROR_IN_PROGRESS);
  int turns = 0;
  for (; turns < 10 && client_side_.state() != DOCA_CTX_STATE_RUNNING; ++turns) {
    std::this_thread::sleep_for(25ms);  // more than two ticks of any kernel
    server_side_.turn();
    client_side_.turn();
  }
  EXPECT_LE(turns, 4);
}

TEST_F(ComchTest, AMessageOfNoBytesArrives) {
  connect();
  const std::string nothing;
  ASSERT_EQ(send_from_client(nothing), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return !server_side_.messages.empty(); }));
  EXPECT_EQ(server_side_.messages[0], "");
}

TEST_F(ComchTest, MessagesWaitForRoomInTheReceiveQueueAndStayInOrder) {
  ASSERT_EQ(doca_comch_server_set_recv_queue_size(server_, 3), DOCA_SUCCESS);
  connect();
  std::deque<std::string> texts;
  for (std::uint32_t i = 0; i < kTasks; ++i) {
    ASSERT_EQ(send_from_client(texts.emplace_back(std::to_string(i))), DOCA_SUCCESS);
  }
  EXPECT_EQ(send_from_client(texts.back()), DOCA_ERROR_NO_MEMORY);
  for (int i = 0; i < 100; ++i) client_side_.turn();  // the server takes nothing
  EXPECT_EQ(client_side_.sent.size(), 3U);
  std::size_t in_flight = 0;
  EXPECT_EQ(doca_ctx_get_num_inflight_tasks(client_side_.ctx, &in_flight), DOCA_SUCCESS);
  EXPECT_EQ(in_flight, kTasks - 3);
  ASSERT_TRUE(run_until([&] { return server_side_.messages.size() == kTasks; }));
  EXPECT_TRUE(std::equal(texts.begin(), texts.end(), server_side_.messages.begin()));
  ASSERT_TRUE(run_until([&] { return client_side_.sent.size() == kTasks; }));
}

TEST_F(ComchTest, TheShorterMessageLengthOfTheTwoSidesCounts) {
  ASSERT_EQ(doca_comch_server_set_max_msg_size(server_, 100), DOCA_SUCCESS);
  ASSERT_EQ(doca_comch_client_set_max_msg_size(client_, 200), DOCA_SUCCESS);
  connect();
  EXPECT_EQ(send_from_client(std::string(101, 'x')), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(send_from_server(std::string(101, 'x')), DOCA_ERROR_INVALID_VALUE);
  const std::string longest(100, 'x');
  EXPECT_EQ(send_from_client(longest), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return server_side_.messages.size() == 1; }));
}

TEST_F(ComchTest, AStopSendsWhatWasSubmittedAndEndsTheOtherSide) {
  connect();
  const std::string last = "the last words";
  ASSERT_EQ(send_from_server(last), DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_stop(server_side_.ctx), DOCA_ERROR_IN_PROGRESS);
  ASSERT_TRUE(run_until([&] {
    return server_side_.state() == DOCA_CTX_STATE_IDLE &&
           client_side_.state() == DOCA_CTX_STATE_IDLE;
  }));
  EXPECT_EQ(server_side_.sent, std::vector{DOCA_SUCCESS});
  EXPECT_EQ(client_side_.messages, std::vector{last});
  EXPECT_EQ(client_side_.states, (std::vector{DOCA_CTX_STATE_STARTING, DOCA_CTX_STATE_RUNNING,
                                              DOCA_CTX_STATE_STOPPING, DOCA_CTX_STATE_IDLE}));
  EXPECT_EQ(server_side_.disconnects, 0);
}

TEST_F(ComchTest, AStopFailsTheMessagesThatWait) {
  ASSERT_EQ(doca_comch_server_set_recv_queue_size(server_, 1), DOCA_SUCCESS);
  connect();
  const std::string text = "x";
  ASSERT_EQ(send_from_client(text), DOCA_SUCCESS);
  ASSERT_EQ(send_from_client(text), DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_stop(client_side_.ctx), DOCA_ERROR_IN_PROGRESS);
  ASSERT_TRUE(run_until([&] { return client_side_.state() == DOCA_CTX_STATE_IDLE; }));
  EXPECT_EQ(client_side_.sent, (std::vector{DOCA_SUCCESS, DOCA_ERROR_SHUTDOWN}));
  EXPECT_EQ(server_side_.messages.size(), 1U);
}

TEST_F(ComchTest, AStopInACallbackIsCarriedOutInTurns) {
  connect();
  client_side_.stops_when_sent = true;
  const std::string text = "x";
  ASSERT_EQ(send_from_client(text), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return client_side_.state() == DOCA_CTX_STATE_IDLE; }));
  ASSERT_TRUE(run_until([&] { return server_side_.disconnects == 1; }));
  EXPECT_EQ(server_side_.messages, std::vector{text});
  EXPECT_EQ(server_side_.state(), DOCA_CTX_STATE_RUNNING);
  EXPECT_EQ(send_from_server(text), DOCA_ERROR_INVALID_VALUE) << "the connection is gone";
}

TEST_F(ComchTest, AStopDoesNotWaitForAPeerThatHasNoTurns) {
  connect();
  EXPECT_EQ(doca_ctx_stop(client_side_.ctx), DOCA_ERROR_IN_PROGRESS);
  const auto begin = std::chrono::steady_clock::now();
  while (client_side_.state() != DOCA_CTX_STATE_IDLE &&
         std::chrono::steady_clock::now() < begin + std::chrono::seconds(10)) {
    client_side_.turn();
  }
  EXPECT_EQ(client_side_.state(), DOCA_CTX_STATE_IDLE);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2))
      << "0.5 s are promised";
}

TEST_F(ComchTest, WithoutAServerTheStartEndsIdle) {
  EXPECT_EQ(doca_ctx_start(client_side_.ctx), DOCA_ERROR_IN_PROGRESS);
  doca_comch_connection* connection = nullptr;
  EXPECT_EQ(doca_comch_client_get_connection(client_, &connection), DOCA_ERROR_BAD_STATE);
  ASSERT_TRUE(run_until([&] { return client_side_.state() == DOCA_CTX_STATE_IDLE; }));
  EXPECT_EQ(client_side_.states,
            (std::vector{DOCA_CTX_STATE_STARTING, DOCA_CTX_STATE_STOPPING, DOCA_CTX_STATE_IDLE}));
  client_side_.states.clear();
  connect();
  EXPECT_EQ(client_side_.states, (std::vector{DOCA_CTX_STATE_STARTING, DOCA_CTX_STATE_RUNNING}));
}

TEST_F(ComchTest, AStartMayBeStopped) {
  ASSERT_EQ(doca_ctx_start(client_side_.ctx), DOCA_ERROR_IN_PROGRESS);
  EXPECT_EQ(doca_ctx_start(client_side_.ctx), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_ctx_stop(client_side_.ctx), DOCA_SUCCESS);
  EXPECT_EQ(client_side_.state(), DOCA_CTX_STATE_IDLE);
}

TEST_F(ComchTest, AServerHasSeveralClients) {
  connect();
  {
    Side other;
    others_ = [&] { other.turn(); };
    doca_comch_client* const second = make_client(other, kName);
    ASSERT_EQ(doca_ctx_start(other.ctx), DOCA_ERROR_IN_PROGRESS);
    doca_comch_connection* const first = server_side_.connection;
    ASSERT_TRUE(run_until([&] { return server_side_.connects == 2; }));
    EXPECT_NE(server_side_.connection, first);
    const std::string text = "for the second";
    ASSERT_EQ(send_from_server(text), DOCA_SUCCESS);
    ASSERT_TRUE(run_until([&] { return other.messages.size() == 1; }));
    EXPECT_TRUE(client_side_.messages.empty());
    ASSERT_EQ(doca_comch_server_disconnect(server_, server_side_.connection), DOCA_SUCCESS);
    EXPECT_EQ(doca_comch_server_disconnect(server_, server_side_.connection),
              DOCA_ERROR_INVALID_VALUE);
    ASSERT_TRUE(run_until([&] { return other.state() == DOCA_CTX_STATE_IDLE; }));
    EXPECT_EQ(server_side_.disconnects, 0);
    others_ = nullptr;
    EXPECT_EQ(doca_comch_client_destroy(second), DOCA_SUCCESS);
  }
  EXPECT_EQ(client_side_.state(), DOCA_CTX_STATE_RUNNING);
}

TEST_F(ComchTest, AServerOfAnotherNameIsNotTaken) {
  ::setenv("OFFLOAD_DOCA_COMCH", ("0000:b1:00.0=unix:" + std::string(folder_) + "/own").c_str(), 1);
  ASSERT_EQ(doca_ctx_start(server_side_.ctx), DOCA_SUCCESS);
  Side other;
  others_ = [&] { other.turn(); };
  doca_comch_client* const client = make_client(other, "another name");
  ASSERT_EQ(doca_ctx_start(other.ctx), DOCA_ERROR_IN_PROGRESS);
  ASSERT_TRUE(run_until([&] { return other.state() == DOCA_CTX_STATE_IDLE; }));
  EXPECT_EQ(server_side_.connects, 0);
  others_ = nullptr;
  EXPECT_EQ(doca_comch_client_destroy(client), DOCA_SUCCESS);
}

TEST_F(ComchTest, TheAddressIsThatOfTheEnvironment) {
  const std::string path = std::string(folder_) + "/own";
  ::setenv("OFFLOAD_DOCA_COMCH", ("03:00.0=unix:/nowhere,b1:00.0=unix:" + path).c_str(), 1);
  connect();
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
  for (const char* text : {"b1:00.0", "x=unix:/a", "b1:00.0=unix:", "b1:00.0=udp:a:1",
                           "b1:00.0=tcp:a", "b1:00.0=tcp:a:0"}) {
    ::setenv("OFFLOAD_DOCA_COMCH", text, 1);
    Side other;
    doca_comch_client* const client = make_client(other, kName);
    EXPECT_EQ(doca_ctx_start(other.ctx), DOCA_ERROR_INVALID_VALUE) << text;
    EXPECT_EQ(doca_comch_client_destroy(client), DOCA_SUCCESS);
  }
  ::setenv("OFFLOAD_DOCA_COMCH", "b1:00.0=tcp:localhost:7777", 1);
  Side other;
  doca_comch_client* const client = make_client(other, kName);
  EXPECT_EQ(doca_ctx_start(other.ctx), DOCA_ERROR_NOT_PERMITTED) << "without a key";
  EXPECT_EQ(doca_comch_client_destroy(client), DOCA_SUCCESS);
}

TEST_F(ComchTest, ASecondServerIsRefused) {
  ASSERT_EQ(doca_ctx_start(server_side_.ctx), DOCA_SUCCESS);
  Side other;
  doca_comch_server* second = nullptr;
  ASSERT_EQ(doca_comch_server_create(dpu_, representor_, kName, &second), DOCA_SUCCESS);
  other.configure(doca_comch_server_as_ctx(second));
  EXPECT_EQ(doca_ctx_start(other.ctx), DOCA_ERROR_BAD_STATE) << "it is not configured";
  ASSERT_EQ(doca_comch_server_task_send_set_conf(second, Side::on_sent, Side::on_sent, 1),
            DOCA_SUCCESS);
  ASSERT_EQ(doca_comch_server_event_msg_recv_register(second, Side::on_message), DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_start(other.ctx), DOCA_ERROR_BAD_STATE) << "nor is this enough";
  ASSERT_EQ(doca_comch_server_event_connection_status_changed_register(second, Side::on_connect,
                                                                       Side::on_disconnect),
            DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_start(other.ctx), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_comch_server_destroy(second), DOCA_SUCCESS);
}

TEST_F(ComchTest, AProgramSleepsUntilAMessageComes) {
  connect();
  doca_event_handle_t handle{};
  ASSERT_EQ(doca_pe_get_notification_handle(server_side_.pe, &handle), DOCA_SUCCESS);
  for (int i = 0; i < 100; ++i) server_side_.turn();
  ASSERT_EQ(doca_pe_request_notification(server_side_.pe), DOCA_SUCCESS);
  server_side_.turn();
  pollfd readable{handle, POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, 20), 0) << "there is nothing to do";
  const std::string text = "wake up";
  ASSERT_EQ(send_from_client(text), DOCA_SUCCESS);
  EXPECT_EQ(::poll(&readable, 1, 5000), 1);
  ASSERT_EQ(doca_pe_clear_notification(server_side_.pe, handle), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return server_side_.messages.size() == 1; }));
}

TEST_F(ComchTest, ASubmissionWakesAProgramThatIsAboutToSleep) {
  connect();
  doca_event_handle_t handle{};
  ASSERT_EQ(doca_pe_get_notification_handle(server_side_.pe, &handle), DOCA_SUCCESS);
  for (int i = 0; i < 100; ++i) server_side_.turn();
  ASSERT_EQ(doca_pe_request_notification(server_side_.pe), DOCA_SUCCESS);
  pollfd readable{handle, POLLIN, 0};
  ASSERT_EQ(::poll(&readable, 1, 0), 0) << "there is nothing to do";
  const std::string text = "x";
  ASSERT_EQ(send_from_server(text), DOCA_SUCCESS);
  EXPECT_EQ(::poll(&readable, 1, 0), 1) << "the callback of the task is due";
  ASSERT_EQ(doca_pe_clear_notification(server_side_.pe, handle), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return server_side_.sent.size() == 1; }));
}

TEST_F(ComchTest, ADisconnectionWakesAProgramWhoseMessagesWait) {
  ASSERT_EQ(doca_comch_client_set_recv_queue_size(client_, 1), DOCA_SUCCESS);
  connect();
  const std::string text = "x";
  ASSERT_EQ(send_from_server(text), DOCA_SUCCESS);
  ASSERT_EQ(send_from_server(text), DOCA_SUCCESS);
  for (int i = 0; i < 100; ++i) server_side_.turn();
  ASSERT_EQ(server_side_.sent.size(), 1U);
  doca_event_handle_t handle{};
  ASSERT_EQ(doca_pe_get_notification_handle(server_side_.pe, &handle), DOCA_SUCCESS);
  ASSERT_EQ(doca_pe_request_notification(server_side_.pe), DOCA_SUCCESS);
  pollfd readable{handle, POLLIN, 0};
  ASSERT_EQ(::poll(&readable, 1, 0), 0) << "there is nothing to do";
  ASSERT_EQ(doca_comch_server_disconnect(server_, server_side_.connection), DOCA_SUCCESS);
  EXPECT_EQ(::poll(&readable, 1, 0), 1) << "the callback of the task is due";
  ASSERT_EQ(doca_pe_clear_notification(server_side_.pe, handle), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return server_side_.sent.size() == 2; }));
  EXPECT_EQ(server_side_.sent[1], DOCA_ERROR_CONNECTION_RESET);
}

TEST_F(ComchTest, TheCallbackOfAStartMayStopAndDestroyTheContext) {
  static doca_comch_client* client;
  ASSERT_EQ(doca_comch_client_create(host_, kName, &client), DOCA_SUCCESS);
  doca_ctx* const ctx = doca_comch_client_as_ctx(client);
  ASSERT_EQ(doca_pe_connect_ctx(client_side_.pe, ctx), DOCA_SUCCESS);
  ASSERT_EQ(doca_comch_client_task_send_set_conf(client, Side::on_sent, Side::on_sent, 1),
            DOCA_SUCCESS);
  ASSERT_EQ(doca_comch_client_event_msg_recv_register(client, Side::on_message), DOCA_SUCCESS);
  ASSERT_EQ(doca_ctx_set_state_changed_cb(
                ctx,
                [](const doca_data, doca_ctx* started, doca_ctx_states, doca_ctx_states to) {
                  if (to == DOCA_CTX_STATE_STARTING) {
                    EXPECT_EQ(doca_ctx_stop(started), DOCA_SUCCESS);
                  } else if (to == DOCA_CTX_STATE_IDLE) {
                    EXPECT_EQ(doca_comch_client_destroy(client), DOCA_SUCCESS);
                    client = nullptr;
                  }
                }),
            DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_start(ctx), DOCA_ERROR_IN_PROGRESS);
  EXPECT_EQ(client, nullptr);
}

/// A client with all that it needs, for another process than the server's.
class ComchProcessTest : public ComchTest {
 protected:
  /// Returns the exit status: 0 if it was answered.
  int run_client_process() {
    Side own;  // with another engine: that of the test is shared with the parent
    doca_comch_client* const client = make_client(own, kName);
    const std::string text = "from another process";
    doca_comch_connection* connection = nullptr;
    if (doca_ctx_start(own.ctx) != DOCA_ERROR_IN_PROGRESS) return 1;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (own.messages.empty() && std::chrono::steady_clock::now() < end) {
      own.turn();
      if (connection != nullptr || own.state() != DOCA_CTX_STATE_RUNNING) continue;
      doca_comch_task_send* task = nullptr;
      if (doca_comch_client_get_connection(client, &connection) != DOCA_SUCCESS ||
          doca_comch_client_task_send_alloc_init(client, connection, text.data(),
                                                 static_cast<std::uint32_t>(text.size()),
                                                 &task) != DOCA_SUCCESS ||
          submit(task) != DOCA_SUCCESS) {
        return 2;
      }
    }
    if (own.messages != std::vector<std::string>{"back"}) return 3;
    ::_exit(testing::Test::HasFailure() ? 8 : 0);  // without an end of the connection
  }
};

TEST_F(ComchProcessTest, AClientsProcessThatDiesIsADisconnection) {
  ASSERT_EQ(doca_ctx_start(server_side_.ctx), DOCA_SUCCESS);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run_client_process());
  ASSERT_GT(child, 0);
  ASSERT_TRUE(run_until([&] { return server_side_.messages.size() == 1; }));
  EXPECT_EQ(server_side_.messages[0], "from another process");
  const std::string text = "back";
  ASSERT_EQ(send_from_server(text), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return server_side_.disconnects == 1; }));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(server_side_.state(), DOCA_CTX_STATE_RUNNING);
}

TEST_F(ComchTest, CapabilitiesAreThoseOfHostDevices) {
  const doca_devinfo* const dpu = doca_dev_as_devinfo(dpu_);
  const doca_devinfo* const host = doca_dev_as_devinfo(host_);
  EXPECT_EQ(doca_comch_cap_server_is_supported(dpu), DOCA_SUCCESS);
  EXPECT_EQ(doca_comch_cap_server_is_supported(host), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_comch_cap_client_is_supported(host), DOCA_SUCCESS);
  std::uint32_t value = 0;
  EXPECT_EQ(doca_comch_cap_get_max_name_len(host, &value), DOCA_SUCCESS);
  EXPECT_EQ(value, 120U);
  EXPECT_EQ(doca_comch_cap_get_max_msg_size(host, &value), DOCA_SUCCESS);
  EXPECT_EQ(value, 4080U);
  EXPECT_EQ(doca_comch_cap_get_max_recv_queue_size(host, &value), DOCA_SUCCESS);
  EXPECT_EQ(value, 8192U);
  EXPECT_EQ(doca_comch_cap_get_max_send_tasks(host, &value), DOCA_SUCCESS);
  EXPECT_EQ(value, 65536U);
  EXPECT_EQ(doca_comch_cap_get_max_clients(host, &value), DOCA_SUCCESS);
  EXPECT_EQ(value, 512U);
  EXPECT_EQ(doca_comch_cap_get_max_clients(host, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_cap_get_max_clients(nullptr, &value), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_cap_server_is_supported(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_cap_client_is_supported(nullptr), DOCA_ERROR_INVALID_VALUE);
}

TEST_F(ComchTest, InvalidArgumentsAreRefused) {
  doca_comch_server* server = nullptr;
  doca_comch_client* client = nullptr;
  const std::string long_name(120, 'x');
  EXPECT_EQ(doca_comch_server_create(host_, representor_, kName, &server),
            DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_comch_server_create(dpu_, representor_, "", &server), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_server_create(dpu_, nullptr, kName, &server), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_client_create(host_, long_name.c_str(), &client), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_client_create(host_, kName, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_server_set_max_msg_size(server_, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_server_set_max_msg_size(server_, 4081), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_server_set_recv_queue_size(server_, 8193), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_client_set_recv_queue_size(client_, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_client_set_recv_queue_size(client_, 12), DOCA_SUCCESS);
  std::uint32_t value = 0;
  EXPECT_EQ(doca_comch_client_get_recv_queue_size(client_, &value), DOCA_SUCCESS);
  EXPECT_EQ(value, 12U);
  EXPECT_EQ(doca_comch_server_get_recv_queue_size(server_, &value), DOCA_SUCCESS);
  EXPECT_EQ(value, 64U);
  EXPECT_EQ(doca_comch_client_get_max_msg_size(client_, &value), DOCA_SUCCESS);
  EXPECT_EQ(doca_comch_server_get_max_msg_size(server_, &value), DOCA_SUCCESS);
  EXPECT_EQ(value, 4080U);
  EXPECT_EQ(doca_comch_server_get_max_msg_size(nullptr, &value), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_server_task_send_set_conf(server_, nullptr, Side::on_sent, 1),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_server_task_send_set_conf(server_, Side::on_sent, Side::on_sent, 0),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_server_event_msg_recv_register(server_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_client_event_consumer_register(client_, Side::on_new_consumer, nullptr),
            DOCA_ERROR_INVALID_VALUE);
  doca_comch_task_send* task = nullptr;
  EXPECT_EQ(doca_comch_client_task_send_alloc_init(client_, nullptr, "x", 1, &task),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_server_as_ctx(nullptr), nullptr);
  EXPECT_EQ(doca_comch_client_as_ctx(nullptr), nullptr);
  EXPECT_EQ(doca_comch_task_send_as_task(nullptr), nullptr);
  EXPECT_EQ(doca_comch_server_get_server_ctx(nullptr), nullptr);
  EXPECT_EQ(doca_comch_client_get_client_ctx(nullptr), nullptr);
  EXPECT_EQ(doca_comch_server_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_client_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_connection_set_user_data(nullptr, {}), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_comch_connection_get_user_data(nullptr).ptr, nullptr);
}

TEST_F(ComchTest, WhileItRunsItIsNeitherConfiguredNorDestroyed) {
  connect();
  EXPECT_EQ(doca_comch_server_set_max_msg_size(server_, 8), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_comch_client_set_recv_queue_size(client_, 8), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_comch_client_task_send_set_conf(client_, Side::on_sent, Side::on_sent, 1),
            DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_comch_client_event_msg_recv_register(client_, Side::on_message),
            DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_comch_server_event_connection_status_changed_register(server_, Side::on_connect,
                                                                       Side::on_disconnect),
            DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_comch_server_destroy(server_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_comch_client_destroy(client_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_dev_close(dpu_), DOCA_ERROR_IN_USE);
  doca_comch_task_send* task = nullptr;
  EXPECT_EQ(doca_comch_client_task_send_alloc_init(client_, server_side_.connection, "x", 1, &task),
            DOCA_ERROR_INVALID_VALUE)
      << "a connection of the other side";
  EXPECT_EQ(doca_comch_connection_set_user_data(client_side_.connection, {.u64 = 7}), DOCA_SUCCESS);
  EXPECT_EQ(doca_comch_connection_get_user_data(client_side_.connection).u64, 7U);
}

}  // namespace
}  // namespace offload::doca
