#include "apps/client/requests/request_kind.hpp"

#include <gtest/gtest.h>

#include <string>

namespace offload::client {
namespace {

TEST(RequestKind, HasTheKeysThatAreGiven) {
  const auto plain = RequestKind::parse("a");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->name, "a");
  EXPECT_EQ(plain->weight, 1);
  EXPECT_FALSE(plain->port || plain->sizes || plain->service || plain->verification);
  const auto full = RequestKind::parse("look-up_2:port=7000,weight=0.5,size=4k,service=echo");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->name, "look-up_2");
  EXPECT_EQ(full->port, 7000);
  EXPECT_EQ(full->weight, 0.5);
  EXPECT_EQ(full->sizes->front().bytes, 4096U);
  EXPECT_EQ(full->service, Service::echo);
  EXPECT_EQ(full->text, "look-up_2:port=7000,weight=0.5,size=4k,service=echo");
}

TEST(RequestKind, ACommandMayHaveCommas) {
  const auto kind = RequestKind::parse("a:requests=file,verify=command:tr a,b c=d");
  ASSERT_TRUE(kind);
  EXPECT_EQ(kind->requests_file, "file");
  EXPECT_EQ(kind->verification->argument, "tr a,b c=d");
}

TEST(RequestKind, BothEndsOfARangeBelongToIt) {
  EXPECT_TRUE(RequestKind::parse(std::string(64, 'a')));
  EXPECT_EQ(RequestKind::parse("aA0zZ9-_:port=65535")->port, 65535);
  EXPECT_EQ(RequestKind::parse("a:port=1")->port, 1);
  EXPECT_EQ(RequestKind::parse("a:weight=1000000000")->weight, 1e9);
  EXPECT_FALSE(RequestKind::parse("a:weight=1000000001"));
  EXPECT_EQ(RequestKind::parse("a:size=16m")->sizes->front().bytes, kLongestMessage);
  EXPECT_EQ(RequestKind::parse("a:size=0")->sizes->front().bytes, 0U);
  for (const char* text : {"a/", "a@", "a[", "a`", "a{"}) {
    EXPECT_FALSE(RequestKind::parse(text)) << text;
  }
  EXPECT_TRUE(RequestKind::parse("a:requests=f,verify=recorded"));
}

TEST(RequestKind, OtherTextsAreRefused) {
  for (const std::string text : {"",
                                 ":",
                                 "a b",
                                 "a:port",
                                 "a:port=",
                                 "a:port=0",
                                 "a:port=70000",
                                 "a:weight=0",
                                 "a:weight=-1",
                                 "a:weight=nan",
                                 "a:weight=inf",
                                 "a:size=17m",
                                 "a:size=",
                                 "a:service=upper",
                                 "a:verify=all",
                                 "a:requests=",
                                 "a:other=1",
                                 "a:=1",
                                 "a:size=1,requests=f",
                                 "a:verify=recorded",
                                 "a:service=echo,verify=none",
                                 "a:port=1,,weight=1",
                                 "\xc3\xa4"}) {
    EXPECT_FALSE(RequestKind::parse(text)) << text;
  }
  EXPECT_FALSE(RequestKind::parse(std::string(65, 'a')));
}

}  // namespace
}  // namespace offload::client
