#include "kernels/module/service_module.hpp"

using offload::kernels::Block;
using offload::kernels::Request;

/// Answers with every bit of the request inverted.
struct Complement {
  static constexpr const char* kName = "complement";

  OFFLOAD_HOST_DEVICE static std::uint32_t response_length(std::uint32_t length) { return length; }

  template <class Group, class Response>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, const Request& request,
                                      const Response& response) const {
    response.fill(group, [&](std::uint32_t offset) {
      Block block = request.block(offset);
      for (std::uint32_t& word : block.words) word = ~word;
      return block;
    });
  }
};

OFFLOAD_SERVICE_MODULE(Complement);
