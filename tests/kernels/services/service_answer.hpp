#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "kernels/group.hpp"
#include "kernels/message.hpp"
#include "tests/kernels/reference.hpp"

namespace offload::kernels::test {

inline Octets octets_of(std::string_view text) {
  return {text.begin(), text.end()};
}

/// Returns a service's answer to `request`, given by a group of one as FlatResponse: without a
/// channel.
template <class Service>
Octets answer_of(const Service& service, const Octets& request) {
  const auto length = static_cast<std::uint32_t>(request.size());
  const auto rounded = [](std::uint32_t bytes) { return (bytes + 15) / 16; };
  std::vector<Block> from(rounded(length) + 2);  // kSlack before and behind
  auto* const payload = reinterpret_cast<std::uint8_t*>(from.data() + 1);
  std::copy(request.begin(), request.end(), payload);
  const std::uint32_t answered = Service::response_length(length);
  std::vector<Block> to(rounded(answered));
  auto* const response = reinterpret_cast<std::uint8_t*>(to.data());
  service(SingleLane{}, Request(payload, length), FlatResponse(response, answered));
  return {response, response + answered};
}

}  // namespace offload::kernels::test
