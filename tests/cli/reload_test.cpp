#include "cli/reload.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"

namespace offload::cli {
namespace {

TEST(Reload, ReadsAllBeforeItChangesAnything) {
  const support::LogCapture log;
  std::string order;
  Reload reload;
  for (const char* name : {"a", "b"}) {
    reload.add([&order, name] {
      order += name;
      return Reload::Change{[&order, name] { order += std::string("!") + name; }};
    });
  }
  EXPECT_TRUE(reload.run());
  EXPECT_EQ(order, "ab!a!b");
  EXPECT_TRUE(log.has("info: SIGHUP: settings and keys were reread: nothing changed"));
}

TEST(Reload, LogsWhatHasChanged) {
  const support::LogCapture log;
  Reload reload;
  reload.add([] { return Reload::Change{[] {}, {"spin 0 -> 1", "threads 1 -> 2"}}; });
  reload.add([] { return Reload::Change{[] {}, {"the content of /key"}}; });
  EXPECT_TRUE(reload.run());
  EXPECT_TRUE(log.has("were reread: spin 0 -> 1, threads 1 -> 2, the content of /key"))
      << log.text();
}

TEST(Reload, AFileWithAnotherContentIsNamedAndNotShown) {
  const support::TempDir folder;
  const std::string key = folder.file("key");
  std::ofstream(key) << "secret";
  const FileDigests before = digests_of({key, ""});
  EXPECT_EQ(before.size(), 1U);
  EXPECT_TRUE(changed_files(before, digests_of({key})).empty());
  std::ofstream(key) << "secrex";
  EXPECT_EQ(changed_files(before, digests_of({key})),
            std::vector<std::string>{"the content of " + key});
  ASSERT_EQ(::unlink(key.c_str()), 0);
  ASSERT_EQ(::mkfifo(key.c_str(), 0600), 0);
  EXPECT_EQ(changed_files(before, digests_of({key})).size(), 1U) << "without waiting for a writer";
}

TEST(Reload, TheEndOfALongFileIsCompared) {
  const support::TempDir folder;
  const std::string list = folder.file("list");
  const std::string most(std::size_t{2} << 20, 'x');
  std::ofstream(list) << most << 'a';
  const FileDigests before = digests_of({list});
  std::ofstream(list) << most << 'b';
  EXPECT_EQ(changed_files(before, digests_of({list})).size(), 1U);
}

TEST(Reload, AllOfAFileIsCompared) {
  const support::TempDir folder;
  const std::string key = folder.file("key");
  const auto digest_of = [&](const std::string& begin, std::size_t same, const std::string& end) {
    std::ofstream(key) << begin << std::string(same, 'x') << end;
    return digests_of({key});
  };
  for (const std::size_t same : {std::size_t{0}, std::size_t{4096}, std::size_t{100'000}}) {
    EXPECT_NE(digest_of("", same, "1"), digest_of("", same, "2")) << same;
    EXPECT_NE(digest_of("1", same, ""), digest_of("2", same, "")) << same;
  }
}

TEST(Reload, AFileThatIsGoneOrBackHasChanged) {
  const support::TempDir folder;
  const std::string key = folder.file("key");
  const FileDigests missing = digests_of({key});
  std::ofstream(key).close();
  const FileDigests empty = digests_of({key});
  EXPECT_EQ(changed_files(missing, empty).size(), 1U);
  ASSERT_EQ(::unlink(key.c_str()), 0);
  EXPECT_EQ(changed_files(empty, digests_of({key})).size(), 1U);
  EXPECT_TRUE(changed_files(missing, digests_of({key})).empty());
}

TEST(Reload, OneThatIsWrongChangesNothing) {
  const support::LogCapture log;
  bool changed = false;
  Reload reload;
  reload.add([&] { return Reload::Change{[&] { changed = true; }}; });
  reload.add([]() -> Reload::Change {
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
