#pragma once

#include <memory>
#include <optional>

#include "doca/comch/control_context.hpp"
#include "doca/device.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_comch.h"
#include "doca/task_set.hpp"

namespace offload::doca {

// A doca_comch_connection is a ComchConnection.

inline doca_comch_connection* handle_of(ComchConnection* connection) noexcept {
  return reinterpret_cast<doca_comch_connection*>(connection);
}
inline ComchConnection* connection_of(const doca_comch_connection* connection) noexcept {
  // The const_cast is safe: the calls only read what such a handle names.
  return reinterpret_cast<ComchConnection*>(const_cast<doca_comch_connection*>(connection));
}

/// Returns whether the device can have clients, and consumers and producers.
inline bool has_comch(const doca_devinfo& info) noexcept {
  return info.device.kind == device::Kind::host;
}

/// Sets a capability of a device that has comch.
inline doca_error_t get_capability(const doca_devinfo* devinfo, std::uint32_t value,
                                   std::uint32_t* to) noexcept {
  if (any_null(devinfo, to)) return DOCA_ERROR_INVALID_VALUE;
  if (!has_comch(*devinfo)) return DOCA_ERROR_NOT_SUPPORTED;
  *to = value;
  return DOCA_SUCCESS;
}

}  // namespace offload::doca

struct doca_comch_task_send final : doca_task {
  offload::core::Status prepare() noexcept override { return {}; }
  offload::core::Status submit(bool flush) noexcept override {
    return offload::doca::submit_to<offload::doca::ControlContext>(*this, flush);
  }
  void let_go() noexcept override {}
  void call_back() noexcept override;
  void release() noexcept override;

  [[nodiscard]] offload::doca::MessageTask& send() const noexcept {
    return static_cast<offload::doca::MessageTask&>(*task);
  }
};

namespace offload::doca {

/// The common part of a server and a client: a ControlContext with its tasks, and its events.
struct ControlCalls : doca_ctx, ControlEvents {
  explicit ControlCalls(doca_dev& dev) : device(dev) {}

  progress::Context& context() noexcept override { return *control; }
  [[nodiscard]] bool is_configured() const noexcept override {
    return tasks.is_configured() && received != nullptr;
  }
  [[nodiscard]] bool has_all_tasks() const noexcept override { return tasks.has_all(); }
  bool set_gpu(doca_gpu&) override { return true; }  // its consumers and producers use it

  void on_message(ComchConnection& connection, std::span<std::byte> message) override;
  void on_connection(ComchConnection& connection, bool connected) override;
  void on_consumer(ComchConnection& connection, std::uint32_t id, bool is_new) override;
  void on_lost() override;
  static void ended(progress::Task& task, void* calls) noexcept;

  DeviceUse device;
  ControlContext* control = nullptr;  ///< a member of the derived type, which sets it
  TaskSet<doca_comch_task_send, MessageTask> tasks;
  doca_comch_task_send_completion_cb_t completed = nullptr;
  doca_comch_task_send_completion_cb_t failed = nullptr;
  doca_comch_event_msg_recv_cb_t received = nullptr;
  doca_comch_event_connection_status_changed_cb_t connected = nullptr;
  doca_comch_event_connection_status_changed_cb_t disconnected = nullptr;
  doca_comch_event_consumer_cb_t consumer_came = nullptr;
  doca_comch_event_consumer_cb_t consumer_went = nullptr;
};

}  // namespace offload::doca
