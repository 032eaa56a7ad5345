#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "doca/device.hpp"
#include "doca/include/doca_sync_event.h"
#include "doca/task_set.hpp"
#include "rdma_tasks/remote_sync_event.hpp"
#include "tasks/sync/sync_event_context.hpp"

namespace offload::doca {

/// The places where the publishers, or the subscribers, of an event may be.
struct Locations {
  bool remote_pci = false;
  bool remote_net = false;
  std::vector<DeviceUse> devices;  ///< of the CPU

  [[nodiscard]] bool any() const noexcept { return remote_pci || remote_net || !devices.empty(); }
};

/// An operation that a task does on its event.
struct EventRequest {
  using Operation = sync::SyncEventTask::Operation;

  Operation operation = Operation::get;
  std::uint64_t value = 0;
  std::uint64_t mask = ~std::uint64_t{0};
  std::uint64_t* result = nullptr;  ///< where the task's result goes; null: nowhere

  /// Returns whether the value has no bit that the mask does not have.
  [[nodiscard]] bool fits() const noexcept { return (value & ~mask) == 0; }
};

/// A task of any kind.
struct EventTask : doca_task {
  core::Status prepare() noexcept override;
  void let_go() noexcept override {}

  [[nodiscard]] sync::SyncEventTask& library() const noexcept {
    return static_cast<sync::SyncEventTask&>(*task);
  }

  EventRequest request;

 protected:
  ~EventTask() = default;
};

/// A task of the kind EventTasks<Self>, one of doca_sync_event::kinds.
template <class Self>
struct EventTaskOf : EventTask {
  void call_back() noexcept final;
  void release() noexcept final;

 protected:
  ~EventTaskOf() = default;
};

/// The tasks of one kind, with their callbacks.
template <class DocaTask>
struct EventTasks {
  using Callback = void (*)(DocaTask*, doca_data, doca_data);

  TaskSet<DocaTask, sync::SyncEventTask> set;
  Callback completed = nullptr;
  Callback failed = nullptr;
};

}  // namespace offload::doca

struct doca_sync_event_task_get final : offload::doca::EventTaskOf<doca_sync_event_task_get> {};
struct doca_sync_event_task_notify_set final
    : offload::doca::EventTaskOf<doca_sync_event_task_notify_set> {};
struct doca_sync_event_task_notify_add final
    : offload::doca::EventTaskOf<doca_sync_event_task_notify_add> {};
struct doca_sync_event_task_wait_eq final
    : offload::doca::EventTaskOf<doca_sync_event_task_wait_eq> {};
struct doca_sync_event_task_wait_neq final
    : offload::doca::EventTaskOf<doca_sync_event_task_wait_neq> {};

/// A sync::SyncEvent with a context of it and pools of tasks.
struct doca_sync_event final : doca_ctx {
  doca_sync_event() : event(made()), operations(event) {}
  doca_sync_event(offload::sync::SyncEvent imported, doca_dev& dev)
      : event(std::move(imported)), operations(event), importer(dev) {}

  offload::progress::Context& context() noexcept override { return operations; }
  [[nodiscard]] bool is_configured() const noexcept override {
    return is_imported() || (publishers.any() && subscribers.any());
  }
  [[nodiscard]] bool has_all_tasks() const noexcept override {
    return std::apply([](const auto&... each) { return (each.set.has_all() && ...); }, kinds);
  }
  void became_idle() noexcept override { export_net.reset(); }
  [[nodiscard]] bool is_imported() const noexcept { return importer.has_value(); }
  [[nodiscard]] bool is_started() const noexcept {
    return is_started_for_calls || state != DOCA_CTX_STATE_IDLE;
  }

  offload::sync::SyncEvent event;
  offload::sync::SyncEventContext operations;
  std::tuple<offload::doca::EventTasks<doca_sync_event_task_get>,
             offload::doca::EventTasks<doca_sync_event_task_notify_set>,
             offload::doca::EventTasks<doca_sync_event_task_notify_add>,
             offload::doca::EventTasks<doca_sync_event_task_wait_eq>,
             offload::doca::EventTasks<doca_sync_event_task_wait_neq>>
      kinds;
  offload::doca::Locations publishers;
  offload::doca::Locations subscribers;
  std::optional<offload::doca::DeviceUse> importer;            ///< of an event of an export
  std::vector<std::byte> export_pci;                           ///< empty: there is none
  std::optional<offload::rdma::ExportedSyncEvent> export_net;  ///< since the start
  bool is_context = false;                                     ///< for good
  bool is_started_for_calls = false;

 private:
  /// Its publisher may be a network card, which wakes no thread; here none sleeps.
  static offload::sync::SyncEvent made() {
    using offload::sync::Publisher;
    return offload::sync::SyncEvent({.name = "doca-sync-event", .publisher = Publisher::peer});
  }
};

namespace offload::doca {

template <class Self>
void EventTaskOf<Self>::call_back() noexcept {
  const auto& kind = std::get<EventTasks<Self>>(static_cast<doca_sync_event&>(*ctx).kinds);
  const auto call = status == DOCA_SUCCESS ? kind.completed : kind.failed;
  call(static_cast<Self*>(this), user_data, ctx->user_data);
}

template <class Self>
void EventTaskOf<Self>::release() noexcept {
  auto& kind = std::get<EventTasks<Self>>(static_cast<doca_sync_event&>(*ctx).kinds);
  kind.set.release(static_cast<Self&>(*this));
}

}  // namespace offload::doca
