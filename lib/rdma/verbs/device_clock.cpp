#include "rdma/verbs/device_clock.hpp"

#include "core/error.hpp"

namespace offload::rdma {

using core::Error;
using core::ErrorCode;

DeviceClock::DeviceClock(const DeviceContext& device) : device_(device.get()) {
  ibv_device_attr_ex attributes{};
  const int errnum = errno_of(ibv_query_device_ex(device_, nullptr, &attributes));
  kilohertz_ = errnum == 0 ? attributes.hca_core_clock : 0;
  if (kilohertz_ == 0) {
    throw Error(ErrorCode::not_supported, "RDMA device " + device.name() + " has no clock");
  }
  static_cast<void>(now());
}

std::chrono::nanoseconds DeviceClock::now() const {
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  const int errnum = errno_of(ibv_query_rt_values_ex(device_, &values));
  const bool has_none = errnum == 0 && (values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK) == 0;
  if (has_none || errnum == EOPNOTSUPP || errnum == ENOSYS) {
    throw Error(ErrorCode::not_supported, "the driver of the RDMA device reads no clock");
  }
  if (errnum != 0) core::throw_errno("cannot read the clock of the RDMA device", errnum);
  // A driver leaves the cycles in the nanoseconds.
  const auto cycles = static_cast<std::uint64_t>(values.raw_clock.tv_nsec);
  constexpr std::uint64_t kMillion = 1'000'000;
  const std::uint64_t rest = cycles % kilohertz_ * kMillion / kilohertz_;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(cycles / kilohertz_ * kMillion + rest));
}

}  // namespace offload::rdma
