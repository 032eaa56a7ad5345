#include <vector>

#include "kernels/module/service_module.hpp"

using offload::kernels::Block;
using offload::kernels::Request;
using offload::kernels::ServiceSetup;

/// Reads out of bounds, as an unchecked index from a client would: the table has 255 bytes, and a
/// request that begins with X reads byte 300.
struct OutOfBounds {
  static constexpr const char* kName = "out_of_bounds";

  const std::uint8_t* table;

  OFFLOAD_HOST_DEVICE static std::uint32_t response_length(std::uint32_t) { return 4; }

  static OutOfBounds make(const ServiceSetup& setup) {
    OutOfBounds made{};
    made.table = setup.copy(std::vector<std::uint8_t>(255, 1));
    return made;
  }

  template <class Group, class Response>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, const Request& request,
                                      const Response& response) const {
    const bool is_wrong = request.length() != 0 && request.byte(0) == 'X';
    const std::uint32_t read = table[is_wrong ? 300 : 7];
    response.fill(group, [&](std::uint32_t) { return Block{{read, 0, 0, 0}}; });
  }
};

OFFLOAD_SERVICE_MODULE(OutOfBounds);
