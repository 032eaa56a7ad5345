#include "comch/keys/key.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "protocol/control.hpp"
#include "tests/comch/keys.hpp"
#include "tests/core/process/rights.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

using core::ErrorCode;
using core::test::kNobody;
using core::test::kOther;
/// A random number that is used once has this length.
using Nonce = std::array<std::byte, 32>;
using test::key_of;

std::string random_text(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t at = 0; at < size; at += 256) {
    randomize(
        std::as_writable_bytes(std::span(text).subspan(at, std::min<std::size_t>(256, size - at))));
  }
  return text;
}

class KeyFile : public testing::Test {
 protected:
  std::string write(const std::string& text, mode_t mode = 0600) {
    std::string path = dir_.file("key");
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  void expect_refused(const std::string& path, ErrorCode code, const std::string& part) {
    const auto error = support::thrown_by([&] { Key::load(path); });
    EXPECT_EQ(error.code(), code);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
  }

  support::TempDir dir_;
};

TEST_F(KeyFile, IsTakenAsItIs) {
  for (const std::size_t size : {32U, 33U, 4096U}) {
    const std::string text = random_text(size);
    const Key key = Key::load(write(text));
    ASSERT_EQ(key.bytes().size(), size);
    EXPECT_TRUE(std::ranges::equal(key.bytes(), std::as_bytes(std::span(text))));
  }
}

TEST_F(KeyFile, HasALeastAndAGreatestSize) {
  for (const std::size_t size : {0U, 16U, 31U, 4097U, 100'000U}) {
    expect_refused(write(random_text(size)), ErrorCode::invalid_value, "32 to 4096 bytes");
  }
}

TEST_F(KeyFile, ThatCanBeGuessedIsRefusedWithTheCommandForAGoodOne) {
  std::string counting = "0123456789abcdef";
  counting += counting;
  for (const std::string& weak :
       {std::string(32, 'x'), std::string(4096, '\0'), counting + counting,
        std::string("correct horse battery staple, 2026!\n")}) {
    expect_refused(write(weak), ErrorCode::invalid_value, "openssl rand -out");
  }
  std::string steps;
  for (int i = 0; i < 256; ++i) steps.push_back(static_cast<char>(i));
  expect_refused(write(steps), ErrorCode::invalid_value, "repeats itself or counts");
}

TEST_F(KeyFile, OfHexadecimalDigitsHasTwiceTheLength) {
  const std::string digits = "9f1c07d25a3be8460f7de2b19c8453a6d0e17b3c92f5484ea6b1d3709c5e82f4\n";
  EXPECT_EQ(Key::load(write(digits)).bytes().size(), digits.size());
  expect_refused(write(digits.substr(0, 44)), ErrorCode::invalid_value, "may be guessed");
  EXPECT_EQ(Key::load(write(digits.substr(0, 64))).bytes().size(), 64U);
  expect_refused(write(digits.substr(0, 63)), ErrorCode::invalid_value, "may be guessed");
  for (const char other : {' ', '~', '\t', '\r', '\n'}) {
    std::string text = digits.substr(0, 44);
    text[20] = other;
    expect_refused(write(text), ErrorCode::invalid_value, "may be guessed");
  }
  for (const char other : {'\x1f', '\x7f', '\0'}) {
    std::string bytes = digits.substr(0, 44);
    bytes[20] = other;
    EXPECT_EQ(Key::load(write(bytes)).bytes().size(), 44U) << "it is no text";
  }
}

TEST(Weakness, AKeyHasTenDifferentBytesAndSteps) {
  constexpr std::array<int, 9> kValues{1, 2, 4, 8, 16, 32, 64, 128, 129};
  constexpr std::array<std::size_t, 32> kOrder{0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 2, 4, 6, 8, 1, 3,
                                               5, 7, 0, 3, 6, 1, 4, 7, 2, 5, 8, 0, 4, 8, 3, 7};
  std::vector<std::byte> bytes;
  for (const std::size_t at : kOrder) bytes.push_back(static_cast<std::byte>(kValues.at(at)));
  EXPECT_EQ(weakness(bytes), "repeats itself or counts, so it may be guessed") << "of nine";
  for (const std::size_t at : {std::size_t{0}, bytes.size() - 1}) {
    auto ten = bytes;
    ten[at] = std::byte{200};
    EXPECT_EQ(weakness(ten), "") << at;
  }
}

// systemd lends a credential of root to a service's user by an access list, whose bound is in the
// bits of the group.
TEST_F(KeyFile, OfRootMayBeLentToTheUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  const auto as_another = [&](const std::string& path) {
    return core::test::as_user(kNobody, [&] {
      try {
        (void)Key::load(path);
      } catch (const core::Error& error) {
        return std::string(error.what());
      }
      return std::string();
    });
  };
  const std::string path = write(random_text(32), 0440);
  EXPECT_EQ(as_another(path), "");
  expect_refused(path, ErrorCode::not_permitted, "chmod 600");  // for root itself
  for (const mode_t mode : {0460U, 0450U, 0444U}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_NE(as_another(path), "") << mode;
  }
  ASSERT_EQ(::chmod(path.c_str(), 0440), 0);
  ASSERT_EQ(::chown(path.c_str(), kOther, 0), 0);
  EXPECT_NE(as_another(path), "") << "it is of another user";
  ASSERT_EQ(::chown(path.c_str(), kNobody, 0), 0);
  EXPECT_NE(as_another(path), "") << "it is the user's own";
  ASSERT_EQ(::chown(path.c_str(), 0, kOther), 0);
  ASSERT_EQ(::setegid(kOther), 0);
  EXPECT_NE(as_another(path), "") << "it is of another group";
  ASSERT_EQ(::setegid(0), 0);
}

TEST_F(KeyFile, IsItsOwnersAlone) {
  for (const mode_t mode : {0640U, 0604U, 0620U, 0610U, 0602U, 0601U, 0666U}) {
    expect_refused(write(random_text(32), mode), ErrorCode::not_permitted, "chmod 600");
  }
}

TEST_F(KeyFile, HasToBeThere) {
  expect_refused(dir_.file("nothing"), ErrorCode::not_found, "; make one by: ");
  const auto error = support::thrown_by([&] { Key::load(dir_.path()); });
  EXPECT_EQ(std::string(error.what()).find("make one by"), std::string::npos) << error.what();
}

TEST(Weakness, NoRandomKeyIsTakenForAWeakOne) {
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_text(32);
    ASSERT_EQ(weakness(std::as_bytes(std::span(text))), "");
  }
}

TEST(Key, IsMovedAndThenEmpty) {
  Key one = key_of(1);
  Key other = std::move(one);
  EXPECT_EQ(other.bytes().size(), 32U);
  EXPECT_TRUE(
      one.bytes().empty());  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  one = std::move(other);
  EXPECT_EQ(one.bytes().size(), 32U);
  EXPECT_EQ(one.bytes().front(), std::byte{1});
  EXPECT_TRUE(Key(std::span<const std::byte>{}).bytes().empty());
}

// msync(2) fails for pages that are not mapped.
TEST(Key, GivesItsPagesUp) {
  std::byte* pages = nullptr;
  {
    Key first = key_of(1);
    Key key = key_of(2);
    key = std::move(first);
    pages = const_cast<std::byte*>(key.bytes().data());
    EXPECT_EQ(::msync(pages, 1, MS_ASYNC), 0);
  }
  EXPECT_EQ(::msync(pages, 1, MS_ASYNC), -1);
}

// "dd" in VmFlags is VM_DONTDUMP: proc(5).
TEST(Key, IsInNoCoreDump) {
  const Key key = key_of(1);
  const auto at = reinterpret_cast<std::uintptr_t>(key.bytes().data());
  std::ifstream maps("/proc/self/smaps");
  bool there = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &end) == 2) there = at >= first && at < end;
    if (there && line.starts_with("VmFlags:")) {
      EXPECT_NE(line.find(" dd"), std::string::npos) << line;
      return;
    }
  }
  FAIL() << "the key's pages are not in smaps";
}

TEST(Hmac, DependsOnAllThatItIsMadeOf) {
  Nonce one{};
  Nonce other{};
  other[31] = std::byte{1};
  const auto mac = hmac(key_of(1), {one, other});
  EXPECT_EQ(hmac(key_of(1), {one, other}), mac);
  EXPECT_NE(hmac(key_of(1), {other, one}), mac);
  EXPECT_NE(hmac(key_of(2), {one, other}), mac);
  EXPECT_NE(hmac(key_of(1, 33), {one, other}), mac);
}

TEST(Fingerprint, TellsKeysApart) {
  EXPECT_EQ(fingerprint(key_of(1)).size(), 16U);
  EXPECT_EQ(fingerprint(key_of(1)), fingerprint(key_of(1)));
  EXPECT_NE(fingerprint(key_of(1)), fingerprint(key_of(2)));
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
