#include "doca/sync/sync_event.hpp"

#include <memory>
#include <span>

#include "doca/guard.hpp"
#include "doca/rdma/rdma_device.hpp"
#include "doca/sync/remote_net.hpp"
#include "tasks/sync/support.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::Duration;
using offload::memory::Access;
using offload::sync::ExportTarget;
using offload::sync::SyncEvent;
using offload::sync::WaitMode;

namespace {

constexpr Duration kNoLimit = Duration::max();

doca_error_t may_be_configured(const doca_sync_event* event) noexcept {
  if (event == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (event->is_imported()) return DOCA_ERROR_NOT_PERMITTED;
  return event->is_started() ? DOCA_ERROR_BAD_STATE : DOCA_SUCCESS;
}

doca_error_t add_cpu(const char* call, doca_sync_event* event, Locations doca_sync_event::*side,
                     doca_dev* dev) noexcept {
  if (any_null(event, dev)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result = may_be_configured(event);
  if (result != DOCA_SUCCESS) return result;
  return guarded(call, [&] { (event->*side).devices.emplace_back(*dev); });
}

doca_error_t add_remote(doca_sync_event* event, Locations doca_sync_event::*side,
                        bool Locations::*place) noexcept {
  const doca_error_t result = may_be_configured(event);
  if (result == DOCA_SUCCESS) event->*side.*place = true;
  return result;
}

doca_error_t can_export(const char* call, const doca_devinfo* devinfo,
                        ExportTarget target) noexcept {
  if (devinfo == nullptr) return DOCA_ERROR_INVALID_VALUE;
  bool supported = false;
  const doca_error_t result = guarded(
      call, [&] { supported = offload::sync::supports_export(devinfo->device, target).supported; });
  if (result != DOCA_SUCCESS) return result;
  return supported ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

/// The processor does the tasks, whatever the device is.
doca_error_t has_task(const doca_devinfo* devinfo) noexcept {
  return devinfo != nullptr ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE;
}

/// Returns success for an event that is started for calls.
doca_error_t may_be_called(const doca_sync_event* event) noexcept {
  if (event == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return event->is_started_for_calls ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

doca_error_t wait_greater(doca_sync_event* event, std::uint64_t value, std::uint64_t mask,
                          WaitMode how) noexcept {
  const doca_error_t result = may_be_called(event);
  if (result != DOCA_SUCCESS) return result;
  while (!event->event.wait_greater(value, mask, how, kNoLimit)) continue;
  return DOCA_SUCCESS;
}

doca_error_t wait_compared(doca_sync_event* event, bool equal, std::uint64_t value,
                           std::uint64_t mask, WaitMode how) noexcept {
  const doca_error_t result = may_be_called(event);
  if (result != DOCA_SUCCESS) return result;
  if (!EventRequest{.value = value, .mask = mask}.fits()) return DOCA_ERROR_INVALID_VALUE;
  const auto wait = equal ? &SyncEvent::wait_equal : &SyncEvent::wait_not_equal;
  while (!(event->event.*wait)(value, mask, how, kNoLimit)) continue;
  return DOCA_SUCCESS;
}

/// The device by which peers reach an event; null: no location has one.
doca_dev* rdma_device_of(const doca_sync_event& event) noexcept {
  for (const Locations* side : {&event.subscribers, &event.publishers}) {
    for (const DeviceUse& use : side->devices) {
      if (use.get()->info.device.kind == offload::device::Kind::rdma) return use.get();
    }
  }
  return nullptr;
}

void export_to_peers(doca_sync_event& event, doca_dev& dev) {
  RdmaDevice& device = dev.rdma();
  Access granted = Access::remote_read | Access::remote_write;
  if (device.device.has_atomics()) granted = granted | Access::remote_atomic;
  event.export_net.emplace(event.event, device.registrar, granted);
}

std::span<const std::byte> bytes_of(const std::uint8_t* data, std::size_t size) noexcept {
  return std::as_bytes(std::span(data, size));
}

void give(const std::vector<std::byte>& blob, const std::uint8_t** data,
          std::size_t* size) noexcept {
  *data = reinterpret_cast<const std::uint8_t*>(blob.data());
  *size = blob.size();
}

}  // namespace

doca_error_t doca_sync_event_create(doca_sync_event** event) {
  if (event == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { *event = new doca_sync_event; });
}

doca_error_t doca_sync_event_destroy(doca_sync_event* event) {
  if (event == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (event->is_started()) return DOCA_ERROR_BAD_STATE;
  if (const doca_error_t result = check_unused(*event); result != DOCA_SUCCESS) return result;
  delete event;
  return DOCA_SUCCESS;
}

doca_error_t doca_sync_event_add_publisher_location_cpu(doca_sync_event* event, doca_dev* dev) {
  return add_cpu(__func__, event, &doca_sync_event::publishers, dev);
}

doca_error_t doca_sync_event_add_publisher_location_remote_pci(doca_sync_event* event) {
  return add_remote(event, &doca_sync_event::publishers, &Locations::remote_pci);
}

doca_error_t doca_sync_event_add_publisher_location_remote_net(doca_sync_event* event) {
  return add_remote(event, &doca_sync_event::publishers, &Locations::remote_net);
}

doca_error_t doca_sync_event_add_subscriber_location_cpu(doca_sync_event* event, doca_dev* dev) {
  return add_cpu(__func__, event, &doca_sync_event::subscribers, dev);
}

doca_error_t doca_sync_event_add_subscriber_location_remote_pci(doca_sync_event* event) {
  return add_remote(event, &doca_sync_event::subscribers, &Locations::remote_pci);
}

doca_error_t doca_sync_event_add_publisher_location_gpu(doca_sync_event* event, doca_gpu* gpu) {
  return any_null(event, gpu) ? DOCA_ERROR_INVALID_VALUE : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_sync_event_add_subscriber_location_gpu(doca_sync_event* event, doca_gpu* gpu) {
  return any_null(event, gpu) ? DOCA_ERROR_INVALID_VALUE : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_sync_event_start(doca_sync_event* event) {
  if (event == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (event->is_started() || event->is_context || !event->is_configured()) {
    return DOCA_ERROR_BAD_STATE;
  }
  event->is_started_for_calls = true;
  return DOCA_SUCCESS;
}

doca_error_t doca_sync_event_stop(doca_sync_event* event) {
  const doca_error_t result = may_be_called(event);
  if (result != DOCA_SUCCESS) return result;
  event->export_net.reset();
  event->is_started_for_calls = false;
  return DOCA_SUCCESS;
}

doca_ctx* doca_sync_event_as_ctx(doca_sync_event* event) {
  if (event == nullptr || event->is_started_for_calls) return nullptr;
  event->is_context = true;
  return event;
}

doca_error_t doca_sync_event_export_to_remote_pci(doca_sync_event* event, doca_dev* dev,
                                                  const uint8_t** data, size_t* sz) {
  if (any_null(event, dev, data, sz)) return DOCA_ERROR_INVALID_VALUE;
  if (event->is_imported() || event->publishers.remote_net || event->subscribers.remote_net) {
    return DOCA_ERROR_NOT_PERMITTED;
  }
  if (!event->is_started()) return DOCA_ERROR_BAD_STATE;
  const doca_error_t supported = doca_sync_event_cap_is_export_to_remote_pci_supported(&dev->info);
  if (supported != DOCA_SUCCESS) return supported;
  // Once: the program may still have what an earlier call returned.
  if (event->export_pci.empty()) {
    const doca_error_t result =
        guarded(__func__, [&] { event->export_pci = event->event.export_in_place(); });
    if (result != DOCA_SUCCESS) return result;
  }
  give(event->export_pci, data, sz);
  return DOCA_SUCCESS;
}

doca_error_t doca_sync_event_create_from_export(doca_dev* dev, const uint8_t* data, size_t sz,
                                                doca_sync_event** event) {
  if (any_null(dev, data, event)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t supported = doca_sync_event_cap_is_create_from_export_supported(&dev->info);
  if (supported != DOCA_SUCCESS) return supported;
  return guarded(__func__, [&] {
    *event = new doca_sync_event(SyncEvent::import_in_place(bytes_of(data, sz)), *dev);
  });
}

doca_error_t doca_sync_event_export_to_remote_net(doca_sync_event* event, const uint8_t** data,
                                                  size_t* sz) {
  if (any_null(event, data, sz)) return DOCA_ERROR_INVALID_VALUE;
  if (event->is_imported() || !event->publishers.remote_net) return DOCA_ERROR_NOT_PERMITTED;
  if (!event->is_started()) return DOCA_ERROR_BAD_STATE;
  if (!event->export_net) {
    doca_dev* const dev = rdma_device_of(*event);
    if (dev == nullptr) return DOCA_ERROR_NOT_SUPPORTED;
    const doca_error_t result = guarded(__func__, [&] { export_to_peers(*event, *dev); });
    if (result != DOCA_SUCCESS) return result;
  }
  give(event->export_net->blob(), data, sz);
  return DOCA_SUCCESS;
}

doca_error_t doca_sync_event_remote_net_create_from_export(doca_dev* dev, const uint8_t* data,
                                                           size_t sz,
                                                           doca_sync_event_remote_net** event) {
  if (any_null(dev, data, event)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t supported =
      doca_sync_event_cap_remote_net_is_create_from_export_supported(&dev->info);
  if (supported != DOCA_SUCCESS) return supported;
  return guarded(__func__, [&] {
    *event = new doca_sync_event_remote_net{DeviceUse(*dev),
                                            offload::rdma::import_sync_event(bytes_of(data, sz))};
  });
}

doca_error_t doca_sync_event_remote_net_destroy(doca_sync_event_remote_net* event) {
  if (event == nullptr) return DOCA_ERROR_INVALID_VALUE;
  delete event;
  return DOCA_SUCCESS;
}

doca_error_t doca_sync_event_cap_is_export_to_remote_pci_supported(const doca_devinfo* devinfo) {
  return can_export(__func__, devinfo, ExportTarget::process);
}

doca_error_t doca_sync_event_cap_is_create_from_export_supported(const doca_devinfo* devinfo) {
  return can_export(__func__, devinfo, ExportTarget::process);
}

doca_error_t doca_sync_event_cap_is_export_to_remote_net_supported(const doca_devinfo* devinfo) {
  return can_export(__func__, devinfo, ExportTarget::peer);
}

doca_error_t doca_sync_event_cap_remote_net_is_create_from_export_supported(
    const doca_devinfo* devinfo) {
  return can_export(__func__, devinfo, ExportTarget::peer);
}

doca_error_t doca_sync_event_cap_is_export_to_gpu_supported(const doca_devinfo* devinfo) {
  return devinfo == nullptr ? DOCA_ERROR_INVALID_VALUE : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_sync_event_cap_task_get_is_supported(const doca_devinfo* devinfo) {
  return has_task(devinfo);
}

doca_error_t doca_sync_event_cap_task_notify_set_is_supported(const doca_devinfo* devinfo) {
  return has_task(devinfo);
}

doca_error_t doca_sync_event_cap_task_notify_add_is_supported(const doca_devinfo* devinfo) {
  return has_task(devinfo);
}

doca_error_t doca_sync_event_cap_task_wait_eq_is_supported(const doca_devinfo* devinfo) {
  return has_task(devinfo);
}

doca_error_t doca_sync_event_cap_task_wait_neq_is_supported(const doca_devinfo* devinfo) {
  return has_task(devinfo);
}

doca_error_t doca_sync_event_get(doca_sync_event* event, uint64_t* value) {
  if (any_null(event, value)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result = may_be_called(event);
  if (result == DOCA_SUCCESS) *value = event->event.get();
  return result;
}

doca_error_t doca_sync_event_update_set(doca_sync_event* event, uint64_t value) {
  const doca_error_t result = may_be_called(event);
  if (result == DOCA_SUCCESS) event->event.set(value);
  return result;
}

doca_error_t doca_sync_event_update_add(doca_sync_event* event, uint64_t value, uint64_t* fetched) {
  if (any_null(event, fetched)) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t result = may_be_called(event);
  if (result == DOCA_SUCCESS) *fetched = event->event.add(value);
  return result;
}

doca_error_t doca_sync_event_wait_gt(doca_sync_event* event, uint64_t value, uint64_t mask) {
  return wait_greater(event, value, mask, WaitMode::spin);
}

doca_error_t doca_sync_event_wait_gt_yield(doca_sync_event* event, uint64_t value, uint64_t mask) {
  return wait_greater(event, value, mask, WaitMode::yield);
}

doca_error_t doca_sync_event_wait_eq(doca_sync_event* event, uint64_t value, uint64_t mask) {
  return wait_compared(event, true, value, mask, WaitMode::spin);
}

doca_error_t doca_sync_event_wait_eq_yield(doca_sync_event* event, uint64_t value, uint64_t mask) {
  return wait_compared(event, true, value, mask, WaitMode::yield);
}

doca_error_t doca_sync_event_wait_neq(doca_sync_event* event, uint64_t value, uint64_t mask) {
  return wait_compared(event, false, value, mask, WaitMode::spin);
}

doca_error_t doca_sync_event_wait_neq_yield(doca_sync_event* event, uint64_t value, uint64_t mask) {
  return wait_compared(event, false, value, mask, WaitMode::yield);
}
