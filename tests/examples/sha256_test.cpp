#include <openssl/sha.h>

#include "tests/examples/example_body.hpp"
//
#include "examples/services/sha256/sha256.cu"

namespace offload::kernels::test {
namespace {

Octets sha256_by_openssl(const Octets& message) {
  Octets digest(SHA256_DIGEST_LENGTH);
  SHA256(message.data(), message.size(), digest.data());
  return digest;
}

}  // namespace

TEST(Sha256Example, AnswersAsOpenSsl) {
  expect_example_right<HostRunner>(Sha256{}, example_messages(), kExampleLongest,
                                   sha256_by_openssl);
}

TEST(Sha256Example, AnswersAsOpenSslByAWarp) {
  expect_example_right<ExampleWarp>(Sha256{}, example_messages(13), kExampleLongest,
                                    sha256_by_openssl);
}

}  // namespace offload::kernels::test
