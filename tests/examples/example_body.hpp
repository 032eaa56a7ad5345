#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "kernels/module/service_module.hpp"
#include "tests/kernels/bodies/host_runner.hpp"
#include "tests/kernels/bodies/host_warp.hpp"
#include "tests/kernels/reference.hpp"
#include "tests/kernels/test_channel.hpp"

/// Modules' sources are included in several places: each would export the one function.
#undef OFFLOAD_SERVICE_MODULE
#define OFFLOAD_SERVICE_MODULE(Service) static_assert(sizeof(Service) != 0)

/// Helpers of the tests of examples/services.
namespace offload::kernels::test {

using ExampleOptions = std::vector<std::pair<std::string, std::string>>;

/// A service made on the host as a worker makes it.
template <class Service>
class MadeExample {
 public:
  explicit MadeExample(const ExampleOptions& options = {}) : memory_(kOnCpu) {
    std::vector<ServiceOption> own;
    for (const auto& [key, value] : options) own.push_back({key.c_str(), value.c_str(), false});
    ServiceMaking making{};
    making.device = kOnCpu;
    making.options = own.data();
    making.option_count = own.size();
    ServiceSetup setup(making, memory_);
    if constexpr (HasMake<Service>::value) service_ = Service::make(setup);
  }

  const Service& operator*() const { return service_; }

 private:
  ServiceMemory memory_;
  Service service_{};
};

template <class Service, class Runner>
struct ServeExample {
  const Service* service;
  ChannelView channel;
  std::uint64_t sequence;

  template <class Group>
  void operator()(const Group& group, Staging& staging) const {
    (void)serve(group, channel, sequence, *service, staging);
  }
};

/// Sends one message after the other through a channel and checks the answers.
template <class Runner, class Service, class Expected>
void expect_example_right(const Service& service, const std::vector<Octets>& messages,
                          std::uint32_t max_length, const Expected& expected) {
  TestChannel<Runner> channel(2, max_length);
  std::uint64_t sequence = 0;
  for (const Octets& message : messages) {
    channel.post(sequence, message);
    Runner::run(ServeExample<Service, Runner>{&service, channel.channel(), sequence});
    const auto response = channel.response(sequence);
    ASSERT_TRUE(response.has_value()) << message.size() << " bytes";
    ASSERT_EQ(*response, expected(message)) << message.size() << " bytes";
    ++sequence;
  }
}

using ExampleWarp = HostWarpRunner<32>;

/// Returns a message of each length from 0 to 500, every `step`th, and long ones.
inline std::vector<Octets> example_messages(std::uint32_t step = 1) {
  std::vector<Octets> messages;
  for (std::uint32_t length = 0; length <= 500; length += step) {
    messages.push_back(random_octets(length));
  }
  for (const std::uint32_t length : {1023U, 4096U, 65'537U}) {
    messages.push_back(random_octets(length));
  }
  return messages;
}
inline constexpr std::uint32_t kExampleLongest = 65'537;

}  // namespace offload::kernels::test
