#include "doca/comch/comch.hpp"

#include <cstring>
#include <string>
#include <utility>

// The events are empty.
struct doca_comch_event_msg_recv {};
struct doca_comch_event_connection_status_changed {};
struct doca_comch_event_consumer {};

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::Status;
using offload::progress::Task;

struct doca_comch_server final : ControlCalls {
  doca_comch_server(doca_dev& dev, const doca_dev_rep& rep, const char* name)
      : ControlCalls(dev), server(rep.info.pci_address, name, *this) {
    control = &server;
  }
  ~doca_comch_server() override { tasks.clear(); }

  [[nodiscard]] bool is_configured() const noexcept override {
    return ControlCalls::is_configured() && connected != nullptr;
  }
  [[nodiscard]] bool stops_on_failure() const noexcept override { return false; }

  ServerContext server;
};

struct doca_comch_client final : ControlCalls {
  doca_comch_client(doca_dev& dev, const char* name)
      : ControlCalls(dev), client(dev.info.device.pci_address, name, *this) {
    control = &client;
  }
  ~doca_comch_client() override { tasks.clear(); }

  ClientContext client;
};

namespace {

constexpr std::size_t kLongestName = 120;  // as DOCA's

ControlCalls& calls_of(const doca_comch_task_send& task) noexcept {
  return static_cast<ControlCalls&>(*task.ctx);
}

bool is_name(const char* name) noexcept {
  const std::size_t length = ::strnlen(name, kLongestName);
  return length != 0 && length < kLongestName;
}

doca_error_t destroy(ControlCalls* calls) noexcept {
  if (calls == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (const doca_error_t result = check_unused(*calls); result != DOCA_SUCCESS) return result;
  if (is_used(*calls->control)) return DOCA_ERROR_IN_USE;
  delete calls;
  return DOCA_SUCCESS;
}

/// Checks that `calls` may be configured now.
doca_error_t check_idle(const ControlCalls* calls) noexcept {
  if (calls == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return calls->state == DOCA_CTX_STATE_IDLE ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

doca_error_t set_max_msg_size(ControlCalls* calls, std::uint32_t size) noexcept {
  if (size == 0 || size > ControlContext::kMostMessage) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result = check_idle(calls);
  if (result == DOCA_SUCCESS) calls->control->set_longest_message(size);
  return result;
}

doca_error_t get_max_msg_size(const ControlCalls* calls, std::uint32_t* size) noexcept {
  if (any_null(calls, size)) return DOCA_ERROR_INVALID_VALUE;
  *size = calls->control->longest_message();
  return DOCA_SUCCESS;
}

doca_error_t set_recv_queue_size(ControlCalls* calls, std::uint32_t size) noexcept {
  if (size == 0 || size > ControlContext::kMostQueue) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result = check_idle(calls);
  if (result == DOCA_SUCCESS) calls->control->set_receive_queue(size);
  return result;
}

doca_error_t get_recv_queue_size(const ControlCalls* calls, std::uint32_t* size) noexcept {
  if (any_null(calls, size)) return DOCA_ERROR_INVALID_VALUE;
  *size = calls->control->receive_queue();
  return DOCA_SUCCESS;
}

doca_error_t set_send_conf(ControlCalls* calls, doca_comch_task_send_completion_cb_t completed,
                           doca_comch_task_send_completion_cb_t failed,
                           std::uint32_t count) noexcept {
  if (calls == nullptr || completed == nullptr || failed == nullptr || count == 0 ||
      count > kMostTasksOfContext) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (const doca_error_t result = check_unused(*calls); result != DOCA_SUCCESS) return result;
  return guarded("doca_comch_task_send_set_conf", [&] {
    calls->tasks.configure(*calls->control, count, {&ControlCalls::ended, calls});
    calls->completed = completed;
    calls->failed = failed;
  });
}

doca_error_t alloc_send(ControlCalls* calls, const doca_comch_connection* peer, const void* msg,
                        std::uint32_t len, doca_comch_task_send** task) noexcept {
  if (any_null(calls, peer, msg, task)) return DOCA_ERROR_INVALID_VALUE;
  if (calls->state != DOCA_CTX_STATE_RUNNING) return DOCA_ERROR_BAD_STATE;
  auto connection = calls->control->find(connection_of(peer));
  if (!connection || len > connection->longest_message()) return DOCA_ERROR_INVALID_VALUE;
  doca_comch_task_send* const allocated = calls->tasks.allocate(*calls, {});
  if (allocated == nullptr) return DOCA_ERROR_NO_MEMORY;
  allocated->send().connection = std::move(connection);
  allocated->send().message = {static_cast<const std::byte*>(msg), len};
  *task = allocated;
  return DOCA_SUCCESS;
}

doca_error_t register_received(ControlCalls* calls,
                               doca_comch_event_msg_recv_cb_t received) noexcept {
  if (received == nullptr) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result = check_idle(calls);
  if (result == DOCA_SUCCESS) calls->received = received;
  return result;
}

doca_error_t register_consumers(ControlCalls* calls, doca_comch_event_consumer_cb_t came,
                                doca_comch_event_consumer_cb_t went) noexcept {
  if (came == nullptr || went == nullptr) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result = check_idle(calls);
  if (result != DOCA_SUCCESS) return result;
  calls->consumer_came = came;
  calls->consumer_went = went;
  return result;
}

}  // namespace

void doca_comch_task_send::call_back() noexcept {
  const ControlCalls& calls = calls_of(*this);
  (status == DOCA_SUCCESS ? calls.completed : calls.failed)(this, user_data, ctx->user_data);
}

void doca_comch_task_send::release() noexcept {
  calls_of(*this).tasks.release(*this);
}

void ControlCalls::on_message(ComchConnection& connection, std::span<std::byte> message) {
  doca_comch_event_msg_recv event;
  received(&event, reinterpret_cast<std::uint8_t*>(message.data()),
           static_cast<std::uint32_t>(message.size()), handle_of(&connection));
}

void ControlCalls::on_connection(ComchConnection& connection, bool has_connected) {
  doca_comch_event_connection_status_changed event;
  (has_connected ? connected : disconnected)(&event, handle_of(&connection), 1);
}

void ControlCalls::on_consumer(ComchConnection& connection, std::uint32_t id, bool is_new) {
  const auto call = is_new ? consumer_came : consumer_went;
  doca_comch_event_consumer event;
  if (call != nullptr) call(&event, handle_of(&connection), id);
}

void ControlCalls::on_lost() {
  if (state == DOCA_CTX_STATE_RUNNING) stop();
}

void ControlCalls::ended(Task& task, void* calls) noexcept {
  static_cast<ControlCalls*>(calls)->task_ended(*static_cast<doca_comch_task_send*>(task.user_data),
                                                to_doca(task.status()));
}

doca_error_t doca_comch_cap_server_is_supported(const doca_devinfo* devinfo) {
  if (devinfo == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return has_comch(*devinfo) && !devinfo->representors.empty() ? DOCA_SUCCESS
                                                               : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_comch_cap_client_is_supported(const doca_devinfo* devinfo) {
  if (devinfo == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return has_comch(*devinfo) ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_comch_cap_get_max_name_len(const doca_devinfo* devinfo, uint32_t* max_name_len) {
  return get_capability(devinfo, kLongestName, max_name_len);
}

doca_error_t doca_comch_cap_get_max_msg_size(const doca_devinfo* devinfo, uint32_t* size) {
  return get_capability(devinfo, ControlContext::kMostMessage, size);
}

doca_error_t doca_comch_cap_get_max_recv_queue_size(const doca_devinfo* devinfo, uint32_t* size) {
  return get_capability(devinfo, ControlContext::kMostQueue, size);
}

doca_error_t doca_comch_cap_get_max_send_tasks(const doca_devinfo* devinfo, uint32_t* num_tasks) {
  return get_capability(devinfo, kMostTasksOfContext, num_tasks);
}

doca_error_t doca_comch_cap_get_max_clients(const doca_devinfo* devinfo, uint32_t* num) {
  return get_capability(devinfo, ServerContext::kMostClients, num);
}

doca_error_t doca_comch_server_create(doca_dev* dev, doca_dev_rep* repr, const char* name,
                                      doca_comch_server** comch_server) {
  if (any_null(dev, repr, name, comch_server) || !is_name(name)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result = doca_comch_cap_server_is_supported(&dev->info);
  if (result != DOCA_SUCCESS) return result;
  if (repr->info.device != dev->info.device.pci_address) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { *comch_server = new doca_comch_server(*dev, *repr, name); });
}

doca_error_t doca_comch_server_destroy(doca_comch_server* comch_server) {
  return destroy(comch_server);
}

doca_ctx* doca_comch_server_as_ctx(doca_comch_server* comch_server) {
  return comch_server;
}

doca_error_t doca_comch_server_set_max_msg_size(doca_comch_server* comch_server, uint32_t size) {
  return set_max_msg_size(comch_server, size);
}

doca_error_t doca_comch_server_get_max_msg_size(const doca_comch_server* comch_server,
                                                uint32_t* size) {
  return get_max_msg_size(comch_server, size);
}

doca_error_t doca_comch_server_set_recv_queue_size(doca_comch_server* comch_server, uint32_t size) {
  return set_recv_queue_size(comch_server, size);
}

doca_error_t doca_comch_server_get_recv_queue_size(const doca_comch_server* comch_server,
                                                   uint32_t* size) {
  return get_recv_queue_size(comch_server, size);
}

doca_error_t doca_comch_server_task_send_set_conf(
    doca_comch_server* comch_server, doca_comch_task_send_completion_cb_t task_completion_cb,
    doca_comch_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks) {
  return set_send_conf(comch_server, task_completion_cb, task_error_cb, num_send_tasks);
}

doca_error_t doca_comch_server_task_send_alloc_init(doca_comch_server* comch_server,
                                                    doca_comch_connection* peer, const void* msg,
                                                    uint32_t len, doca_comch_task_send** task) {
  return alloc_send(comch_server, peer, msg, len, task);
}

doca_error_t doca_comch_server_event_msg_recv_register(
    doca_comch_server* comch_server, doca_comch_event_msg_recv_cb_t recv_event_cb) {
  return register_received(comch_server, recv_event_cb);
}

doca_error_t doca_comch_server_event_connection_status_changed_register(
    doca_comch_server* comch_server,
    doca_comch_event_connection_status_changed_cb_t connect_event_cb,
    doca_comch_event_connection_status_changed_cb_t disconnect_event_cb) {
  if (connect_event_cb == nullptr || disconnect_event_cb == nullptr) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  const doca_error_t result = check_idle(comch_server);
  if (result != DOCA_SUCCESS) return result;
  comch_server->connected = connect_event_cb;
  comch_server->disconnected = disconnect_event_cb;
  return result;
}

doca_error_t doca_comch_server_event_consumer_register(
    doca_comch_server* comch_server, doca_comch_event_consumer_cb_t new_consumer_event_cb,
    doca_comch_event_consumer_cb_t expired_consumer_event_cb) {
  return register_consumers(comch_server, new_consumer_event_cb, expired_consumer_event_cb);
}

doca_error_t doca_comch_server_disconnect(doca_comch_server* comch_server,
                                          doca_comch_connection* connection) {
  if (any_null(comch_server, connection)) return DOCA_ERROR_INVALID_VALUE;
  const auto found = comch_server->server.find(connection_of(connection));
  if (!found) return DOCA_ERROR_INVALID_VALUE;
  if (comch_server->state != DOCA_CTX_STATE_RUNNING) return DOCA_ERROR_BAD_STATE;
  comch_server->server.disconnect(*found);
  return DOCA_SUCCESS;
}

doca_comch_server* doca_comch_server_get_server_ctx(const doca_comch_connection* connection) {
  const ComchConnection* const found = connection_of(connection);
  if (found == nullptr || !found->is_server()) return nullptr;
  return static_cast<doca_comch_server*>(&found->owner().events());
}

doca_error_t doca_comch_client_create(doca_dev* dev, const char* name,
                                      doca_comch_client** comch_client) {
  if (any_null(dev, name, comch_client) || !is_name(name)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result = doca_comch_cap_client_is_supported(&dev->info);
  if (result != DOCA_SUCCESS) return result;
  return guarded(__func__, [&] { *comch_client = new doca_comch_client(*dev, name); });
}

doca_error_t doca_comch_client_destroy(doca_comch_client* comch_client) {
  return destroy(comch_client);
}

doca_ctx* doca_comch_client_as_ctx(doca_comch_client* comch_client) {
  return comch_client;
}

doca_error_t doca_comch_client_set_max_msg_size(doca_comch_client* comch_client, uint32_t size) {
  return set_max_msg_size(comch_client, size);
}

doca_error_t doca_comch_client_get_max_msg_size(const doca_comch_client* comch_client,
                                                uint32_t* size) {
  return get_max_msg_size(comch_client, size);
}

doca_error_t doca_comch_client_set_recv_queue_size(doca_comch_client* comch_client, uint32_t size) {
  return set_recv_queue_size(comch_client, size);
}

doca_error_t doca_comch_client_get_recv_queue_size(const doca_comch_client* comch_client,
                                                   uint32_t* size) {
  return get_recv_queue_size(comch_client, size);
}

doca_error_t doca_comch_client_task_send_set_conf(
    doca_comch_client* comch_client, doca_comch_task_send_completion_cb_t task_completion_cb,
    doca_comch_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks) {
  return set_send_conf(comch_client, task_completion_cb, task_error_cb, num_send_tasks);
}

doca_error_t doca_comch_client_task_send_alloc_init(doca_comch_client* comch_client,
                                                    doca_comch_connection* peer, const void* msg,
                                                    uint32_t len, doca_comch_task_send** task) {
  return alloc_send(comch_client, peer, msg, len, task);
}

doca_error_t doca_comch_client_event_msg_recv_register(
    doca_comch_client* comch_client, doca_comch_event_msg_recv_cb_t recv_event_cb) {
  return register_received(comch_client, recv_event_cb);
}

doca_error_t doca_comch_client_event_consumer_register(
    doca_comch_client* comch_client, doca_comch_event_consumer_cb_t new_consumer_event_cb,
    doca_comch_event_consumer_cb_t expired_consumer_event_cb) {
  return register_consumers(comch_client, new_consumer_event_cb, expired_consumer_event_cb);
}

doca_error_t doca_comch_client_get_connection(const doca_comch_client* comch_client,
                                              doca_comch_connection** connection) {
  if (any_null(comch_client, connection)) return DOCA_ERROR_INVALID_VALUE;
  const auto all = comch_client->client.connections();
  if (comch_client->state != DOCA_CTX_STATE_RUNNING || all.empty()) return DOCA_ERROR_BAD_STATE;
  *connection = handle_of(all.front().get());
  return DOCA_SUCCESS;
}

doca_comch_client* doca_comch_client_get_client_ctx(const doca_comch_connection* connection) {
  const ComchConnection* const found = connection_of(connection);
  if (found == nullptr || found->is_server()) return nullptr;
  return static_cast<doca_comch_client*>(&found->owner().events());
}

doca_task* doca_comch_task_send_as_task(doca_comch_task_send* task) {
  return task;
}

doca_error_t doca_comch_connection_set_user_data(doca_comch_connection* connection,
                                                 doca_data user_data) {
  if (connection == nullptr) return DOCA_ERROR_INVALID_VALUE;
  connection_of(connection)->user_data = user_data;
  return DOCA_SUCCESS;
}

doca_data doca_comch_connection_get_user_data(const doca_comch_connection* connection) {
  return connection != nullptr ? connection_of(connection)->user_data : doca_data{};
}
