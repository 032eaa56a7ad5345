#include "net/every_address.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

#include <cerrno>
#include <string>

#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::net {
namespace {

using core::Error;
using core::ErrorCode;
using support::thrown_by;

/// An address of TEST-NET-1 (RFC 5737): no machine has it.
constexpr const char* kElsewhere = "192.0.2.1";

std::vector<SocketAddress> addresses_of(const std::vector<std::string>& hosts,
                                        std::uint16_t port = 0) {
  std::vector<SocketAddress> addresses;
  for (const std::string& host : hosts) addresses.push_back(resolve(host, port).front());
  return addresses;
}

bool takes_connections(const SocketAddress& address) {
  const core::Fd client = start_connect(address);
  pollfd writable{client.get(), POLLOUT, 0};
  return ::poll(&writable, 1, 20'000) == 1 && connect_result(client.get()) == 0;
}

TEST(ListenAtEach, AddressWithOnePort) {
  const auto sockets = listen_tcp_at_each(addresses_of({"127.0.0.2", "127.0.0.3"}), 8);
  ASSERT_EQ(sockets.size(), 2U);
  const auto first = local_address(sockets[0].get());
  const auto second = local_address(sockets[1].get());
  EXPECT_EQ(first.host(), "127.0.0.2");
  EXPECT_EQ(second.host(), "127.0.0.3");
  EXPECT_EQ(second.port(), first.port());
  EXPECT_TRUE(takes_connections(first));
  EXPECT_TRUE(takes_connections(second));
}

TEST(ListenAtEach, AddressOfAnotherMachineIsSkippedWithAWarning) {
  const support::LogCapture log;
  for (const auto& hosts : {std::vector<std::string>{kElsewhere, "127.0.0.2"},
                            std::vector<std::string>{"127.0.0.2", kElsewhere}}) {
    const auto sockets = listen_tcp_at_each(addresses_of(hosts), 8);
    ASSERT_EQ(sockets.size(), 1U);
    EXPECT_EQ(local_address(sockets[0].get()).host(), "127.0.0.2");
    EXPECT_TRUE(log.has("warning: cannot listen on 192.0.2.1:")) << log.text();
    EXPECT_TRUE(log.has("this address is skipped"));
  }
}

TEST(ListenAtEach, AddressOfAnotherMachineAloneIsAnError) {
  const support::LogCapture log;
  const auto error = thrown_by([] { (void)listen_tcp_at_each(addresses_of({kElsewhere}), 8); });
  EXPECT_EQ(error.system_errno(), EADDRNOTAVAIL);
  EXPECT_FALSE(log.has("skipped"));
}

// Another program with the port at one address could take the requests that are sent there.
TEST(ListenAtEach, APortThatIsTakenAtOneAddressIsAnError) {
  const core::Fd taken = listen_tcp(addresses_of({"127.0.0.3"}).front(), 1);
  const std::uint16_t port = local_address(taken.get()).port();
  const auto error = thrown_by([&] {
    (void)listen_tcp_at_each(addresses_of({"127.0.0.2", "127.0.0.3"}, port), 8);
  });
  EXPECT_EQ(error.code(), ErrorCode::in_use);
}

/// Listens without sockets; the port that it is given first for port 0 is taken at the second
/// address.
class Ports {
 public:
  std::uint16_t listen(const SocketAddress& address) {
    if (address.port() == 0) return ++last_;
    ++calls_;
    if (address.port() <= taken_) throw Error(error_, "it is taken");
    return address.port();
  }
  explicit Ports(std::uint16_t taken, ErrorCode error = ErrorCode::in_use)
      : taken_(taken), error_(error) {}

  [[nodiscard]] int calls() const noexcept { return calls_; }

 private:
  std::uint16_t taken_;
  ErrorCode error_;
  std::uint16_t last_ = 0;
  int calls_ = 0;
};

TEST(ListenAtEach, AFreePortOfTheFirstThatIsTakenAtTheSecondIsChangedForAnother) {
  const auto listen_with = [](Ports& ports, std::uint16_t port = 0) {
    return listen_at_each(
        addresses_of({"127.0.0.2", "127.0.0.3"}, port),
        [&](const SocketAddress& address) { return ports.listen(address); },
        [](std::uint16_t chosen) { return chosen; });
  };
  Ports some_taken(3);
  EXPECT_EQ(listen_with(some_taken), (std::vector<std::uint16_t>{4, 4}));
  Ports all_taken(1000);
  EXPECT_EQ(thrown_by([&] { (void)listen_with(all_taken); }).code(), ErrorCode::in_use);
  EXPECT_EQ(all_taken.calls(), kMostPorts);
  Ports fixed(7);
  EXPECT_EQ(thrown_by([&] { (void)listen_with(fixed, 7); }).code(), ErrorCode::in_use);
  EXPECT_EQ(fixed.calls(), 1) << "a port that was asked for is tried once";
  Ports denied(1000, ErrorCode::not_permitted);
  EXPECT_EQ(thrown_by([&] { (void)listen_with(denied); }).code(), ErrorCode::not_permitted);
  EXPECT_EQ(denied.calls(), 1) << "another port would not help";
}

TEST(IsOfNoUseHere, IsAnAddressOrAFamilyThatTheMachineLacks) {
  const auto is = [](int errnum) {
    return is_of_no_use_here(
        Error(ErrorCode::operating_system, "no", {core::Cause::Domain::system, errnum}));
  };
  for (const int errnum : {EADDRNOTAVAIL, EAFNOSUPPORT, ENODEV, ENETUNREACH}) {
    EXPECT_TRUE(is(errnum)) << errnum;
  }
  for (const int errnum : {0, ECONNREFUSED, EADDRINUSE}) EXPECT_FALSE(is(errnum)) << errnum;
}

/// Returns the outcome of connecting to each address.
std::string connect(const std::vector<std::string>& results, std::string* asked = nullptr) {
  const auto deadline = core::Clock::now() + core::seconds(60);
  return connect_to_any(results, deadline, [&](const std::string& result, core::TimePoint until) {
    EXPECT_LE(until, deadline);
    if (asked != nullptr) *asked += result + ";";
    if (result == "nowhere") {
      throw Error(ErrorCode::operating_system, result,
                  {core::Cause::Domain::system, EADDRNOTAVAIL});
    }
    if (result != "there") throw Error(ErrorCode::not_connected, result);
    return result;
  });
}

TEST(ConnectToAny, TakesTheFirstThatIsThere) {
  std::string asked;
  EXPECT_EQ(connect({"refused", "there", "there"}, &asked), "there");
  EXPECT_EQ(asked, "refused;there;");
}

TEST(ConnectToAny, GivesTheLastReason) {
  EXPECT_STREQ(thrown_by([] { connect({"refused", "silent"}); }).what(), "silent");
}

// A worker exits if its machine cannot have an address, and tries again for any other reason.
TEST(ConnectToAny, AnAddressOfNoUseHereIsTheReasonOnlyIfThereIsNoOther) {
  EXPECT_STREQ(thrown_by([] { connect({"refused", "nowhere"}); }).what(), "refused");
  EXPECT_STREQ(thrown_by([] { connect({"nowhere", "refused"}); }).what(), "refused");
  EXPECT_STREQ(thrown_by([] { connect({"nowhere"}); }).what(), "nowhere");
}

TEST(ConnectToAny, SharesTheTimeThatIsLeft) {
  constexpr int kAddresses = 3;
  auto before = core::Clock::now();
  const auto deadline = before + core::seconds(60);
  int left = kAddresses;
  const auto look = [&](int, core::TimePoint until) -> int {
    const auto end_of = [&](core::TimePoint now) { return now + (deadline - now) / left; };
    const auto after = core::Clock::now();
    EXPECT_GE(until, end_of(before)) << left;
    EXPECT_LE(until, end_of(after)) << left;
    before = after;
    --left;
    throw Error(ErrorCode::timed_out, "late");
  };
  EXPECT_EQ(thrown_by([&] { connect_to_any(std::vector<int>(kAddresses), deadline, look); }).code(),
            ErrorCode::timed_out);
  EXPECT_EQ(left, 0);
}

}  // namespace
}  // namespace offload::net
