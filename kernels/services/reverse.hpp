#pragma once

#include "kernels/message.hpp"

namespace offload::kernels {

/// Answers with the request's bytes in reverse order.
struct Reverse {
  static constexpr const char* kName = "reverse";

  OFFLOAD_HOST_DEVICE static std::uint32_t response_length(std::uint32_t length) { return length; }

  template <class Group, class Response>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, const Request& request,
                                      const Response& response) const {
    // The block from `offset` on mirrors the one that ends `offset` bytes before the request's end.
    const std::int64_t last =
        static_cast<std::int64_t>(request.length()) - static_cast<std::int64_t>(sizeof(Block));
    if (Response::kAlignment == sizeof(Block) && request.length() % sizeof(Block) == 0) {
      response.fill(group, [&](std::uint32_t offset) {
        return reversed(request.template block<sizeof(Block)>(last - offset));
      });
    } else {
      response.fill(group,
                    [&](std::uint32_t offset) { return reversed(request.block(last - offset)); });
    }
  }
};

}  // namespace offload::kernels
