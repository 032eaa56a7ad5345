#include "apps/client/requests/payload.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "apps/client/requests/size_mix.hpp"
#include "core/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::client {
namespace {

TEST(Payload, Kinds) {
  EXPECT_EQ(Payload::parse("random")->kind, Payload::Kind::random);
  EXPECT_EQ(Payload::parse("constant:255")->value, std::byte{255});
  EXPECT_EQ(Payload::parse("file:a:b")->path, "a:b");
  for (const char* text : {"", "zeros", "constant", "constant:", "constant:256", "constant:-1",
                           "constant:1x", "file:", "file"}) {
    EXPECT_FALSE(Payload::parse(text)) << text;
  }
}

TEST(Payload, AFileIsRead) {
  const support::TempDir directory;
  auto payload = Payload::parse("file:" + directory.file("data")).value();
  EXPECT_EQ(support::thrown_by([&] { payload.load(); }).code(), core::ErrorCode::not_found);
  directory.write("data", "abc");
  payload.load();
  EXPECT_TRUE(std::ranges::equal(payload.content, support::bytes_of("abc")));
}

TEST(Payload, AFileMayHaveTheLongestMessage) {
  const support::TempDir directory;
  directory.write("data", std::string(kLongestMessage, 'x'));
  auto payload = Payload::parse("file:" + directory.file("data")).value();
  payload.load();
  EXPECT_EQ(payload.content.size(), kLongestMessage);
}

TEST(Payload, AFileThatIsEmptyOrTooLongIsRefused) {
  const support::TempDir directory;
  auto payload = Payload::parse("file:" + directory.file("data")).value();
  for (const std::size_t size : {std::size_t{0}, std::size_t{kLongestMessage} + 1}) {
    directory.write("data", std::string(size, 'x'));
    EXPECT_EQ(support::thrown_by([&] { payload.load(); }).code(), core::ErrorCode::invalid_value);
  }
}

}  // namespace
}  // namespace offload::client
