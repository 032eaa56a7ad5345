#include "net/tls/psk.hpp"

#include "tests/net/tls/tls_pair.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/thrown.hpp"

namespace offload::net {
namespace {

using support::random_bytes;
using support::thrown_by;

const PreSharedKey kOld{"old", random_bytes(32, 1)};
const PreSharedKey kNew{"new", random_bytes(32, 2)};

TEST(TlsPsk, AnyOfTheServersKeysWillDo) {
  const auto server = TlsContext::psk_server({kOld, kNew});
  for (const PreSharedKey& key : {kOld, kNew}) {
    TlsPair pair(server, TlsContext::psk_client(key));
    ASSERT_TRUE(pair.connect()) << pair.server.failure() << pair.client.failure();
    const auto bytes = random_bytes(50'000, 3);
    EXPECT_EQ(carry(pair.client, pair.server, bytes), bytes);
    EXPECT_EQ(carry(pair.server, pair.client, bytes), bytes);
  }
}

TEST(TlsPsk, AServerKnowsWhichKeyWasProven) {
  const auto server = TlsContext::psk_server({kOld, kNew});
  for (const PreSharedKey& key : {kOld, kNew}) {
    TlsPair pair(server, TlsContext::psk_client(key));
    EXPECT_EQ(pair.client.handshake(), TlsHandshake::under_way);
    EXPECT_EQ(pair.server.handshake(), TlsHandshake::under_way);
    EXPECT_EQ(pair.server.proven_identity(), "") << "it is named, and not proven yet";
    ASSERT_TRUE(pair.connect());
    EXPECT_EQ(pair.server.proven_identity(), key.identity);
    EXPECT_EQ(pair.client.proven_identity(), "");
  }
}

TEST(TlsPsk, AnotherKeyWithTheSameName) {
  TlsPair pair(TlsContext::psk_server({kOld}), TlsContext::psk_client({"old", kNew.key}));
  EXPECT_FALSE(pair.connect());
  EXPECT_FALSE(pair.server.failure().empty());
  EXPECT_FALSE(pair.client.failure().empty());
}

TEST(TlsPsk, ANameThatTheServerDoesNotKnow) {
  TlsPair pair(TlsContext::psk_server({kOld}), TlsContext::psk_client(kNew));
  EXPECT_FALSE(pair.connect());
  EXPECT_EQ(pair.client.failure().find("internal error"), std::string::npos);
  EXPECT_FALSE(pair.server.failure().empty());
  EXPECT_FALSE(pair.client.failure().empty());
}

TEST(TlsPsk, NoCertificateIsTakenInAKeysPlace) {
  const support::Authority authority("authority");
  const auto own = authority.issue("server", "DNS:server.test");
  {
    TlsPair pair(TlsContext::server(own), TlsContext::psk_client(kOld));
    EXPECT_FALSE(pair.connect());
    EXPECT_NE(pair.client.failure().find("certificate"), std::string::npos);
  }
  TlsPair pair(TlsContext::psk_server({kOld}),
               TlsContext::client("server.test", authority.ca_file(), own));
  EXPECT_FALSE(pair.connect());
}

TEST(TlsPsk, KeysAndNamesOfTheWrongLength) {
  const auto bytes = random_bytes(300, 1);
  const auto fails = [](const std::string& name, std::span<const std::byte> key) {
    const PreSharedKey made{name, {key.begin(), key.end()}};
    EXPECT_EQ(thrown_by([&] {
                (void)TlsContext::psk_server({kOld, made});
              }).code(),
              core::ErrorCode::invalid_value);
  };
  const std::span all(bytes);
  fails("", all.first(32));
  fails(std::string(129, 'x'), all.first(32));
  fails("short", all.first(15));
  fails("long", all.first(257));
  EXPECT_EQ(thrown_by([] { (void)TlsContext::psk_server({}); }).code(),
            core::ErrorCode::invalid_value);
  const PreSharedKey shortest{"x", {bytes.begin(), bytes.begin() + 16}};
  TlsPair weakest(TlsContext::psk_server({shortest}), TlsContext::psk_client(shortest));
  EXPECT_TRUE(weakest.connect());
  const PreSharedKey longest{std::string(128, 'x'), {bytes.begin(), bytes.begin() + 256}};
  TlsPair pair(TlsContext::psk_server({longest}), TlsContext::psk_client(longest));
  EXPECT_TRUE(pair.connect());
}

}  // namespace
}  // namespace offload::net
