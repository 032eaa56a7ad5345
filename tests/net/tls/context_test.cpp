#include "net/tls/context.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "net/tls/error.hpp"
#include "tests/net/tls/tls_pair.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/thrown.hpp"

namespace offload::net {
namespace {

using core::ErrorCode;
using support::Authority;
using support::thrown_by;

class TlsContextTest : public LeavesNoErrors {
 protected:
  Authority ours_{"our authority"};
  Authority others_{"another authority"};
  TlsCertificate server_ = ours_.issue("server", "DNS:server.test,IP:127.0.0.1");
  TlsCertificate client_ = ours_.issue("client", "DNS:client.test");

  bool connects(const TlsContext& server, const TlsContext& client) {
    TlsPair pair(server, client);
    const bool connected = pair.connect();
    server_failure_ = pair.server.failure();
    client_failure_ = pair.client.failure();
    return connected;
  }
  std::string server_failure_;
  std::string client_failure_;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Returns the version and the cipher suite on which `server` agrees with a client that has
/// OpenSSL's defaults, which `configure` may change; nothing if they do not agree.
template <class Configure>
std::string agreed_with(const TlsContext& server, Configure configure) {
  const auto sockets = TlsPair::make_sockets();
  TlsStream here(server, sockets.first.get());
  const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context(
      ::SSL_CTX_new(::TLS_client_method()), &::SSL_CTX_free);
  configure(context.get());
  const std::unique_ptr<SSL, decltype(&::SSL_free)> there(::SSL_new(context.get()), &::SSL_free);
  ::SSL_set_fd(there.get(), sockets.second.get());
  auto state = TlsHandshake::under_way;
  bool connected = false;
  for (int turn = 0; turn < 10; ++turn) {
    connected = connected || ::SSL_connect(there.get()) == 1;
    if (state == TlsHandshake::under_way) state = here.handshake();
  }
  ::ERR_clear_error();
  if (!connected || state != TlsHandshake::done) return {};
  return std::string(::SSL_get_version(there.get())) + " " +
         ::SSL_CIPHER_get_name(::SSL_get_current_cipher(there.get()));
}

TEST_F(TlsContextTest, TheNameOrTheAddressOfTheServerIsInItsCertificate) {
  const auto server = TlsContext::server(server_);
  EXPECT_TRUE(connects(server, TlsContext::client("server.test", ours_.ca_file())));
  EXPECT_TRUE(connects(server, TlsContext::client("127.0.0.1", ours_.ca_file())));
  EXPECT_FALSE(connects(server, TlsContext::client("other.test", ours_.ca_file())));
  EXPECT_TRUE(has(client_failure_, "ostname mismatch")) << client_failure_;
  EXPECT_TRUE(has(server_failure_, "the peer refused: ")) << server_failure_;
  EXPECT_FALSE(connects(server, TlsContext::client("127.0.0.2", ours_.ca_file())));
  EXPECT_TRUE(has(client_failure_, "IP address mismatch")) << client_failure_;
  const auto of_ipv6 = TlsContext::server(ours_.issue("ipv6", "IP:fd00::1"));
  EXPECT_TRUE(connects(of_ipv6, TlsContext::client("[fd00::1]", ours_.ca_file())));
  for (const char* const name : {"", "[]"}) {
    const auto error = thrown_by([&] { (void)TlsContext::client(name, ours_.ca_file()); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_value) << name;
  }
}

// A wildcard is a whole label (RFC 9525, 6.3).
TEST_F(TlsContextTest, AWildcardIsAWholeLabel) {
  const auto whole = TlsContext::server(ours_.issue("whole", "DNS:*.server.test"));
  EXPECT_TRUE(connects(whole, TlsContext::client("one.server.test", ours_.ca_file())));
  EXPECT_FALSE(connects(whole, TlsContext::client("server.test", ours_.ca_file())));
  EXPECT_FALSE(connects(whole, TlsContext::client("two.one.server.test", ours_.ca_file())));
  for (const char* const partial : {"DNS:o*.server.test", "DNS:*e.server.test"}) {
    const auto server = TlsContext::server(ours_.issue("partial", partial));
    EXPECT_FALSE(connects(server, TlsContext::client("one.server.test", ours_.ca_file())))
        << partial;
    EXPECT_TRUE(has(client_failure_, "ostname mismatch")) << client_failure_;
  }
}

TEST_F(TlsContextTest, TheServerChoosesTheCipherSuiteOfTls13) {
  const auto server = TlsContext::server(server_);
  EXPECT_EQ(agreed_with(server, [](SSL_CTX*) {}), "TLSv1.3 TLS_AES_128_GCM_SHA256");
  EXPECT_EQ(
      agreed_with(server,
                  [](SSL_CTX* client) { SSL_CTX_set_max_proto_version(client, TLS1_2_VERSION); }),
      "");
}

TEST_F(TlsContextTest, OtherCurvesAreRefused) {
  const auto server = TlsContext::server(server_);
  const auto agreed_on = [&](const char* group) {
    return agreed_with(server, [&](SSL_CTX* client) { SSL_CTX_set1_groups_list(client, group); });
  };
  EXPECT_NE(agreed_on("P-384"), "");
  EXPECT_EQ(agreed_on("X448"), "");
  EXPECT_EQ(agreed_on("ffdhe2048"), "");
}

TEST_F(TlsContextTest, AClientSendsTheNameOfItsServerButNoAddress) {
  const auto first_bytes = [](const TlsContext& client) {
    const auto sockets = TlsPair::make_sockets();
    TlsStream stream(client, sockets.second.get());
    EXPECT_EQ(stream.handshake(), TlsHandshake::under_way);
    std::string bytes(4096, '\0');
    const ssize_t size = ::recv(sockets.first.get(), bytes.data(), bytes.size(), 0);
    EXPECT_GT(size, 0);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return bytes;
  };
  const auto file = ours_.ca_file();
  EXPECT_TRUE(has(first_bytes(TlsContext::client("server.test", file)), "server.test"));
  EXPECT_FALSE(has(first_bytes(TlsContext::client("127.0.0.1", file)), "127.0.0.1"));
  for (const char* const name : {"[server.test", "server.test]"}) {
    EXPECT_TRUE(has(first_bytes(TlsContext::client(name, file)), name)) << "one bracket is no pair";
  }
}

TEST_F(TlsContextTest, AServerSendsNoTickets) {
  TlsPair pair(TlsContext::server(server_), TlsContext::client("server.test", ours_.ca_file()));
  ASSERT_TRUE(pair.connect());
  std::byte byte{};
  EXPECT_EQ(::recv(pair.sockets.second.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT), -1);
}

TEST_F(TlsContextTest, AServerNamesTheAuthoritiesOfItsClients) {
  const auto sockets = TlsPair::make_sockets();
  const auto server = TlsContext::server(server_, ours_.ca_file());
  TlsStream here(server, sockets.first.get());
  const auto there = TlsContext::client("server.test", ours_.ca_file()).make_ssl();
  ::SSL_set_fd(there.get(), sockets.second.get());
  (void)::SSL_do_handshake(there.get());
  (void)here.handshake();
  (void)::SSL_do_handshake(there.get());
  ::ERR_clear_error();
  const STACK_OF(X509_NAME)* const names = ::SSL_get0_peer_CA_list(there.get());
  ASSERT_NE(names, nullptr);
  ASSERT_EQ(sk_X509_NAME_num(names), 1);
  std::array<char, 64> text{};
  ::X509_NAME_oneline(sk_X509_NAME_value(names, 0), text.data(), static_cast<int>(text.size()));
  EXPECT_STREQ(text.data(), "/CN=our authority");
}

TEST_F(TlsContextTest, TheSystemsAuthoritiesAreTrustedWithoutOthers) {
  ::setenv("SSL_CERT_FILE", ours_.ca_file().c_str(), 1);  // openssl-env(7)
  const auto client = TlsContext::client("server.test");
  ::unsetenv("SSL_CERT_FILE");
  EXPECT_TRUE(connects(TlsContext::server(server_), client)) << client_failure_;
}

TEST_F(TlsContextTest, AnErrorOfOpenSslIsTaken) {
  ::OPENSSL_init_ssl(OPENSSL_INIT_LOAD_SSL_STRINGS, nullptr);  // as a context does
  EXPECT_EQ(take_openssl_error(), "unknown error");
  for (int i = 0; i < 2; ++i) {
    ::ERR_new();
    ::ERR_set_error(ERR_LIB_SSL, SSL_R_NO_SHARED_CIPHER, nullptr);
  }
  EXPECT_EQ(take_openssl_error(), "no shared cipher");
  EXPECT_EQ(take_openssl_error(), "unknown error");
}

TEST_F(TlsContextTest, AnAuthorityThatIsNotTrusted) {
  EXPECT_FALSE(
      connects(TlsContext::server(server_), TlsContext::client("server.test", others_.ca_file())));
  EXPECT_TRUE(has(client_failure_, "the peer's certificate is refused")) << client_failure_;
  // The certificate is not one of the system's either.
  EXPECT_FALSE(connects(TlsContext::server(server_), TlsContext::client("server.test")));
}

TEST_F(TlsContextTest, ACertificateThatHasExpired) {
  const auto old = TlsContext::server(ours_.issue("old", "DNS:server.test", -60));
  EXPECT_FALSE(connects(old, TlsContext::client("server.test", ours_.ca_file())));
  EXPECT_TRUE(has(client_failure_, "expired")) << client_failure_;
}

TEST_F(TlsContextTest, AClientsCertificateIsAskedFor) {
  const auto server = TlsContext::server(server_, ours_.ca_file());
  EXPECT_TRUE(connects(server, TlsContext::client("server.test", ours_.ca_file(), client_)));
  EXPECT_FALSE(connects(server, TlsContext::client("server.test", ours_.ca_file())));
  EXPECT_TRUE(has(server_failure_, "certificate")) << server_failure_;
  const auto strange = others_.issue("stranger", "DNS:client.test");
  EXPECT_FALSE(connects(server, TlsContext::client("server.test", ours_.ca_file(), strange)));
  EXPECT_TRUE(has(server_failure_, "the peer's certificate is refused")) << server_failure_;
}

// The certificates of the fixture have the serial numbers 1 (the server's) and 2.
TEST_F(TlsContextTest, ARevokedCertificateIsRefusedAndNamed) {
  const auto client = TlsContext::client("server.test", ours_.ca_file(), client_);
  const auto with = [&](const std::string& list) {
    return TlsContext::server(server_, ours_.ca_file(), list);
  };
  EXPECT_TRUE(connects(with(ours_.revoke({})), client));
  EXPECT_TRUE(connects(with(ours_.revoke({1, 3})), client));
  EXPECT_FALSE(connects(with(ours_.revoke({1, 2})), client));
  EXPECT_EQ(server_failure_,
            "the peer's certificate is refused: certificate revoked (CN=client, serial number 02)");
  const auto server = TlsContext::server(server_);
  const auto checks = [&](const std::string& list) {
    return TlsContext::client("server.test", ours_.ca_file(), {}, list);
  };
  EXPECT_TRUE(connects(server, checks(ours_.revoke({2}))));
  EXPECT_FALSE(connects(server, checks(ours_.revoke({1}))));
  EXPECT_TRUE(has(client_failure_, "certificate revoked (CN=server, ")) << client_failure_;
}

// An intermediate authority has the next serial number.
TEST_F(TlsContextTest, ACertificateOfARevokedAuthorityIsRefused) {
  const Authority middle("middle", ours_);
  const auto revoke = [&](const std::vector<long>& serials) {
    std::ofstream lists(ours_.revoke(serials), std::ios::app);
    lists << std::ifstream(middle.revoke({})).rdbuf() << std::flush;
    return ours_.list_file();
  };
  const auto file = ours_.ca_file();
  const std::string why = "certificate revoked (CN=middle, serial number 03)";
  const auto client =
      TlsContext::client("server.test", file, middle.issue("leaf", "DNS:leaf.test"));
  EXPECT_TRUE(connects(TlsContext::server(server_, file, revoke({2})), client)) << server_failure_;
  EXPECT_FALSE(connects(TlsContext::server(server_, file, revoke({3})), client));
  EXPECT_TRUE(has(server_failure_, why)) << server_failure_;
  const auto server = TlsContext::server(middle.issue("server", "DNS:server.test"));
  const auto checks = [&](const std::string& list) {
    return TlsContext::client("server.test", file, {}, list);
  };
  EXPECT_TRUE(connects(server, checks(revoke({2})))) << client_failure_;
  EXPECT_FALSE(connects(server, checks(revoke({3}))));
  EXPECT_TRUE(has(client_failure_, why)) << client_failure_;
}

TEST_F(TlsContextTest, AListThatExpiresRefusesEveryCertificate) {
  const auto server = TlsContext::server(server_, ours_.ca_file(), ours_.revoke({}, 2));
  const auto client = TlsContext::client("server.test", ours_.ca_file(), client_);
  EXPECT_TRUE(support::eventually([&] { return !connects(server, client); }));
  EXPECT_TRUE(has(server_failure_, "CRL has expired")) << server_failure_;
  EXPECT_TRUE(has(server_failure_, "list of CN=our authority must be replaced")) << server_failure_;
}

TEST_F(TlsContextTest, AnAuthorityWithoutAListVouchesForNobody) {
  std::ofstream both(ours_.ca_file(), std::ios::app);
  both << std::ifstream(others_.ca_file()).rdbuf() << std::flush;
  const auto server = TlsContext::server(server_, ours_.ca_file(), ours_.revoke({}));
  EXPECT_TRUE(connects(server, TlsContext::client("server.test", ours_.ca_file(), client_)));
  const auto other = others_.issue("other", "DNS:other.test");
  EXPECT_FALSE(connects(server, TlsContext::client("server.test", ours_.ca_file(), other)));
  EXPECT_TRUE(has(server_failure_, "no revocation list of CN=another authority was given"))
      << server_failure_;
  std::ofstream lists(ours_.revoke({}), std::ios::app);
  lists << std::ifstream(others_.revoke({})).rdbuf() << std::flush;
  const auto complete = TlsContext::server(server_, ours_.ca_file(), ours_.list_file());
  EXPECT_TRUE(connects(complete, TlsContext::client("server.test", ours_.ca_file(), other)));
}

TEST_F(TlsContextTest, RevocationListsThatAreNotWhatTheyShouldBe) {
  const auto why_not = [&](const std::string& list) {
    return std::string(
        thrown_by([&] { (void)TlsContext::server(server_, ours_.ca_file(), list); }).what());
  };
  const auto expect = [&](const std::string& list, const std::string& why) {
    EXPECT_TRUE(has(why_not(list), list)) << why_not(list);
    EXPECT_TRUE(has(why_not(list), why)) << why_not(list);
  };
  expect("/nowhere/list", "No such file");
  expect(ours_.ca_file(), "has no list in PEM");
  expect(ours_.revoke({}, -60), "expired at ");
  expect(ours_.revoke({}, 600, -300), "is not valid before ");
  expect(others_.revoke({}), "is of an authority that is trusted");
  const Authority no_lists("an authority without lists", "critical,keyCertSign");
  EXPECT_TRUE(has(thrown_by([&] {
                    (void)TlsContext::server(server_, no_lists.ca_file(), no_lists.revoke({}));
                  }).what(),
                  "lacks the key usage cRLSign"));
  // The authority has the same name and another key.
  expect(Authority("our authority").revoke({}), "its signature is not that of the authority");
  std::ofstream(ours_.revoke({}), std::ios::app) << "-----BEGIN X509 CRL-----\nAAAA\n";
  expect(ours_.list_file(), "cannot use the revocation lists in ");
}

TEST_F(TlsContextTest, APrivateKeyThatOthersCanRead) {
  ::chmod(server_.key_file.c_str(), 0640);
  (void)TlsContext::server(server_);  // the group can: Debian's ssl-cert
  ::chmod(server_.key_file.c_str(), 0604);
  const auto error = thrown_by([&] { (void)TlsContext::server(server_); });
  EXPECT_EQ(error.code(), ErrorCode::not_permitted);
  EXPECT_TRUE(has(error.what(), server_.key_file)) << error.what();
}

TEST_F(TlsContextTest, FilesThatAreNotWhatTheyShouldBe) {
  const auto fails = [](const TlsCertificate& own, const std::string& ca, const std::string& name) {
    const auto error = thrown_by([&] { (void)TlsContext::server(own, ca); });
    EXPECT_TRUE(has(error.what(), name)) << error.what();
  };
  fails({"/nowhere/chain", server_.key_file}, "", "/nowhere/chain");
  fails({server_.chain_file, "/nowhere/key"}, "", "/nowhere/key");
  fails(server_, "/nowhere/ca", "/nowhere/ca");
  fails({server_.chain_file, client_.key_file}, "", client_.key_file);
  fails({server_.key_file, server_.key_file}, "", server_.key_file);
  // OpenSSL would wait for a writer.
  const std::string fifo = server_.chain_file + ".fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  fails({fifo, server_.key_file}, "", fifo);
  fails(server_, fifo, fifo);
}

// A key of another kind of algorithm is no contradiction to OpenSSL before both are there.
TEST_F(TlsContextTest, APrivateKeyOfAnotherKind) {
  const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(::EVP_RSA_gen(2048),
                                                                  &::EVP_PKEY_free);
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(server_.key_file.c_str(), "we"),
                                                   &std::fclose);
  ASSERT_EQ(::PEM_write_PrivateKey(file.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr),
            1);
  ASSERT_EQ(std::fflush(file.get()), 0);
  const auto error = thrown_by([&] { (void)TlsContext::server(server_); });
  EXPECT_TRUE(has(error.what(), " is not that of " + server_.chain_file)) << error.what();
}

TEST_F(TlsContextTest, APrivateKeyWithAPassphrase) {
  const auto close = [](FILE* file) { std::fclose(file); };
  const auto open = [&](const char* mode) {
    return std::unique_ptr<FILE, decltype(close)>(std::fopen(server_.key_file.c_str(), mode),
                                                  close);
  };
  const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(
      ::PEM_read_PrivateKey(open("re").get(), nullptr, nullptr, nullptr), &::EVP_PKEY_free);
  std::string passphrase = "secret";
  ASSERT_EQ(::PEM_write_PKCS8PrivateKey(open("we").get(), key.get(), ::EVP_aes_128_cbc(),
                                        passphrase.data(), static_cast<int>(passphrase.size()),
                                        nullptr, nullptr),
            1);
  const auto error = thrown_by([&] { (void)TlsContext::server(server_); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_EQ(std::string(error.what()), "cannot use the private key " + server_.key_file +
                                           ": it has a passphrase; remove it with openssl pkey "
                                           "-in " +
                                           server_.key_file + " -out NEW_FILE");
}

TEST_F(TlsContextTest, ACopyOutlivesTheFirst) {
  auto server = std::make_optional(TlsContext::server(server_));
  const TlsContext copy = *server;
  server.reset();
  EXPECT_TRUE(connects(copy, TlsContext::client("server.test", ours_.ca_file())));
}

}  // namespace
}  // namespace offload::net
