#include "tests/comch/conformance/suite.hpp"

namespace offload::comch::conformance {
namespace {

const TestedTransport kTcp{"tcp", [](const std::string&) { return with_key("tcp:127.0.0.1:0"); }};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Tcp, Sessions, testing::Values(kTcp), name_of);
INSTANTIATE_TEST_SUITE_P(Tcp, Lies, testing::Values(kTcp), name_of);

}  // namespace offload::comch::conformance
