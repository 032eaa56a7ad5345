#include "tests/comch/conformance/suite.hpp"

namespace offload::comch::conformance {
namespace {

const Transport kTcp{"tcp", [](const std::string&) {
                       return Address{{}, "127.0.0.1", 0, right_key()};
                     }};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Tcp, Sessions, testing::Values(kTcp), name_of);
INSTANTIATE_TEST_SUITE_P(Tcp, Lies, testing::Values(kTcp), name_of);

}  // namespace offload::comch::conformance
