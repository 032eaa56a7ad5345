#include "gpu/error.hpp"

#include <gtest/gtest.h>

#include "tests/support/thrown.hpp"

namespace offload::gpu {
namespace {

TEST(CheckCuda, ASuccessPasses) {
  EXPECT_NO_THROW(check_cuda(cudaSuccess, "nothing"));
}

TEST(CheckCuda, AFailureNamesActionAndCause) {
  const auto error = support::thrown_by([] { check_cuda(cudaErrorInvalidValue, "cudaFancy"); });
  EXPECT_EQ(error.code(), core::ErrorCode::driver);
  EXPECT_EQ(std::string(error.what()).rfind("cudaFancy: ", 0), 0U) << error.what();
  EXPECT_EQ(error.cause().domain, core::Cause::Domain::cuda);
  EXPECT_EQ(error.cause().status, static_cast<int>(cudaErrorInvalidValue));
}

}  // namespace
}  // namespace offload::gpu
