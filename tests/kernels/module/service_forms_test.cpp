#include "kernels/module/service_forms.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace offload::kernels::test {
namespace {

/// Answers with as many bytes as the option "length" says, from a table of its memory. With the
/// option "throw", making it fails.
struct Made {
  static constexpr const char* kName = "made";

  const std::uint8_t* table;
  std::uint32_t length;

  [[nodiscard]] std::uint32_t response_length(std::uint32_t request) const {
    return length + request;
  }
  static Made make(const ServiceSetup& setup) {
    const std::string thrown = setup.option("throw", "");
    if (thrown == "exception") throw std::runtime_error("no such table");
    if (thrown == "long") throw std::runtime_error(std::string(1000, 'x'));
    if (thrown == "memory") throw std::bad_alloc();
    if (thrown == "number") throw 7;
    return {setup.allocate<std::uint8_t>(300),
            static_cast<std::uint32_t>(std::stoul(setup.option("length", "0")))};
  }
  template <class Group, class Response>
  void operator()(const Group& group, const Request&, const Response& response) const {
    response.fill(group, [](std::uint32_t) { return Block{}; });
  }
};

ServiceMaking making_with(ServiceOption& option) {
  ServiceMaking making{};
  making.device = kOnCpu;
  making.options = &option;
  making.option_count = 1;
  std::strcpy(making.error, "an older error");
  return making;
}

TEST(ServiceForms, AnObjectIsMadeOfItsOptionsAndHasMemory) {
  const ServiceInterface interface = interface_to<Made>();
  EXPECT_EQ(interface.size, sizeof(ServiceInterface));
  EXPECT_EQ(interface.version, kServiceInterface);
  EXPECT_STREQ(interface.name, "made");
  ServiceOption option{"length", "40", false};
  ServiceMaking making = making_with(option);
  void* const object = interface.make(&making);
  ASSERT_NE(object, nullptr) << making.error;
  EXPECT_EQ(making.bytes, 512U);
  EXPECT_STREQ(making.error, "");
  EXPECT_TRUE(option.read);
  EXPECT_EQ(interface.response_length(object, 2), 42U);
  interface.destroy(object);
}

TEST(ServiceForms, WhatAServiceThrowsIsTheReason) {
  for (const auto& [thrown, error] :
       {std::pair{"exception", std::string("no such table")},
        {"long", std::string(511, 'x')},
        {"memory", std::string()},
        {"number", "it threw an object that is not a std::exception"}}) {
    ServiceOption option{"throw", thrown, false};
    ServiceMaking making = making_with(option);
    EXPECT_EQ(interface_to<Made>().make(&making), nullptr) << thrown;
    EXPECT_EQ(std::string_view(making.error), error);
  }
}

#if !defined(__CUDACC__)
TEST(ServiceForms, WithoutCodeForAGpuThereIsNoObjectForOne) {
  ServiceOption option{"length", "40", false};
  ServiceMaking making = making_with(option);
  making.device = 0;
  EXPECT_EQ(interface_to<Made>().make(&making), nullptr);
  EXPECT_STREQ(making.error, "it has no code for a GPU");
  EXPECT_EQ(interface_to<Made>().launch, nullptr);
}
#endif

}  // namespace
}  // namespace offload::kernels::test
