#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <csignal>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/worker/datagrams.hpp"
#include "net/http_client.hpp"
#include "packets/privileges.hpp"
#include "packets/program/steering.h"
#include "tests/kernels/packets/request_frame.hpp"
#include "tests/packets/veth.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::worker {
namespace {

using core::ErrorCode;
using kernels::packets::load_32;
using kernels::packets::store_16;
using kernels::packets::test::Bytes;
using kernels::packets::test::expect_reversed;
using kernels::packets::test::request_frame;
using kernels::packets::test::store_word;

constexpr std::uint16_t kPort = 7;  // of these frames, which are for 10.0.0.1
constexpr std::uint16_t kMetricsPort = 9464;
constexpr std::size_t kSourceAddress = 26;
constexpr std::size_t kDestinationAddress = 30;
constexpr std::size_t kSourcePort = 34;

/// Writes the checksums of an IPv4 frame again.
Bytes corrected(Bytes frame) {
  store_16(frame.data() + 24, 0);
  store_16(frame.data() + 24,
           kernels::packets::checksum_of(kernels::packets::add_bytes(0, frame.data() + 14, 20)));
  const auto length = static_cast<std::uint32_t>(frame.size());
  kernels::packets::write_udp_checksum(frame.data(),
                                       kernels::packets::parse_headers(frame.data(), length));
  return frame;
}

/// A request from or to another IPv4 address.
Bytes request_with_address(std::size_t at, std::uint32_t address) {
  Bytes frame = request_frame(20, 1);
  store_word(frame.data() + at, address);
  return corrected(frame);
}

Bytes request_from_port(std::uint16_t port) {
  Bytes frame = request_frame(20, 1);
  store_16(frame.data() + kSourcePort, port);
  return corrected(frame);
}

/// run_datagrams() on a thread, whose queues are those of v0, in a network namespace. ctest runs
/// each test in a separate process.
class DatagramsTest : public testing::Test {
 protected:
  DatagramsTest() {
    options_.backend = "cpu";
    options_.udp_service = "reverse";
    options_.udp = DatagramPlace{"v0", "", kPort};
    options_.metrics = telemetry::MetricsAddress{"127.0.0.1", kMetricsPort};
  }
  ~DatagramsTest() override {
    if (!status_.valid()) return;
    if (!is_over()) ::kill(::getpid(), SIGTERM);
    EXPECT_TRUE(support::eventually([this] { return is_over(); }));
  }
  void SetUp() override {
    if (!veth_.unavailable().empty()) GTEST_SKIP() << veth_.unavailable();
    const std::string missing = packets::missing_privileges();
    if (!missing.empty()) GTEST_SKIP() << "unprivileged" << missing;
    // sysfs shows the network namespace in which it was mounted.
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0) {
      GTEST_SKIP() << "no mount namespaces: " << core::describe_errno(errno);
    }
    configure("ip link set lo up && ip link set v0 address 00:01:02:03:04:05");
    configure("ip addr add 10.0.0.1/24 dev v0");
  }

  static void configure(const std::string& command) {
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  void start() {
    status_ = std::async(std::launch::async, [this] { return run_datagrams(options_, signals_); });
    // The kernel loads programs, makes queues and ends namespaces of all processes one by one.
    bool has_begun = false;
    for (int i = 0; i < 5 && !has_begun; ++i) {
      has_begun =
          support::eventually([this] { return log_.has("serving datagrams to") || is_over(); });
    }
    ASSERT_TRUE(has_begun) << log_.text();
    ASSERT_FALSE(is_over()) << support::thrown_by([this] { status_.get(); }).what();
  }
  [[nodiscard]] bool is_over() const {
    return status_.wait_for(core::Duration{}) == std::future_status::ready;
  }
  /// Ends it by a signal.
  ExitStatus end() {
    ::kill(::getpid(), SIGTERM);
    EXPECT_TRUE(support::eventually([this] { return is_over(); })) << log_.text();
    return status_.get();
  }
  /// Waits for its end; returns the error.
  core::Error failure() {
    EXPECT_TRUE(support::eventually([this] { return is_over(); })) << log_.text();
    return support::thrown_by([this] { status_.get(); });
  }
  core::Error failure_of_start() {
    status_ = std::async(std::launch::async, [this] { return run_datagrams(options_, signals_); });
    return failure();
  }

  void send(const Bytes& frame) {
    veth_.write(frame);
    sent_bytes_ += frame.size();
  }
  /// Returns the next answer; empty if none comes.
  [[nodiscard]] Bytes answer() const {
    Bytes frame;
    EXPECT_TRUE(support::eventually(
        [&] {
          frame = veth_.read();
          return !frame.empty();
        },
        [] {}));
    return frame;
  }
  /// Sends a request; its answer is right.
  void ask(const Bytes& request, std::uint32_t length, std::uint32_t sequence) {
    send(request);
    const Bytes answered = answer();
    ASSERT_FALSE(answered.empty()) << log_.text();
    expect_reversed(answered, request, length, sequence);
    answer_bytes_ += answered.size();
  }
  static std::string page(const std::string& path) {
    net::HttpQuestion question;
    question.url = "http://127.0.0.1:" + std::to_string(kMetricsPort) + path;
    return net::ask(question, support::kBound).body;
  }
  /// Returns the value of a sample; -1: there is none.
  static double value_of(const std::string& sample, const std::string& path = "/metrics") {
    const std::string text = page(path);
    const std::size_t at = text.find("\n" + sample + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + sample.size() + 2));
  }
  /// Returns whether it shows that it has read this number of datagrams.
  static bool shows(std::size_t datagrams) {
    return support::eventually(
        [&] { return value_of("offload_udp_datagrams_total") == static_cast<double>(datagrams); });
  }

  support::LogCapture log_;
  core::Signals signals_{core::Hangup::rereads};
  packets::test::Veth veth_;
  Options options_;
  std::future<ExitStatus> status_;
  std::size_t sent_bytes_ = 0;
  std::size_t answer_bytes_ = 0;
};

TEST_F(DatagramsTest, AnswersAndCounts) {
  start();
  EXPECT_TRUE(log_.has("back end: cpu"));
  EXPECT_TRUE(log_.has("serving datagrams to v0 port 7 of 1 queues, service reverse"));
  for (const std::uint32_t length : {0U, 1U, 20U, 1400U}) {
    ask(request_frame(length, 7 + length), length, 7 + length);
  }
  Bytes shorter = request_frame(20, 1);
  store_word(shorter.data() + 42 + 16, 19);
  send(corrected(shorter));
  Bytes damaged = request_frame(20, 1);
  damaged.back() ^= 0x10;
  for (int i = 0; i < 2; ++i) send(damaged);
  Bytes to_another = request_frame(20, 1);
  to_another[0] = 2;
  send(to_another);
  for (int i = 0; i < 2; ++i) send(request_with_address(kSourceAddress, 0x0a00'0001));
  for (int i = 0; i < 3; ++i) send(request_from_port(0));
  ASSERT_TRUE(shows(13)) << page("/metrics");

  const auto bytes = [](std::size_t count) { return static_cast<double>(count); };
  const std::string rule = "{rule=\"udp vlan 0 dst 10.0.0.1 dport 7 to 0\"}";
  EXPECT_EQ(value_of("offload_udp_answers_total{result=\"ok\"}"), 4);
  EXPECT_EQ(value_of("offload_udp_answers_total{result=\"worker_failed\"}"), 0);
  EXPECT_EQ(value_of("offload_udp_dropped_total{reason=\"frame\"}"), 2);
  EXPECT_EQ(value_of("offload_udp_dropped_total{reason=\"request\"}"), 1);
  EXPECT_EQ(value_of("offload_udp_dropped_total{reason=\"ethernet\"}"), 1);
  EXPECT_EQ(value_of("offload_udp_dropped_total{reason=\"vlan\"}"), 0);
  EXPECT_EQ(value_of("offload_udp_dropped_total{reason=\"destination\"}"), 0);
  EXPECT_EQ(value_of("offload_udp_dropped_total{reason=\"source\"}"), 2);
  EXPECT_EQ(value_of("offload_udp_dropped_total{reason=\"source_port\"}"), 3);
  EXPECT_EQ(value_of("offload_udp_receive_bytes_total"), bytes(sent_bytes_));
  EXPECT_EQ(value_of("offload_udp_transmit_bytes_total"), bytes(answer_bytes_));
  EXPECT_GT(value_of("offload_udp_busy_seconds_total"), 0);
  EXPECT_GT(value_of("offload_udp_poll_seconds_total"), 0);
  EXPECT_EQ(value_of("offload_udp_driver_dropped_total{reason=\"ring_full\"}"), 0);
  EXPECT_EQ(value_of("offload_udp_driver_dropped_total{reason=\"other\"}"), 0);
  EXPECT_GE(value_of("offload_udp_no_frames_total"), 0);
  EXPECT_EQ(value_of("offload_udp_rule_packets_total" + rule), 13);
  EXPECT_EQ(value_of("offload_udp_rule_bytes_total" + rule), bytes(sent_bytes_));
  EXPECT_GT(value_of("offload_udp_wake_ups_total"), 0);
  EXPECT_EQ(value_of("offload_udp_info{backend=\"cpu\",service=\"reverse\"}"), 1);
  EXPECT_EQ(value_of("offload_udp_ready"), 1);
  EXPECT_EQ(value_of("offload_udp_datagrams_total{queue=\"0\"}", "/metrics?per_thread=1"), 13);

  const auto status = nlohmann::json::parse(page("/status"));
  EXPECT_EQ(status["program"], "offload-worker");
  EXPECT_EQ(status["ready"]["holds"], true);
  EXPECT_EQ(status["ready"]["why"], "1 queues are processed");
  EXPECT_EQ(status["healthy"]["holds"], true);
  const nlohmann::json queue{{"datagrams", 13}, {"answered", 4}, {"refused", 0}, {"malformed", 3}};
  EXPECT_EQ(status["state"]["queues"], nlohmann::json::array({queue}));
  EXPECT_EQ(status["state"]["backend"], "cpu");
  EXPECT_EQ(status["state"]["service"], "reverse");

  EXPECT_EQ(end(), ExitStatus::done);
  EXPECT_TRUE(
      log_.has("13 datagrams: 4 answered, 0 refused, 3 malformed (2 of these in their headers), 6 "
               "from addresses that get no answer; 0 dropped before a queue; by queue: 13\n"))
      << log_.text();
  EXPECT_NE(std::system("ip -d link show v0 | grep -q xdp"), 0) << "the program is still there";
}

TEST_F(DatagramsTest, AHangupChangesNothing) {
  options_.metrics.reset();
  start();
  ::kill(::getpid(), SIGHUP);
  EXPECT_TRUE(support::eventually([this] {
    return log_.has("SIGHUP: with --udp nothing is reread: a change needs a restart");
  }));
  ask(request_frame(20, 1), 20, 1);
  EXPECT_EQ(end(), ExitStatus::done);
  EXPECT_TRUE(log_.has("by queue: 1\n")) << log_.text();
}

TEST_F(DatagramsTest, FollowsTheAddressesOfItsInterface) {
  start();
  configure("ip addr add 10.0.0.3/24 dev v0");
  ASSERT_TRUE(support::eventually(
      [this] { return log_.has("v0 has other addresses: 10.0.0.1, 10.0.0.3\n"); }));
  const Bytes request = request_with_address(kDestinationAddress, 0x0a00'0003);
  send(request);
  const Bytes answered = answer();
  ASSERT_FALSE(answered.empty());
  EXPECT_EQ(load_32(answered.data() + kSourceAddress), 0x0a00'0003U);
  ask(request_frame(20, 1), 20, 1);

  configure("ip addr del 10.0.0.3/24 dev v0");
  ASSERT_TRUE(
      support::eventually([this] { return log_.has("v0 has other addresses: 10.0.0.1\n"); }));
  send(request);
  ask(request_frame(20, 2), 20, 2);
  EXPECT_TRUE(support::eventually(
      [] { return value_of("offload_udp_rule_packets_total{rule=\"no rule\"}") >= 1; }));
  EXPECT_EQ(end(), ExitStatus::done);
  EXPECT_TRUE(log_.has("3 datagrams: 3 answered")) << log_.text();
}

TEST_F(DatagramsTest, HasAsManyRulesAsThereMayBe) {
  static_assert(OFFLOAD_MOST_RULES == 32);
  configure("for i in $(seq 31); do ip addr add 10.0.1.$i/24 dev v0 || exit 1; done");
  start();
  EXPECT_FALSE(log_.has("are received")) << log_.text();
  const Bytes last = request_with_address(kDestinationAddress, 0x0a00'011f);
  send(last);
  EXPECT_FALSE(answer().empty());
  configure("ip addr add 10.0.1.32/24 dev v0");
  ASSERT_TRUE(support::eventually([this] { return log_.has("has other addresses"); }));
  EXPECT_TRUE(log_.has("v0 has 33 addresses: only datagrams to the first 32 are received"))
      << log_.text();
  send(last);
  EXPECT_FALSE(answer().empty());
  EXPECT_EQ(end(), ExitStatus::done);
}

TEST_F(DatagramsTest, AnAddressIsServedAloneByAllItsQueues) {
  constexpr std::uint16_t kFirst = 1000;
  constexpr std::uint16_t kSenders = 16;
  options_.udp = DatagramPlace{"", "10.0.0.1", kPort};
  options_.udp_queues = 2;
  start();
  EXPECT_TRUE(log_.has("serving datagrams to 10.0.0.1 port 7 of 2 queues"));
  configure("ip addr add 10.0.0.3/24 dev v0");
  std::vector<std::size_t> by_queue(2);
  for (std::uint16_t port = kFirst; port < kFirst + kSenders; ++port) {
    // 10.0.0.2 in network order, as the XDP program reads it.
    const std::uint32_t source[] = {htonl(0x0a00'0002), 0, 0, 0};
    ++by_queue.at(offload_queue_of_sender(source, port, kPort, 2));
    ask(request_from_port(port), 20, 1);
  }
  ASSERT_TRUE(shows(kSenders));  // by figures taken after a look at the addresses
  EXPECT_FALSE(log_.has("has other addresses"));
  EXPECT_EQ(
      value_of("offload_udp_rule_packets_total{rule=\"udp vlan 0 dst 10.0.0.1 dport 7 to 0-1\"}"),
      kSenders);
  EXPECT_EQ(value_of("offload_udp_datagrams_total{queue=\"1\"}", "/metrics?per_thread=1"),
            static_cast<double>(by_queue[1]));
  EXPECT_EQ(end(), ExitStatus::done);
  EXPECT_TRUE(log_.has("16 datagrams: 16 answered, 0 refused, 0 malformed")) << log_.text();
  EXPECT_TRUE(log_.has("by queue: " + std::to_string(by_queue[0]) + ", " +
                       std::to_string(by_queue[1]) + "\n"))
      << log_.text();
}

TEST_F(DatagramsTest, NeedsAnAddressAndAService) {
  configure("ip addr flush dev v0");
  const core::Error error = failure_of_start();
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_STREQ(error.what(), "v0 has no address; give it one (ip addr add ADDRESS/BITS dev v0)");
  options_.udp_service = "none";
  EXPECT_EQ(failure_of_start().code(), ErrorCode::not_found);
}

TEST_F(DatagramsTest, AGpuThatIsNamedIsNotReplacedByTheCpu) {
  options_.gpu_pci_addresses = {"ffff:1f:1f.7"};
  for (const char* const backend : {"auto", "cuda"}) {
    options_.backend = backend;
    static_cast<void>(failure_of_start());
    EXPECT_FALSE(log_.has("processing requests on the CPU")) << backend;
  }
}

TEST_F(DatagramsTest, TheCpuServesWithoutAGpu) {
  if (!device::list_gpus().devices.empty()) GTEST_SKIP() << "there is a GPU";
  options_.backend = "auto";
  start();
  EXPECT_TRUE(log_.has("): processing requests on the CPU")) << log_.text();
  EXPECT_TRUE(log_.has("back end: cpu"));
  EXPECT_EQ(end(), ExitStatus::done);
  options_.backend = "cuda";
  static_cast<void>(failure_of_start());
}

TEST_F(DatagramsTest, EndsIfItsEthernetAddressChanges) {
  start();
  configure("ip link set v0 address 00:01:02:03:04:06");
  const core::Error error = failure();
  EXPECT_EQ(error.code(), ErrorCode::not_connected);
  EXPECT_STREQ(error.what(), "the Ethernet address of v0 has changed");
}

TEST_F(DatagramsTest, EndsIfItsInterfaceIsGone) {
  start();
  configure("ip link del v0");
  EXPECT_EQ(failure().code(), ErrorCode::not_connected);
}

}  // namespace
}  // namespace offload::worker
