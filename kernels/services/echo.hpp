#pragma once

#include "kernels/message.hpp"

namespace offload::kernels {

/// Answers with the request itself.
struct Echo {
  static constexpr const char* kName = "echo";

  OFFLOAD_HOST_DEVICE static std::uint32_t response_length(std::uint32_t length) { return length; }

  template <class Group, class Response>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, const Request& request,
                                      const Response& response) const {
    response.fill(group, [&](std::uint32_t offset) {
      return request.template block<Response::kAlignment>(offset);
    });
  }
};

}  // namespace offload::kernels
