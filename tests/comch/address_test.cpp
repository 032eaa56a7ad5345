#include "comch/address.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "cli/options.hpp"
#include "core/error.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"
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

TEST(Address, WithAKeyItWarnsOfRdmaAlone) {
  const support::TempDir folder;
  const std::string file = folder.file("key");
  std::string bytes;
  for (int i = 0; i < 64; ++i) bytes.push_back(static_cast<char>(i * i + 3 * (i % 5)));
  folder.write("key", bytes);
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  Security security;
  security.key_files = {file};
  const support::LogCapture log;
  const Address tcp = make_address("tcp:127.0.0.1:1", security);
  ASSERT_TRUE(tcp.takes_key());
  EXPECT_EQ(tcp.keys->keys().size(), 1U);
  EXPECT_FALSE(log.has("neither encrypted nor authenticated"));
  EXPECT_TRUE(make_address("rdma:10.0.0.1:1", security).takes_key());
  EXPECT_TRUE(log.has("rdma:10.0.0.1:1: peers prove their key")) << log.text();
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
  const auto peer = [](const std::string& host) { return net::resolve(host, 1).front(); };
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

/// The options of a program that has an address.
struct Options {
  std::string address = "unix:/default";
  Security security;
  rdma::PathChoice path;
  std::string refusal;  ///< or the help that was asked for
};

Options parse(std::vector<const char*> words) {
  Options options;
  cli::CommandLine line("program", "");
  add_address_options(line, options.address, options.security, "Listen here");
  add_allow_option(line, options.security);
  comch::add_path_options(line, options.path);
  words.insert(words.begin(), "program");
  if (const auto leave = line.parse(static_cast<int>(words.size()), words.data())) {
    options.refusal = leave->text;
  }
  return options;
}

TEST(AddressOptions, AreTaken) {
  EXPECT_EQ(parse({}).address, "unix:/default");
  EXPECT_EQ(parse({"--comch", "tcp:host:1"}).address, "tcp:host:1");
  EXPECT_EQ(parse({"-c", "name"}).address, address_of_name("name"));
  const auto keys = parse({"--comch-key-file", "new", "--comch-key-file", "old"}).security;
  EXPECT_EQ(keys.key_files, (std::vector<std::string>{"new", "old"}));
  EXPECT_FALSE(keys.insecure);
  EXPECT_TRUE(parse({"--insecure"}).security.insecure);
  const auto allowed =
      parse({"--comch-allow", "10.0.0.0/8", "--comch-allow", "fd00::/8"}).security.allowed;
  ASSERT_EQ(allowed.size(), 2U);
  EXPECT_TRUE(allowed[0].contains(net::resolve("10.1.1.1", 1).front()));
  const auto path = parse({"--rdma-device", "mlx5_0", "--gid-index", "3"}).path;
  EXPECT_EQ(path.device, "mlx5_0");
  EXPECT_EQ(path.gid_index, 3);
}

TEST(AddressOptions, AreRefusedWhereTheyAreWrong) {
  for (const auto& words : std::vector<std::vector<const char*>>{
           {"--comch", "host"},
           {"-c", "a/b"},
           {"-c", "name", "--comch", "unix:/x"},
           {"--insecure", "--comch-key-file", "key"},
           {"--comch-key-file", "a", "--comch-key-file", "b", "--comch-key-file", "c"},
           {"--comch-allow", "host"}}) {
    EXPECT_NE(parse(words).refusal, "") << words.front() << ' ' << words.back();
  }
}

TEST(AddressOptions, NameTheTransportsInTheirHelp) {
  std::string help = parse({"--help"}).refusal;
  for (char& one : help) one = one == '\n' ? ' ' : one;
  while (help.find("  ") != std::string::npos) help.erase(help.find("  "), 1);
  const auto has = [&](const std::string& text) { return help.find(text) != std::string::npos; };
  EXPECT_TRUE(has("Listen here: unix:PATH on one machine, ")) << help;
  EXPECT_TRUE(has("tcp:HOST:PORT") && has(" on two")) << help;
}

TEST(Address, WithoutItsSchemeItIsGuessed) {
  const auto meant = [](const std::string& text) {
    const std::string error = check_address(text);
    const std::size_t at = error.find("; did you mean ");
    return at != std::string::npos ? error.substr(at) : "";
  };
  EXPECT_EQ(meant("/run/x.sock"), "; did you mean unix:/run/x.sock?");
  EXPECT_EQ(meant("10.0.0.1:80"), "; did you mean tcp:10.0.0.1:80?");
  EXPECT_EQ(meant("http://10.0.0.1:80/"), "; did you mean tcp:10.0.0.1:80?");
  EXPECT_EQ(meant("http://10.0.0.1:80"), "; did you mean tcp:10.0.0.1:80?");
  EXPECT_EQ(meant("10.0.0.1:80/"), "");
  EXPECT_EQ(meant("10.0.0.1"), "");
  EXPECT_EQ(meant("tcp:10.0.0.1"), "") << "it has one";
}

}  // namespace
}  // namespace offload::comch
