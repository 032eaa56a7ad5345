#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"

/// Sub-commands of a command line.
namespace offload::cli {
namespace {

/// A program with two sub-commands.
struct Tool {
  std::string file;
  std::vector<std::string> names{};
  bool copied = false;
  bool removed = false;

  std::optional<Leave> parse(std::vector<const char*> arguments) {
    CommandLine line("the-tool", "What it is.");
    CommandLine& copy = line.add_command("copy", "Copy a file", "\nAn example of copy.");
    add_text(copy, "FILE", file, "What to copy").required();
    const auto take = [this](const std::string& text) {
      names.push_back(text);
      return text != "bad";
    };
    add_values(copy, "--name", take, "a good name", "Under which name").one_each();
    CommandLine& remove = line.add_command("remove", "Remove it");
    arguments.insert(arguments.begin(), "the-tool");
    auto leave = line.parse(static_cast<int>(arguments.size()), arguments.data());
    copied = copy.said();
    removed = remove.said();
    return leave;
  }
};

TEST(Commands, OneOfThemIsSaid) {
  Tool tool;
  EXPECT_FALSE(tool.parse({"copy", "--name", "a", "the-file", "--name", "b"}));
  EXPECT_TRUE(tool.copied);
  EXPECT_FALSE(tool.removed);
  EXPECT_EQ(tool.file, "the-file");
  EXPECT_EQ(tool.names, (std::vector<std::string>{"a", "b"}));
}

TEST(Commands, CommonOptionsMayFollowTheCommand) {
  CommandLine line("the-tool", "What it is.");
  std::string where = "here";
  add_text(line, "--where", where, "Where");
  line.add_command("copy", "Copy a file");
  const std::array<const char*, 4> arguments{"the-tool", "copy", "--where", "there"};
  EXPECT_FALSE(line.parse(4, arguments.data()));
  EXPECT_EQ(where, "there");
}

TEST(Commands, WhatIsWrongIsOneLine) {
  for (const std::vector<const char*>& wrong : std::vector<std::vector<const char*>>{
           {}, {"copy"}, {"copy", "file", "--name", "bad"}, {"paste"}, {"remove", "--name", "a"}}) {
    const auto leave = Tool().parse(wrong);
    ASSERT_TRUE(leave);
    EXPECT_EQ(leave->status, kUsageError);
    EXPECT_EQ(leave->text.rfind("the-tool: ", 0), 0U) << leave->text;
    EXPECT_EQ(leave->text.find('\n'), std::string::npos) << leave->text;
  }
}

TEST(Commands, AMisspeltWordIsNamedWithWhatWasMeant) {
  const auto said = [](const std::vector<const char*>& words) {
    return Tool().parse(words).value_or(Leave{}).text;
  };
  const std::string rest = " (--help lists what is allowed)";
  // The option that is required is there, misspelt.
  EXPECT_EQ(said({"copy", "--nmae=a"}),
            "the-tool: unknown option '--nmae'; did you mean --name?" + rest);
  EXPECT_EQ(said({"copy", "file", "--zzz"}), "the-tool: unknown option '--zzz'" + rest);
  EXPECT_EQ(said({"copyy", "file"}),
            "the-tool: unknown command 'copyy'; did you mean copy?" + rest);
  EXPECT_EQ(said({"remove", "file"}), "the-tool: unexpected argument 'file'" + rest);
}

TEST(Commands, WordsOfOtherProgramsAreAnswered) {
  const auto said = [](const std::vector<const char*>& words) {
    return Tool().parse(words).value_or(Leave{}).text;
  };
  const std::string rest = " (--help lists what is allowed)";
  EXPECT_EQ(said({}), "the-tool: a command is required: copy, remove" + rest);
  EXPECT_EQ(said({"help"}), "the-tool: unknown command 'help'; did you mean --help?" + rest);
  EXPECT_EQ(said({"-v"}), "the-tool: unknown option '-v'; did you mean --version?" + rest);
  EXPECT_EQ(said({"start"}),
            "the-tool: unknown command 'start'; the commands are copy, remove" + rest);
  EXPECT_EQ(said({"copy", "file", "--name"}), "the-tool: --name requires a value, TEXT" + rest);
  // There is no --log-level.
  EXPECT_EQ(said({"copy", "file", "--verbose"}), "the-tool: unknown option '--verbose'" + rest);
}

TEST(Commands, EachHasItsHelp) {
  const auto all = Tool().parse({"--help"});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->status, 0);
  EXPECT_NE(all->text.find("remove"), std::string::npos) << all->text;
  const auto copy = Tool().parse({"copy", "--help"});
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->status, 0);
  EXPECT_NE(copy->text.find("--name"), std::string::npos) << copy->text;
  EXPECT_NE(copy->text.find("An example of copy."), std::string::npos) << copy->text;
}

}  // namespace
}  // namespace offload::cli
