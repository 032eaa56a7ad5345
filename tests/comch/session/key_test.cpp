#include "comch/session/key.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

using core::ErrorCode;
using protocol::Nonce;

class KeyFile : public testing::Test {
 protected:
  std::string write(const std::string& text, mode_t mode = 0600) {
    std::string path = dir_.file("key");
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  void expect_refused(const std::string& path, ErrorCode code, const std::string& part) {
    const auto error = support::thrown_by([&] { load_key(path); });
    EXPECT_EQ(error.code(), code);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
  }

  support::TempDir dir_;
};

TEST_F(KeyFile, IsTakenAsItIs) {
  const std::string text = std::string("\0\n", 2) + "fourteen bytes" + "\n";
  const Key key = load_key(write(text));
  ASSERT_EQ(key.size(), text.size());
  EXPECT_TRUE(std::equal(key.begin(), key.end(), std::as_bytes(std::span(text)).begin()));
}

TEST_F(KeyFile, HasALeastAndAGreatestSize) {
  EXPECT_EQ(load_key(write(std::string(16, 'x'))).size(), 16U);
  EXPECT_EQ(load_key(write(std::string(4096, 'x'))).size(), 4096U);
  for (const std::size_t size : {0U, 15U, 4097U, 100'000U}) {
    expect_refused(write(std::string(size, 'x')), ErrorCode::invalid_value, "16 to 4096 bytes");
  }
}

TEST_F(KeyFile, IsItsOwnersAlone) {
  for (const mode_t mode : {0640U, 0604U, 0620U, 0666U}) {
    expect_refused(write(std::string(32, 'x'), mode), ErrorCode::not_permitted, "chmod 600");
  }
}

TEST_F(KeyFile, HasToBeThere) {
  expect_refused(dir_.file("nothing"), ErrorCode::not_found, "cannot read the key file");
}

TEST(Mac, DependsOnAllThatItIsMadeOf) {
  const Key key(32, std::byte{1});
  Nonce one{};
  Nonce other{};
  other[31] = std::byte{1};
  const auto mac = make_mac(key, Role::worker, one, other);
  EXPECT_EQ(make_mac(key, Role::worker, one, other), mac);
  EXPECT_NE(make_mac(key, Role::server, one, other), mac);
  EXPECT_NE(make_mac(key, Role::worker, other, one), mac);
  EXPECT_NE(make_mac(Key(32, std::byte{2}), Role::worker, one, other), mac);
  EXPECT_NE(make_mac(Key(33, std::byte{1}), Role::worker, one, other), mac);
  EXPECT_NE(make_mac({}, Role::worker, one, other), mac);
}

TEST(Random, IsNeverTheSame) {
  Nonce one{};
  Nonce other{};
  randomize(one);
  randomize(other);
  EXPECT_NE(one, other);
  EXPECT_NE(one, Nonce{});
}

TEST(EqualInSecret, IsEqual) {
  const Nonce one{std::byte{1}};
  Nonce other = one;
  EXPECT_TRUE(equal_in_secret(one, other));
  other[31] = std::byte{1};
  EXPECT_FALSE(equal_in_secret(one, other));
  EXPECT_FALSE(equal_in_secret(one, std::span(one).first(31)));
}

}  // namespace
}  // namespace offload::comch
