#include "comch/address.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

TEST(Address, APathOfTheFileSystem) {
  for (const std::string path : {"/run/x.sock", "relative", " ", "unix:"}) {
    const auto address = Address::parse("unix:" + path);
    EXPECT_EQ(address.path, path);
    EXPECT_EQ(address.to_string(), "unix:" + path);
    EXPECT_EQ(check_address("unix:" + path), "");
  }
}

TEST(Address, AsLongAsTheSystemTakes) {
  EXPECT_EQ(Address::parse("unix:" + std::string(107, 'x')).path.size(), 107U);
  const auto error = support::thrown_by([] { Address::parse("unix:" + std::string(108, 'x')); });
  EXPECT_NE(std::string(error.what()).find("longer than 107 bytes"), std::string::npos);
}

TEST(Address, NothingElse) {
  for (const std::string text :
       {"", "unix:", "unix", "/run/x.sock", "UNIX:/x", " unix:/x", "rdma:", "tcp:", "tcp:host",
        "tcp::1", "tcp:host:", "tcp:host:x", "tcp:host:65536", "tcp:host:-1", "tcp:host:1 ",
        "rdma:host", "rdma::1", "rdma:host:", "udp:host:1"}) {
    const auto error = support::thrown_by([&] { Address::parse(text); });
    EXPECT_EQ(error.code(), core::ErrorCode::invalid_value);
    EXPECT_NE(std::string(error.what()).find("'" + text + "'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("allowed: unix:PATH"), std::string::npos);
    EXPECT_EQ(check_address(text), error.what());
  }
}

TEST(Address, AHostAndAPort) {
  const auto named = Address::parse("tcp:dpu.example:4711");
  EXPECT_FALSE(named.local());
  EXPECT_EQ(named.host, "dpu.example");
  EXPECT_EQ(named.port, 4711);
  EXPECT_EQ(named.to_string(), "tcp:dpu.example:4711");
  const auto v6 = Address::parse("tcp:[fe80::1]:0");
  EXPECT_EQ(v6.host, "[fe80::1]");
  EXPECT_EQ(v6.port, 0);
  EXPECT_TRUE(Address::parse("unix:/x").local());
}

TEST(Address, OverRdmaTheSame) {
  const auto address = Address::parse("rdma:10.0.0.1:7471");
  EXPECT_FALSE(address.local());
  EXPECT_EQ(address.scheme, "rdma");
  EXPECT_EQ(Address::parse("tcp:10.0.0.1:7471").scheme, "tcp");
  EXPECT_EQ(address.host, "10.0.0.1");
  EXPECT_EQ(address.port, 7471);
  EXPECT_EQ(address.to_string(), "rdma:10.0.0.1:7471");
}

TEST(Address, AChannelsNameStandsForOne) {
  const std::string folder = default_address().substr(0, default_address().rfind('/') + 1);
  EXPECT_EQ(address_of_name("dpu_gpu"), folder + "dpu_gpu.sock");
  for (const std::string& name :
       {std::string(), std::string("a/b"), std::string("../x"), std::string(108, 'x')}) {
    EXPECT_EQ(address_of_name(name), std::nullopt) << name;
  }
}

TEST(Address, OverANetworkThereIsAKeyOrAWarning) {
  const support::LogCapture log;
  for (const std::string text : {"tcp:127.0.0.1:1", "tcp:[::1]:1", "rdma:10.0.0.1:1"}) {
    const auto error = support::thrown_by([&] { make_address(text, {}); });
    EXPECT_EQ(error.code(), core::ErrorCode::not_permitted);
    EXPECT_NE(std::string(error.what()).find("--comch-key-file"), std::string::npos);
    Security insecure;
    insecure.insecure = true;
    EXPECT_FALSE(make_address(text, insecure).takes_key());
    EXPECT_TRUE(log.has("--insecure: every peer that reaches " + text)) << log.text();
  }
  EXPECT_FALSE(make_address("unix:/x", {}).takes_key());
  EXPECT_TRUE(Address::parse("tcp:127.0.0.1:1").takes_key());
}

TEST(Address, APathIsChosenOverRdmaAlone) {
  Security insecure;
  insecure.insecure = true;
  rdma::PathChoice path;
  path.gid_index = 3;
  EXPECT_EQ(make_address("rdma:10.0.0.1:1", insecure, path).path_choice, path);
  for (const std::string text : {"tcp:10.0.0.1:1", "unix:/x"}) {
    const auto error = support::thrown_by([&] { make_address(text, insecure, path); });
    EXPECT_EQ(error.code(), core::ErrorCode::invalid_value);
    EXPECT_NE(std::string(error.what()).find("not " + text), std::string::npos) << error.what();
  }
}

TEST(Address, AllowsThePeersOfItsNetworks) {
  const auto peer = [](const std::string& host) { return net::resolve(host, 1, false).front(); };
  Address address = Address::parse("tcp:127.0.0.1:1");
  EXPECT_TRUE(address.allows(peer("192.0.2.1")));
  address.allowed = {*net::AddressRange::parse("10.0.0.0/8"),
                     *net::AddressRange::parse("fd00::/8")};
  EXPECT_TRUE(address.allows(peer("10.1.1.1")));
  EXPECT_TRUE(address.allows(peer("fd00::1")));
  EXPECT_FALSE(address.allows(peer("192.0.2.1")));
  Security security;
  security.insecure = true;
  security.allowed = address.allowed;
  EXPECT_FALSE(make_address("tcp:127.0.0.1:1", security).allows(peer("192.0.2.1")));
}

TEST(Address, WithoutItsSchemeItIsGuessed) {
  const auto meant = [](const std::string& text) {
    const std::string error = check_address(text);
    const std::size_t at = error.find("; did you mean ");
    return at != std::string::npos ? error.substr(at) : "";
  };
  EXPECT_EQ(meant("/run/x.sock"), "; did you mean unix:/run/x.sock?");
  EXPECT_EQ(meant("10.0.0.1:80"), "; did you mean tcp:10.0.0.1:80?");
  EXPECT_EQ(meant("10.0.0.1"), "");
  EXPECT_EQ(meant("tcp:10.0.0.1"), "") << "it has one";
}

}  // namespace
}  // namespace offload::comch
