#include "tests/kernels/bodies/host_runner.hpp"
#include "tests/kernels/bodies/services_body.hpp"

namespace offload::kernels::test {

TEST(Services, EachIsFoundByItsNameAndNoOther) {
  for (const auto name : service_names()) {
    int found = 0;
    EXPECT_TRUE(
        with_service(name, [&](auto service) { found += name == service.kName ? 1 : 100; }));
    EXPECT_EQ(found, 1) << name;
  }
  for (const char* name : {"", "rot13", "Reverse", "reverse ", "revers"}) {
    EXPECT_FALSE(with_service(name, [](auto) { FAIL(); })) << name;
  }
}

TEST(Services, ReverseIsTheDefault) {
  EXPECT_EQ(service_names(), (std::vector<std::string_view>{"reverse", "echo", "crc32c"}));
}

// The room that make_layout sets aside for responses.
TEST(Services, AnswersAreNoLongerThanTheLongerOfRequestAndFourPackets) {
  for_each_service([](auto service) {
    for (const std::uint32_t length : {0U, 1U, 48U, 372U, 373U, kMaxMessageLength}) {
      EXPECT_LE(service.response_length(length), std::max(length, 4 * kPacketData));
    }
  });
}

INSTANTIATE_TYPED_TEST_SUITE_P(Host, ServicesRight, testing::Types<HostRunner>);

}  // namespace offload::kernels::test
