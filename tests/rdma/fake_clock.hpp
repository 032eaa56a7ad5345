#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>

#include "tests/rdma/fake_verbs.hpp"

namespace offload::rdma::test {

/// The clock of the fake device.
struct FakeClock {
  std::uint64_t kilohertz = 156'250;  ///< 0: there is none
  std::uint64_t cycles = 0;
  bool is_read = true;  ///< the driver says that it has read it
  int error = 0;        ///< of each reading
};

inline FakeClock& fake_clock() {
  static FakeClock clock;
  return clock;
}

/// Gives a clock to the devices that are opened after it.
inline void give_clock() {
  fake_clock() = {};
  fake().extend = [](verbs_context& context) {
    context.query_device_ex = [](ibv_context*, const ibv_query_device_ex_input*,
                                 ibv_device_attr_ex* attributes, std::size_t) {
      *attributes = {};
      attributes->hca_core_clock = fake_clock().kilohertz;
      return 0;
    };
    context.query_rt_values = [](ibv_context*, ibv_values_ex* values) {
      values->comp_mask = fake_clock().is_read ? IBV_VALUES_MASK_RAW_CLOCK : 0;
      values->raw_clock = {0, static_cast<long>(fake_clock().cycles)};
      return fake_clock().error;
    };
  };
}

}  // namespace offload::rdma::test
