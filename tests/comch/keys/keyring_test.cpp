#include "comch/keys/keyring.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/comch/keys.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

class Keys : public testing::Test {
 protected:
  support::LogCapture log_;
  support::TempDir dir_;
  std::string new_ = dir_.file("new");
  std::string old_ = dir_.file("old");
};

TEST_F(Keys, AreReadInTheirOrder) {
  test::write_key_file(new_);
  test::write_key_file(old_);
  const Keyring both({new_, old_});
  ASSERT_EQ(both.keys().size(), 2U);
  EXPECT_EQ(fingerprint(both.keys()[0]), fingerprint(Key::load(new_)));
  EXPECT_EQ(fingerprint(both.keys()[1]), fingerprint(Key::load(old_)));
  EXPECT_TRUE(Keyring().empty());
  EXPECT_TRUE(Keyring(std::vector<std::string>{}).empty());
}

TEST_F(Keys, AreTwoAtMost) {
  const auto error = support::thrown_by([&] { Keyring({new_, old_, new_}); });
  EXPECT_EQ(error.code(), core::ErrorCode::invalid_value);
}

TEST_F(Keys, AreReadAgain) {
  EXPECT_FALSE(Keyring().reload()) << "there are no files";
  test::write_key_file(new_);
  Keyring keys({new_});
  const std::string before = fingerprint(keys.keys()[0]);
  const unsigned generation = keys.generation();
  test::write_key_file(new_);
  EXPECT_TRUE(keys.reload());
  EXPECT_NE(keys.generation(), generation);
  EXPECT_NE(fingerprint(keys.keys()[0]), before);
  EXPECT_TRUE(log_.has("key " + fingerprint(keys.keys()[0]) + " was read")) << log_.text();
}

TEST_F(Keys, StayWhereAFileIsWrong) {
  test::write_key_file(new_);
  test::write_key_file(old_);
  Keyring keys({new_, old_});
  const std::string before = fingerprint(keys.keys()[0]);
  test::write_key_file(new_);
  std::ofstream(old_) << "short";
  EXPECT_FALSE(keys.reload());
  EXPECT_EQ(fingerprint(keys.keys()[0]), before);
  EXPECT_EQ(keys.keys().size(), 2U);
  EXPECT_TRUE(log_.has("the keys were not changed: the key file " + old_)) << log_.text();
}

}  // namespace
}  // namespace offload::comch
