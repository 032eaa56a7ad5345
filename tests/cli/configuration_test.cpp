#include "cli/configuration.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"

namespace offload::cli {
namespace {

/// A program with options of each kind, and a file.
struct Configured {
  std::uint32_t count = 7;
  bool loud = false;
  std::string name = "nobody";
  std::string nick;
  std::vector<std::string> friends{};
  std::string key;
  std::string certificate;
  Configuration configuration{};
  std::string text{};  ///< --print-config's

  std::optional<Leave> parse(std::vector<const char*> arguments) {
    CommandLine line("the-program", "What it is.");
    add_integer<std::uint32_t>(line, "-n,--count", count, 1, 9, "How many");
    add_flag(line, "--loud", loud, "How loud");
    const auto given = add_text(line, "--name", name, "Who").default_str(name);
    add_text(line, "--nick", nick, "Who, for friends").excludes(given);
    const auto take = [this](const std::string& each) {
      friends.push_back(each);
      return each != "nobody";
    };
    add_values(line, "--friend", take, "a name", "Who is a friend");
    const auto secret = add_text(line, "--key", key, "A file");
    add_text(line, "--certificate", certificate, "Another").needs(secret);
    add_foreign(line, "-r,--representor", "there is none");
    add_configuration(line, configuration);
    arguments.insert(arguments.begin(), "the-program");
    auto leave = line.parse(static_cast<int>(arguments.size()), arguments.data());
    if (!leave) {
      configuration.take(line);
      text = configuration_text(line);
    }
    return leave;
  }
};

class ConfigurationTest : public testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(path_) << text; }

  std::optional<Leave> run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), {"--config", path_.c_str()});
    return program_.parse(arguments);
  }
  /// Returns the error about the file, without its path.
  std::string refused(const std::string& text, const std::vector<const char*>& arguments = {}) {
    write(text);
    program_ = {};
    const auto leave = run(arguments);
    if (!leave) return "accepted";
    EXPECT_EQ(leave->status, kUsageError);
    const std::size_t at = leave->text.find(path_);
    return at == std::string::npos ? leave->text : leave->text.substr(at + path_.size());
  }

  const support::TempDir directory_;
  const std::string path_ = directory_.file("settings.toml");
  Configured program_;
};

TEST_F(ConfigurationTest, TheFileSaysWhatTheCommandLineDoesNot) {
  write("count = 3\nloud = true\nname = \"anna\"\nfriend = [\"ben\", \"cleo\"]\n");
  EXPECT_FALSE(run({"-n", "5"}));
  EXPECT_EQ(program_.count, 5U);
  EXPECT_TRUE(program_.loud);
  EXPECT_EQ(program_.name, "anna");
  EXPECT_EQ(program_.friends, (std::vector<std::string>{"ben", "cleo"}));
}

TEST_F(ConfigurationTest, WhatTheCommandLineExcludesIsNotTaken) {
  write("nick = \"annie\"\n");
  EXPECT_FALSE(run({"--name", "anna"}));
  EXPECT_EQ(program_.nick, "");
}

TEST_F(ConfigurationTest, FalseAndAnEmptyListSayNothing) {
  write("loud = false\nfriend = []\n");
  EXPECT_FALSE(run({}));
  EXPECT_FALSE(program_.loud);
  EXPECT_TRUE(program_.friends.empty());
}

TEST_F(ConfigurationTest, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_NE(refused("\ncount = 10").find(":2:1: --count: '10' is not a whole number from 1 to 9"),
            std::string::npos);
  EXPECT_TRUE(
      refused("cuont = 3").starts_with(":1:1: 'cuont' is not an option; did you mean count?"));
  EXPECT_TRUE(refused("representr = 3").starts_with(":1:1: 'representr' is not an option ("))
      << "options of other programs are not offered";
  EXPECT_TRUE(refused("\ncount = ").starts_with(":2:")) << "it is no TOML";
  EXPECT_TRUE(refused(std::string(70'000, ' ')).starts_with(": is longer than 65536 bytes"));
  EXPECT_NE(refused("config = \"x\"").find("'config' is not an option"), std::string::npos);
  for (const char* once : {"check-config", "print-config"}) {
    EXPECT_TRUE(refused(fmt::format("{} = true", once))
                    .starts_with(fmt::format(":1:1: '{}' is not an option", once)));
  }
  EXPECT_NE(refused("help = true").find("'help' is not an option"), std::string::npos);
  EXPECT_NE(refused("version = true").find("'version' is not an option"), std::string::npos);
  EXPECT_NE(refused("count = [1, 2]").find(":1:1: count takes one value"), std::string::npos);
  EXPECT_NE(refused("loud = \"yes\"").find(":1:1: loud must be true or false"), std::string::npos);
  EXPECT_NE(refused("name = \"a\"\nnick = \"b\"").find(":2:1: nick excludes name"),
            std::string::npos);
  EXPECT_NE(refused("certificate = \"c\"").find(":1:1: certificate needs key"), std::string::npos);
  EXPECT_EQ(refused("certificate = \"c\"", {"--key", "k"}), "accepted");
  EXPECT_NE(refused("friend = [\"ben\", \"nobody\"]").find("'nobody' is not a name"),
            std::string::npos);
  EXPECT_NE(
      refused("representor = \"pf0\"").find("option of the reference application: there is none"),
      std::string::npos);
  EXPECT_NE(refused("{\"count\": 1, \"doca_program_flags\": {\"count\": 2}}").find("given twice"),
            std::string::npos);
}

TEST_F(ConfigurationTest, AFileThatIsNotThere) {
  const auto leave = run({});
  ASSERT_TRUE(leave);
  EXPECT_EQ(leave->status, kUsageError);
  EXPECT_NE(leave->text.find("settings.toml was not readable"), std::string::npos);
}

TEST_F(ConfigurationTest, WhatIsPrintedReadsAsTheSame) {
  write("count = 3\nloud = true\nfriend = [\"b\\\"en\\\\\", \"7\"]\n");
  EXPECT_FALSE(run({"--nick", "annie"}));
  const std::string text = program_.text;
  EXPECT_NE(text.find("# How many\ncount = 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("#name = \"nobody\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("#key = \"\""), std::string::npos) << text;
  EXPECT_EQ(text.find("representor"), std::string::npos) << text;
  const Settings before = program_.configuration.settings;
  write(text);
  program_ = {};
  EXPECT_FALSE(run({}));
  EXPECT_TRUE(changed(before, program_.configuration.settings).empty());
  EXPECT_EQ(program_.friends, (std::vector<std::string>{"b\"en\\", "7"}));
}

TEST_F(ConfigurationTest, WhatIsPrintedIsQuotedUnlessItIsAWholeNumber) {
  write("friend = [\"90\", \"9:\", \"09\", \"/1\"]\n");
  EXPECT_FALSE(run({"--name", "a\x01 b\x1f"}));
  const std::string& text = program_.text;
  EXPECT_NE(text.find("\nfriend = [90, \"9:\", \"09\", \"/1\"]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nname = \"a\\u0001 b\\u001f\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# How loud\n#loud = false\n\n"), std::string::npos) << text;
  EXPECT_NE(text.back(), '\n') << "leave() ends its last line";
}

TEST(ConfigurationText, CommentsAreBrokenBetweenWords) {
  const std::string as(47, 'a');
  const std::string bs(46, 'b');
  const auto comment_of = [](const std::string& description) {
    CommandLine line("the-program", "What it is.");
    bool value = false;
    add_flag(line, "--loud", value, description);
    const std::string text = configuration_text(line);
    return text.substr(0, text.find("\n#loud"));
  };
  EXPECT_EQ(comment_of(as + ' ' + bs), "# " + as + ' ' + bs) << "96 characters fit";
  EXPECT_EQ(comment_of(as + ' ' + bs + 'b'), "# " + as + "\n# " + bs + 'b');
  EXPECT_EQ(comment_of(as + ' ' + bs + ' ' + as + ' ' + bs + " c"),
            "# " + as + ' ' + bs + "\n# " + as + ' ' + bs + "\n# c");
  EXPECT_EQ(comment_of("c " + as + ' ' + bs), "# c " + as + "\n# " + bs);
  EXPECT_EQ(comment_of("a\nb"), "# a b");
}

TEST_F(ConfigurationTest, ChecksOrPrintsOnlyIfThatIsAsked) {
  EXPECT_FALSE(program_.parse({}));
  EXPECT_FALSE(program_.configuration.check);
  EXPECT_FALSE(program_.configuration.print);
  EXPECT_FALSE(program_.parse({"--check-config"}));
  EXPECT_TRUE(program_.configuration.check);
  EXPECT_FALSE(program_.configuration.print);
  program_ = {};
  EXPECT_FALSE(program_.parse({"--print-config"}));
  EXPECT_FALSE(program_.configuration.check);
  EXPECT_TRUE(program_.configuration.print);
}

// SIGHUP has them read again.
TEST_F(ConfigurationTest, WhatIsTakenReplacesWhatWasTakenBefore) {
  EXPECT_FALSE(program_.parse({"-n", "2"}));
  const std::size_t defaults = program_.configuration.defaults.size();
  EXPECT_FALSE(program_.parse({"-n", "3"}));
  EXPECT_EQ(program_.configuration.to_string(), "count 3 (command line)");
  EXPECT_EQ(program_.configuration.defaults.size(), defaults);
  const auto count = std::ranges::find(program_.configuration.defaults, "count", &Setting::name);
  ASSERT_NE(count, program_.configuration.defaults.end());
  EXPECT_FALSE(count->values.front().empty());
}

TEST_F(ConfigurationTest, SaysWhoSaidWhat) {
  write("loud = true\n");
  EXPECT_FALSE(run({"-n", "2"}));
  EXPECT_EQ(program_.configuration.to_string(),
            "count 2 (command line), loud true (" + path_ + ":1:1)");
  EXPECT_EQ(Configuration{}.to_string(), "all defaults");
}

TEST_F(ConfigurationTest, WarnsOfWhatARestartTakes) {
  support::LogCapture log;
  const Settings before{{"a", {"1"}, ""}, {"b", {"2"}, ""}, {"c", {"3"}, ""}};
  const Settings now{{"a", {"2"}, ""}, {"c", {"3"}, "elsewhere"}, {"d", {"4"}, ""}};
  EXPECT_EQ(changed(before, now), (std::vector<std::string>{"a", "d", "b"}));
  const Settings defaults{{"a", {"0"}, ""}, {"b", {""}, ""}, {"d", {"5"}, ""}};
  Configuration running{.settings = before, .defaults = defaults};
  const Configuration reread{.settings = now, .defaults = defaults};
  EXPECT_EQ(described_changes(running, reread, {"a"}), std::vector<std::string>{"a 1 -> 2"});
  take_changes(running, reread, {"a"});
  EXPECT_TRUE(
      log.has("warning: changes only after a restart: d 5 (default) -> 4, b 2 -> not given"))
      << log.text();
  EXPECT_TRUE(described_changes(running, reread, {"a"}).empty())
      << "it is compared to the last one";
  EXPECT_EQ(changed(running.settings, now), (std::vector<std::string>{"d", "b"}));
  log.clear();
  take_changes(running, reread, {"a", "b", "d"});
  EXPECT_EQ(log.text(), "");
}

}  // namespace
}  // namespace offload::cli
