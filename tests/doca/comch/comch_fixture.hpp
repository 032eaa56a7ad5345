#pragma once

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_comch.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_mmap.h>
#include <doca_pe.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace offload::doca {

/// Opens the host device with that address.
inline doca_dev* open_host_device(const char* pci_address) {
  doca_devinfo** list = nullptr;
  std::uint32_t count = 0;
  EXPECT_EQ(doca_devinfo_create_list(&list, &count), DOCA_SUCCESS);
  doca_dev* dev = nullptr;
  for (std::uint32_t i = 0; i < count && dev == nullptr; ++i) {
    std::uint8_t equal = 0;
    EXPECT_EQ(doca_devinfo_is_equal_pci_addr(list[i], pci_address, &equal), DOCA_SUCCESS);
    if (equal != 0) {
      EXPECT_EQ(doca_dev_open(list[i], &dev), DOCA_SUCCESS);
    }
  }
  EXPECT_NE(dev, nullptr);
  EXPECT_EQ(doca_devinfo_destroy_list(list), DOCA_SUCCESS);
  return dev;
}

/// Opens the first representor of a device.
inline doca_dev_rep* open_representor(doca_dev* dev) {
  doca_devinfo_rep** list = nullptr;
  std::uint32_t count = 0;
  EXPECT_EQ(doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &list, &count),
            DOCA_SUCCESS);
  doca_dev_rep* rep = nullptr;
  EXPECT_EQ(doca_dev_rep_open(list[0], &rep), DOCA_SUCCESS);
  EXPECT_EQ(doca_devinfo_rep_destroy_list(list), DOCA_SUCCESS);
  return rep;
}

/// A context with its own progress engine.
struct Party {
  Party() { EXPECT_EQ(doca_pe_create(&pe), DOCA_SUCCESS); }
  Party& operator=(Party&&) = delete;
  ~Party() { EXPECT_EQ(doca_pe_destroy(pe), DOCA_SUCCESS); }

  /// doca_pe_progress(), within which callbacks may come.
  void turn() {
    in_turn = true;
    doca_pe_progress(pe);
    in_turn = false;
  }
  [[nodiscard]] doca_ctx_states state() const {
    doca_ctx_states now{};
    EXPECT_EQ(doca_ctx_get_state(ctx, &now), DOCA_SUCCESS);
    return now;
  }
  /// `record`: what callbacks get, a class that is derived from this one.
  void configure(doca_ctx* own, void* record) {
    ctx = own;
    EXPECT_EQ(doca_pe_connect_ctx(pe, ctx), DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_set_user_data(ctx, {.ptr = record}), DOCA_SUCCESS);
  }

  doca_pe* pe = nullptr;
  doca_ctx* ctx = nullptr;
  bool in_turn = false;
};

/// A record of the events of a server or a client.
struct Side : Party {
  static Side& of(doca_data data) { return *static_cast<Side*>(data.ptr); }
  static Side& of(const doca_comch_connection* connection) {
    doca_comch_server* const server = doca_comch_server_get_server_ctx(connection);
    doca_comch_client* const client = doca_comch_client_get_client_ctx(connection);
    EXPECT_NE(server == nullptr, client == nullptr);
    doca_data data{};
    EXPECT_EQ(doca_ctx_get_user_data(server != nullptr ? doca_comch_server_as_ctx(server)
                                                       : doca_comch_client_as_ctx(client),
                                     &data),
              DOCA_SUCCESS);
    return of(data);
  }

  void configure(doca_ctx* own) {
    Party::configure(own, this);
    EXPECT_EQ(doca_ctx_set_state_changed_cb(ctx, on_state), DOCA_SUCCESS);
  }

  static void on_state(const doca_data data, doca_ctx*, doca_ctx_states, doca_ctx_states to) {
    of(data).states.push_back(to);
  }
  static void on_sent(doca_comch_task_send* task, doca_data, doca_data data) {
    Side& self = of(data);
    EXPECT_TRUE(self.in_turn) << "a callback outside doca_pe_progress()";
    doca_task* const base = doca_comch_task_send_as_task(task);
    self.sent.push_back(doca_task_get_status(base));
    doca_task_free(base);
    if (self.stops_when_sent) {
      EXPECT_EQ(doca_ctx_stop(self.ctx), DOCA_ERROR_IN_PROGRESS);
    }
  }
  static void on_message(doca_comch_event_msg_recv* event, std::uint8_t* message,
                         std::uint32_t length, doca_comch_connection* connection) {
    Side& self = of(connection);
    EXPECT_NE(event, nullptr);
    EXPECT_TRUE(self.in_turn) << "a callback outside doca_pe_progress()";
    self.messages.emplace_back(reinterpret_cast<const char*>(message), length);
    self.connection = connection;
    if (self.on_text) self.on_text(self.messages.back());
  }
  static void on_connect(doca_comch_event_connection_status_changed*,
                         doca_comch_connection* connection, std::uint8_t success) {
    Side& self = of(connection);
    EXPECT_TRUE(self.in_turn) << "a callback outside doca_pe_progress()";
    EXPECT_EQ(success, 1);
    self.connection = connection;
    ++self.connects;
  }
  static void on_disconnect(doca_comch_event_connection_status_changed*,
                            doca_comch_connection* connection, std::uint8_t) {
    ++of(connection).disconnects;
  }
  static void on_new_consumer(doca_comch_event_consumer*, doca_comch_connection* connection,
                              std::uint32_t id) {
    of(connection).new_consumers.push_back(id);
  }
  static void on_expired_consumer(doca_comch_event_consumer*, doca_comch_connection* connection,
                                  std::uint32_t id) {
    of(connection).expired_consumers.push_back(id);
  }

  doca_comch_connection* connection = nullptr;
  bool stops_when_sent = false;
  std::function<void(const std::string&)> on_text;
  std::vector<doca_ctx_states> states;
  std::vector<doca_error_t> sent;
  std::vector<std::string> messages;
  std::vector<std::uint32_t> new_consumers;
  std::vector<std::uint32_t> expired_consumers;
  int connects = 0;
  int disconnects = 0;
};

/// A server of the function b1:00.0 on 03:00.0, and a client there, in one process. Neither is
/// started.
class ComchTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kTasks = 16;
  static constexpr const char* kName = "a test's server";

  ComchTest() {
    ::setenv("OFFLOAD_RUNTIME_DIR", folder_, 1);
    dpu_ = open_host_device("03:00.0");
    host_ = open_host_device("b1:00.0");
    representor_ = open_representor(dpu_);
    EXPECT_EQ(doca_comch_server_create(dpu_, representor_, kName, &server_), DOCA_SUCCESS);
    client_ = make_client(client_side_, kName);
    server_side_.configure(doca_comch_server_as_ctx(server_));
    EXPECT_EQ(doca_comch_server_task_send_set_conf(server_, Side::on_sent, Side::on_sent, kTasks),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_comch_server_event_msg_recv_register(server_, Side::on_message), DOCA_SUCCESS);
    EXPECT_EQ(doca_comch_server_event_connection_status_changed_register(server_, Side::on_connect,
                                                                         Side::on_disconnect),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_comch_server_event_consumer_register(server_, Side::on_new_consumer,
                                                        Side::on_expired_consumer),
              DOCA_SUCCESS);
  }
  ~ComchTest() override {
    if (client_ != nullptr) stop(client_side_);
    stop(server_side_);
    if (client_ != nullptr) {
      EXPECT_EQ(doca_comch_client_destroy(client_), DOCA_SUCCESS);
    }
    EXPECT_EQ(doca_comch_server_destroy(server_), DOCA_SUCCESS);
    EXPECT_EQ(doca_dev_rep_close(representor_), DOCA_SUCCESS);
    EXPECT_EQ(doca_dev_close(dpu_), DOCA_SUCCESS);
    EXPECT_EQ(doca_dev_close(host_), DOCA_SUCCESS);
    ::unsetenv("OFFLOAD_RUNTIME_DIR");
    ::unsetenv("OFFLOAD_DOCA_COMCH");
    ::rmdir(folder_);
  }

  doca_comch_client* make_client(Side& side, const char* name) {
    doca_comch_client* client = nullptr;
    EXPECT_EQ(doca_comch_client_create(host_, name, &client), DOCA_SUCCESS);
    side.configure(doca_comch_client_as_ctx(client));
    EXPECT_EQ(doca_comch_client_task_send_set_conf(client, Side::on_sent, Side::on_sent, kTasks),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_comch_client_event_msg_recv_register(client, Side::on_message), DOCA_SUCCESS);
    EXPECT_EQ(doca_comch_client_event_consumer_register(client, Side::on_new_consumer,
                                                        Side::on_expired_consumer),
              DOCA_SUCCESS);
    return client;
  }
  /// Gives all their turns until `ready`, for `limit` at most.
  bool run_until(const std::function<bool()>& ready,
                 std::chrono::seconds limit = std::chrono::seconds(20)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!ready() && std::chrono::steady_clock::now() < end) {
      server_side_.turn();
      client_side_.turn();
      if (others_) others_();
    }
    return ready();
  }
  void stop(Side& side) {
    EXPECT_NE(doca_ctx_stop(side.ctx), DOCA_ERROR_INVALID_VALUE);
    EXPECT_TRUE(run_until([&] { return side.state() == DOCA_CTX_STATE_IDLE; }));
  }
  /// Starts both, unless the server runs, and connects them.
  void connect() {
    if (server_side_.state() == DOCA_CTX_STATE_IDLE) {
      ASSERT_EQ(doca_ctx_start(server_side_.ctx), DOCA_SUCCESS);
    }
    ASSERT_EQ(doca_ctx_start(client_side_.ctx), DOCA_ERROR_IN_PROGRESS);
    ASSERT_TRUE(run_until([&] {
      return client_side_.state() == DOCA_CTX_STATE_RUNNING && server_side_.connects == 1;
    }));
    ASSERT_EQ(doca_comch_client_get_connection(client_, &client_side_.connection), DOCA_SUCCESS);
  }
  /// Returns the result of the submission. `text` must live until the task's callback.
  doca_error_t send_from_client(const std::string& text) {
    doca_comch_task_send* task = nullptr;
    const doca_error_t result =
        doca_comch_client_task_send_alloc_init(client_, client_side_.connection, text.data(),
                                               static_cast<std::uint32_t>(text.size()), &task);
    return result != DOCA_SUCCESS ? result : submit(task);
  }
  doca_error_t send_from_server(const std::string& text) {
    doca_comch_task_send* task = nullptr;
    const doca_error_t result =
        doca_comch_server_task_send_alloc_init(server_, server_side_.connection, text.data(),
                                               static_cast<std::uint32_t>(text.size()), &task);
    return result != DOCA_SUCCESS ? result : submit(task);
  }
  static doca_error_t submit(doca_comch_task_send* task) {
    doca_task* const base = doca_comch_task_send_as_task(task);
    const doca_error_t result = doca_task_submit(base);
    if (result != DOCA_SUCCESS) doca_task_free(base);
    return result;
  }

  char folder_[32] = "/tmp/doca-comch-XXXXXX";
  bool has_folder_ = ::mkdtemp(folder_) != nullptr;
  Side server_side_;
  Side client_side_;
  doca_dev* dpu_ = nullptr;
  doca_dev* host_ = nullptr;
  doca_dev_rep* representor_ = nullptr;
  doca_comch_server* server_ = nullptr;
  doca_comch_client* client_ = nullptr;
  std::function<void()> others_;  ///< turns of further engines
};

}  // namespace offload::doca
