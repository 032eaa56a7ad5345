#include "tests/comch/conformance/suite.hpp"

namespace offload::comch::conformance {
namespace {

const TestedTransport kStream{
    "stream", [](const std::string& folder) { return with_key("stream:" + folder + "/comch"); }};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Stream, Sessions, testing::Values(kStream), name_of);
INSTANTIATE_TEST_SUITE_P(Stream, Lies, testing::Values(kStream), name_of);

}  // namespace offload::comch::conformance
