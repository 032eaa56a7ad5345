#include "cli/reload.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "tests/support/log_capture.hpp"

namespace offload::cli {
namespace {

TEST(Reload, ReadsAllBeforeItChangesAnything) {
  const support::LogCapture log;
  std::string order;
  Reload reload;
  for (const char* name : {"a", "b"}) {
    reload.add([&order, name] {
      order += name;
      return [&order, name] { order += std::string("!") + name; };
    });
  }
  EXPECT_TRUE(reload.run());
  EXPECT_EQ(order, "ab!a!b");
  EXPECT_TRUE(log.has("info: SIGHUP"));
}

TEST(Reload, OneThatIsWrongChangesNothing) {
  const support::LogCapture log;
  bool changed = false;
  Reload reload;
  reload.add([&] { return [&] { changed = true; }; });
  reload.add([]() -> Reload::Apply {
    throw core::Error(core::ErrorCode::invalid_value, "the key is too short");
  });
  EXPECT_FALSE(reload.run());
  EXPECT_FALSE(changed);
  EXPECT_TRUE(log.has("error: SIGHUP: nothing was changed: the key is too short")) << log.text();
}

TEST(Reload, OfNothingIsFine) {
  const support::LogCapture log;
  EXPECT_TRUE(Reload().run());
}

}  // namespace
}  // namespace offload::cli
