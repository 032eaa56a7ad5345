#include "core/escape.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace offload::core {
namespace {

TEST(Escape, PrintableTextStaysAsItIs) {
  for (const std::string text : {"", "cuda (NVIDIA H200)", "f\u00fcr Gr\u00f6\u00dfe: 3 \u20ac",
                                 "\u65e5\u672c\u8a9e", "\U0001f600"}) {
    EXPECT_EQ(escaped(text), text);
  }
}

// The first and last characters of each length, and the neighbours of those that are escaped.
TEST(Escape, CharactersAtTheEdgesStay) {
  for (const std::string text :
       {" ",      "~",      "\u00a0", "\u07ff",     "\u0800",     "\u0905",     "\u061b",
        "\u061d", "\u200d", "\u2010", "\u2027",     "\u202f",     "\u2065",     "\u206a",
        "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U000fffff", "\U00100000", "\U0010ffff"}) {
    EXPECT_EQ(escaped(text), text);
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Escape, NoControlCharacterIsLeft) {
  EXPECT_EQ(escaped("a\nb"), "a\\x0ab");
  EXPECT_EQ(escaped("\x1b[2J\x1b]0;title\x07"), "\\x1b[2J\\x1b]0;title\\x07");
  EXPECT_EQ(escaped(std::string("\0\t\r\x7f", 4)), "\\x00\\x09\\x0d\\x7f");
  EXPECT_EQ(escaped("\u009b2J"), "\\u{9b}2J");  // CSI in one character
  EXPECT_EQ(escaped("\x0f\x10\x1f"), "\\x0f\\x10\\x1f");
  EXPECT_EQ(escaped("\u0080\u009f"), "\\u{80}\\u{9f}");
}

// NOLINTBEGIN(misc-misleading-bidirectional): they are what is escaped
TEST(Escape, NothingTurnsOrEndsALine) {
  EXPECT_EQ(escaped("\u202egnp.exe"), "\\u{202e}gnp.exe");
  EXPECT_EQ(escaped("\u2028\u2029\u2066\u200f\u061c"),
            "\\u{2028}\\u{2029}\\u{2066}\\u{200f}\\u{61c}");
  EXPECT_EQ(escaped("\u200e\u202e\u2069"), "\\u{200e}\\u{202e}\\u{2069}");
}
// NOLINTEND(misc-misleading-bidirectional)

TEST(Escape, ABackslashCannotForgeAnEscape) {
  EXPECT_EQ(escaped("\\x1b"), "\\\\x1b");
}

TEST(Escape, WhatIsNoUtf8IsShownByteByByte) {
  EXPECT_EQ(escaped("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(escaped("\x80z"), "\\x80z");
  EXPECT_EQ(escaped("\xc0\xaf"), "\\xc0\\xaf");                    // a longer form of '/'
  EXPECT_EQ(escaped("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");           // another
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(escaped("\xed\xbf\xbf"), "\\xed\\xbf\\xbf");           // the last surrogate
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // over U+10FFFF
  EXPECT_EQ(escaped("\xf8\x90\x80\x80"), "\\xf8\\x90\\x80\\x80");  // a lead of five bytes
  EXPECT_EQ(escaped("\xe2\x82"), "\\xe2\\x82");                    // cut short
  EXPECT_EQ(escaped("\xe2z"), "\\xe2z");
}

TEST(Escape, ALongTextIsCut) {
  EXPECT_EQ(escaped(std::string(kLongestShown, 'a')), std::string(kLongestShown, 'a'));
  EXPECT_EQ(escaped(std::string(kLongestShown + 1, 'a')), std::string(kLongestShown, 'a') + "...");
  // The text is not cut inside a character.
  EXPECT_EQ(escaped(std::string(kLongestShown - 1, 'a') + "\u20ac"),
            std::string(kLongestShown - 1, 'a') + "...");
  EXPECT_LE(escaped(std::string(1U << 20, '\xff')).size(), 4 * kLongestShown + 3);
}

TEST(Escape, WhateverComesOnlyPrintableBytesGo) {
  std::mt19937 source(1);
  std::uniform_int_distribution<int> byte(0, 255);
  for (int round = 0; round < 2000; ++round) {
    std::string text(64, '\0');
    std::generate(text.begin(), text.end(), [&] { return static_cast<char>(byte(source)); });
    const auto shown = escaped(text);
    EXPECT_TRUE(std::none_of(shown.begin(), shown.end(), [](char each) {
      return (each >= 0 && each < 0x20) || each == 0x7f;
    })) << shown;
  }
}

TEST(Printable, LinesTabsAndBackslashesStay) {
  const std::string text = "# HELP a \"b\"\n{\"c\":\t\"\\u00e9 \u00e9\"}\n";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable(std::string(5000, 'x')), std::string(5000, 'x'));  // nothing is cut
}

TEST(Printable, WhatCommandsATerminalIsEscapedAsInJson) {
  EXPECT_EQ(printable("\x1b]0;owned\x07\r\n"), "\\u001b]0;owned\\u0007\\u000d\n");
  EXPECT_EQ(printable("\u009b2J\x7f"), "\\u009b2J\\u007f");
  EXPECT_EQ(printable("\xff"), "\\ufffd");
  EXPECT_EQ(printable("\x80z\xe2z"), "\\ufffdz\\ufffdz");
  EXPECT_EQ(printable("\xe2zz"), "\\ufffdzz");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\ufffd\\ufffd\\ufffd");
  // NOLINTNEXTLINE(misc-misleading-bidirectional): it is what is escaped
  EXPECT_EQ(printable("\u202e"), "\\u202e");
}

}  // namespace
}  // namespace offload::core
