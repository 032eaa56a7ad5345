#include "tests/comch/conformance/suite.hpp"

namespace offload::comch::conformance {

INSTANTIATE_TEST_SUITE_P(Unix, Sessions,
                         testing::Values(Transport{
                             "unix",
                             [](const std::string& folder) { return Address{folder + "/comch"}; }}),
                         name_of);

}  // namespace offload::comch::conformance
