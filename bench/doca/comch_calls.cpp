#include <doca_buf.h>
#include <doca_comch.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>

#include <memory>
#include <vector>

#include "bench/doca/calls.hpp"
#include "bench/doca/way.hpp"

namespace offload::bench {
namespace {

doca_dev* open_host(const char* pci_address) {
  return open_device([&](doca_devinfo* info) {
    std::uint8_t equal = 0;
    return doca_devinfo_is_equal_pci_addr(info, pci_address, &equal) == DOCA_SUCCESS && equal != 0;
  });
}

/// A server and a client that is connected to it.
class CalledEnds {
 public:
  CalledEnds(const char* name, std::uint32_t tasks, doca_comch_task_send_completion_cb_t sent,
             doca_comch_task_send_completion_cb_t failed, void* user) {
    doca_devinfo_rep** list = nullptr;
    std::uint32_t reps = 0;
    check(doca_devinfo_rep_create_list(dpu_, DOCA_DEVINFO_REP_FILTER_NET, &list, &reps), "no list");
    check(doca_dev_rep_open(list[0], &rep_), "cannot open a representor");
    check(doca_devinfo_rep_destroy_list(list), "cannot drop the list");
    check(doca_comch_server_create(dpu_, rep_, name, &server_), "cannot make a server");
    check(doca_comch_client_create(host_, name, &client), "cannot make a client");
    server_party.connect(doca_comch_server_as_ctx(server_), this);
    client_party.connect(doca_comch_client_as_ctx(client), user);
    check(doca_comch_server_task_send_set_conf(server_, sent, failed, 1), "cannot configure");
    check(doca_comch_client_task_send_set_conf(client, sent, failed, tasks), "cannot configure");
    check(doca_comch_server_event_msg_recv_register(server_, on_message), "cannot configure");
    check(doca_comch_client_event_msg_recv_register(client, on_message), "cannot configure");
    check(doca_comch_server_event_connection_status_changed_register(server_, on_connected,
                                                                     on_connected),
          "cannot configure");
    check(doca_comch_client_event_consumer_register(client, on_consumer, on_consumer),
          "cannot configure");
  }
  CalledEnds& operator=(CalledEnds&&) = delete;
  ~CalledEnds() {
    doca_ctx_stop(client_party.ctx);
    doca_ctx_stop(server_party.ctx);
    turn_until(
        [&] {
          return client_party.state() == DOCA_CTX_STATE_IDLE &&
                 server_party.state() == DOCA_CTX_STATE_IDLE;
        },
        [&] { turn(); });
    doca_comch_client_destroy(client);
    doca_comch_server_destroy(server_);
    doca_dev_rep_close(rep_);
    doca_dev_close(host_);
    doca_dev_close(dpu_);
  }

  void start() {
    server_party.start();
    client_party.start();
    until([&] { return client_party.state() == DOCA_CTX_STATE_RUNNING && at_server != nullptr; },
          [&] { turn(); });
    check(doca_comch_client_get_connection(client, &at_client), "no connection");
    check(doca_comch_connection_set_user_data(at_client, {.ptr = this}), "cannot set user data");
    check(doca_comch_connection_set_user_data(at_server, {.ptr = this}), "cannot set user data");
  }
  void turn() const {
    client_party.turn();
    server_party.turn();
  }

  Count count;
  doca_comch_connection* at_server = nullptr;
  doca_comch_connection* at_client = nullptr;
  std::uint32_t consumer = 0;

 private:
  static CalledEnds& of(doca_comch_connection* connection) {
    return *static_cast<CalledEnds*>(doca_comch_connection_get_user_data(connection).ptr);
  }
  static void on_message(doca_comch_event_msg_recv*, std::uint8_t*, std::uint32_t,
                         doca_comch_connection* connection) {
    of(connection).count.receive();
  }
  static void on_connected(doca_comch_event_connection_status_changed*,
                           doca_comch_connection* connection, std::uint8_t) {
    doca_comch_server* const server = doca_comch_server_get_server_ctx(connection);
    doca_data user{};
    check(doca_ctx_get_user_data(doca_comch_server_as_ctx(server), &user), "no user data");
    static_cast<CalledEnds*>(user.ptr)->at_server = connection;
  }
  static void on_consumer(doca_comch_event_consumer*, doca_comch_connection* connection,
                          std::uint32_t id) {
    of(connection).consumer = id;
  }

  doca_dev* dpu_ = open_host(kDpu);
  doca_dev* host_ = open_host(kHost);
  doca_dev_rep* rep_ = nullptr;
  doca_comch_server* server_ = nullptr;

 public:
  doca_comch_client* client = nullptr;
  Party server_party;
  Party client_party;
  doca_dev* device() const { return dpu_; }
};

/// Control messages of a client to a server.
class MessagesByCalls final : public Way {
 public:
  explicit MessagesByCalls(const Load& load)
      : bytes_(load.size), ends_("bench of calls", load.in_flight, sent, failed, this) {
    ends_.start();
    for (std::uint32_t i = 0; i < load.in_flight; ++i) {
      doca_comch_task_send* task = nullptr;
      check(doca_comch_client_task_send_alloc_init(ends_.client, ends_.at_client, bytes_.data(),
                                                   static_cast<std::uint32_t>(load.size), &task),
            "no task");
      tasks_.push_back(doca_comch_task_send_as_task(task));
    }
    idle_ = tasks_;
  }
  ~MessagesByCalls() override {
    for (doca_task* task : tasks_) doca_task_free(task);
  }

  void carry(std::uint64_t count) override {
    ends_.count.begin(count);
    while (!ends_.count.is_done(count)) {
      while (!idle_.empty() && ends_.count.take(tasks_.size())) {
        check(doca_task_submit(idle_.back()), "cannot send");
        idle_.pop_back();
      }
      ends_.turn();
    }
  }

 private:
  static void sent(doca_comch_task_send* task, doca_data, doca_data self) {
    auto& own = *static_cast<MessagesByCalls*>(self.ptr);
    ++own.ends_.count.ended;
    own.idle_.push_back(doca_comch_task_send_as_task(task));
  }
  static void failed(doca_comch_task_send*, doca_data, doca_data self) {
    static_cast<MessagesByCalls*>(self.ptr)->ends_.count.has_failed = true;
  }

  std::vector<char> bytes_;
  CalledEnds ends_;
  std::vector<doca_task*> tasks_;
  std::vector<doca_task*> idle_;
};

/// MessagesByCalls of a producer of the client to a consumer of the server, each with its own
/// engine.
class DataByCalls final : public Way {
 public:
  explicit DataByCalls(const Load& load)
      : ends_("bench of data by calls", 1, unused, unused, this),
        to_(ends_.device(), kDataMemory, DOCA_ACCESS_FLAG_PCI_READ_WRITE, load.in_flight),
        from_(ends_.device(), kDataMemory, DOCA_ACCESS_FLAG_PCI_READ_WRITE, 1) {
    ends_.start();
    check(doca_comch_consumer_create(ends_.at_server, to_.mmap, &consumer_), "no consumer");
    check(doca_comch_producer_create(ends_.at_client, &producer_), "no producer");
    receiver_.connect(doca_comch_consumer_as_ctx(consumer_), this);
    sender_.connect(doca_comch_producer_as_ctx(producer_), this);
    check(doca_comch_consumer_task_post_recv_set_conf(consumer_, received, not_received,
                                                      load.in_flight),
          "cannot configure");
    check(doca_comch_producer_task_send_set_conf(producer_, sent, not_sent, load.in_flight),
          "cannot configure");
    receiver_.start();
    until([&] { return receiver_.state() == DOCA_CTX_STATE_RUNNING && ends_.consumer != 0; },
          [&] {
            ends_.turn();
            receiver_.turn();
          });
    sender_.start();
    for (std::uint32_t i = 0; i < load.in_flight; ++i) {
      doca_comch_consumer_task_post_recv* task = nullptr;
      check(doca_comch_consumer_task_post_recv_alloc_init(
                consumer_, to_.take(i * load.size, load.size), &task),
            "no task");
      receives_.push_back(doca_comch_consumer_task_post_recv_as_task(task));
      check(doca_task_submit(receives_.back()), "cannot post a buffer");
    }
    doca_buf* const message = from_.take_full(0, load.size);
    for (std::uint32_t i = 0; i < load.in_flight; ++i) {
      doca_comch_producer_task_send* task = nullptr;
      check(doca_comch_producer_task_send_alloc_init(producer_, message, nullptr, 0, ends_.consumer,
                                                     &task),
            "no task");
      sends_.push_back(doca_comch_producer_task_send_as_task(task));
    }
    idle_ = sends_;
  }
  ~DataByCalls() override {
    is_ending_ = true;
    for (doca_task* task : sends_) doca_task_free(task);
    doca_ctx_stop(sender_.ctx);
    doca_ctx_stop(receiver_.ctx);
    turn_until([&] { return sender_.state() == DOCA_CTX_STATE_IDLE; }, [&] { sender_.turn(); });
    turn_until([&] { return receiver_.state() == DOCA_CTX_STATE_IDLE; }, [&] { receiver_.turn(); });
    doca_comch_producer_destroy(producer_);
    doca_comch_consumer_destroy(consumer_);
  }

  void carry(std::uint64_t count) override {
    ends_.count.begin(count);
    while (!ends_.count.is_done(count)) {
      while (!idle_.empty() && ends_.count.left != 0) {
        const doca_error_t result = doca_task_submit(idle_.back());
        if (result == DOCA_ERROR_AGAIN) break;
        check(result, "cannot send");
        idle_.pop_back();
        --ends_.count.left;
      }
      sender_.turn();
      receiver_.turn();
    }
  }

 private:
  static void unused(doca_comch_task_send*, doca_data, doca_data) {}
  static void received(doca_comch_consumer_task_post_recv* task, doca_data, doca_data self) {
    auto& own = *static_cast<DataByCalls*>(self.ptr);
    ++own.ends_.count.received;
    doca_buf_reset_data_len(doca_comch_consumer_task_post_recv_get_buf(task));
    if (doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task)) != DOCA_SUCCESS) {
      own.ends_.count.has_failed = true;
    }
  }
  static void not_received(doca_comch_consumer_task_post_recv* task, doca_data, doca_data self) {
    auto& own = *static_cast<DataByCalls*>(self.ptr);
    own.ends_.count.has_failed = !own.is_ending_;
    doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
  }
  static void sent(doca_comch_producer_task_send* task, doca_data, doca_data self) {
    auto& own = *static_cast<DataByCalls*>(self.ptr);
    ++own.ends_.count.ended;
    own.idle_.push_back(doca_comch_producer_task_send_as_task(task));
  }
  static void not_sent(doca_comch_producer_task_send*, doca_data, doca_data self) {
    static_cast<DataByCalls*>(self.ptr)->ends_.count.has_failed = true;
  }

  CalledEnds ends_;
  MappedMemory to_;
  MappedMemory from_;
  Party receiver_;
  Party sender_;
  doca_comch_consumer* consumer_ = nullptr;
  doca_comch_producer* producer_ = nullptr;
  std::vector<doca_task*> receives_;
  std::vector<doca_task*> sends_;
  std::vector<doca_task*> idle_;
  bool is_ending_ = false;
};

}  // namespace

std::unique_ptr<Way> messages_by_calls(const Load& load) {
  return std::make_unique<MessagesByCalls>(load);
}

std::unique_ptr<Way> data_by_calls(const Load& load) {
  return std::make_unique<DataByCalls>(load);
}

}  // namespace offload::bench
