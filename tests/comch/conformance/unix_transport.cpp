#include "tests/comch/conformance/suite.hpp"

namespace offload::comch::conformance {
namespace {

const TestedTransport kUnix{
    "unix", [](const std::string& folder) { return Address::parse("unix:" + folder + "/comch"); }};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Unix, Sessions, testing::Values(kUnix), name_of);

}  // namespace offload::comch::conformance
