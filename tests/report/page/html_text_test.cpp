#include "apps/report/page/html_text.hpp"

#include <gtest/gtest.h>

namespace offload::report {
namespace {

TEST(HtmlText, EscapesMarkupAndControl) {
  EXPECT_EQ(html_text("<a href=\"x\" b='y'>&amp;"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
  EXPECT_EQ(html_text("a\nb\x1b[2J"), "a\\x0ab\\x1b[2J");
  EXPECT_EQ(html_text(std::string{'\xe2', '\x80', '\xae'}), "\\u{202e}");
  EXPECT_EQ(html_text("\xff"), "\\xff");
  EXPECT_LT(html_text(std::string(100'000, '<')).size(), 2000U);
}

TEST(HtmlText, CommandsAreQuotedAsAShellTakesThem) {
  EXPECT_EQ(html_command("--size=64"), "--size=64");
  EXPECT_EQ(html_command("two words"), "&#39;two words&#39;");
  EXPECT_EQ(html_command(""), "&#39;&#39;");
  EXPECT_EQ(html_command("$(x)"), "&#39;$(x)&#39;");
  EXPECT_EQ(html_command("it's"), "&#39;it&#39;\\&#39;&#39;s&#39;");
  EXPECT_EQ(html_command("&"), "&amp;");
  EXPECT_TRUE(html_command(std::string(300, '$')).ends_with("...&#39;")) << "cut, but closed";
}

TEST(HtmlText, PolicyHash) {
  // printf %s 'alert(1)' | openssl dgst -sha256 -binary | base64
  EXPECT_EQ(policy_hash("alert(1)"), "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='");
}

}  // namespace
}  // namespace offload::report
