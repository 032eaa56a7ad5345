#include <map>
#include <thread>

#include "protocol/bytes.hpp"
#include "rdma_tasks/cm/cm_connection.hpp"
#include "tests/rdma_tasks/guest/fixture.hpp"
#include "tests/rdma_tasks/guest/program.hpp"

/// Tests with programs that are not ours: rdma-core's ibv_devinfo and rping (packages ibverbs-utils
/// and rdmacm-utils).
namespace offload::rdma {
namespace {

// ---- ibv_devinfo

/// Parses "max_qp:   1024" to {"max_qp", "1024"}; keeps the first of a name.
std::map<std::string, std::string> fields_of(const std::string& text) {
  std::map<std::string, std::string> fields;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const std::size_t name = line.find_first_not_of(" \t");
    const std::size_t colon = line.find(':');
    if (name == std::string::npos || colon == std::string::npos) continue;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    fields.emplace(line.substr(name, colon - name),
                   value == std::string::npos ? "" : line.substr(value));
  }
  return fields;
}

TEST_F(DeviceTest, IsWhatIbvDevinfoSays) {
  if (!is_there("ibv_devinfo")) GTEST_SKIP() << "ibv_devinfo is missing (package ibverbs-utils)";
  std::string output;
  ASSERT_EQ(Program("ibv_devinfo -v -d " + device_.name()).wait(output), 0) << output;
  auto fields = fields_of(output);
  const auto number = [&](const char* name) {
    EXPECT_TRUE(fields.contains(name)) << name << "\n" << output;
    return std::stoull(fields[name], nullptr, 0);
  };
  const ibv_device_attr& limits = device_.attributes();
  EXPECT_EQ(limits.max_mr_size, number("max_mr_size"));
  EXPECT_EQ(limits.page_size_cap, number("page_size_cap"));
  EXPECT_EQ(limits.vendor_id, number("vendor_id"));
  EXPECT_EQ(limits.vendor_part_id, number("vendor_part_id"));
  EXPECT_EQ(limits.hw_ver, number("hw_ver"));
  EXPECT_EQ(limits.max_pkeys, number("max_pkeys"));
  EXPECT_EQ(limits.local_ca_ack_delay, number("local_ca_ack_delay"));
  EXPECT_EQ(limits.phys_port_cnt, number("phys_port_cnt"));
  const std::pair<const char*, int> counts[] = {
      {"max_qp", limits.max_qp},
      {"max_qp_wr", limits.max_qp_wr},
      {"max_sge", limits.max_sge},
      {"max_sge_rd", limits.max_sge_rd},
      {"max_cq", limits.max_cq},
      {"max_cqe", limits.max_cqe},
      {"max_mr", limits.max_mr},
      {"max_pd", limits.max_pd},
      {"max_qp_rd_atom", limits.max_qp_rd_atom},
      {"max_ee_rd_atom", limits.max_ee_rd_atom},
      {"max_res_rd_atom", limits.max_res_rd_atom},
      {"max_qp_init_rd_atom", limits.max_qp_init_rd_atom},
      {"max_ee_init_rd_atom", limits.max_ee_init_rd_atom},
      {"max_ee", limits.max_ee},
      {"max_rdd", limits.max_rdd},
      {"max_mw", limits.max_mw},
      {"max_raw_ipv6_qp", limits.max_raw_ipv6_qp},
      {"max_raw_ethy_qp", limits.max_raw_ethy_qp},
      {"max_mcast_grp", limits.max_mcast_grp},
      {"max_mcast_qp_attach", limits.max_mcast_qp_attach},
      {"max_total_mcast_qp_attach", limits.max_total_mcast_qp_attach},
      {"max_ah", limits.max_ah},
      {"max_fmr", limits.max_fmr},
      {"max_srq", limits.max_srq},
      {"max_srq_wr", limits.max_srq_wr},
      {"max_srq_sge", limits.max_srq_sge},
  };
  for (const auto& [name, count] : counts) {
    EXPECT_EQ(static_cast<std::uint64_t>(count), number(name)) << name;
  }
  EXPECT_EQ(fields["fw_ver"], limits.fw_ver);
  const std::map<ibv_atomic_cap, std::string> atomics{{IBV_ATOMIC_NONE, "ATOMIC_NONE"},
                                                      {IBV_ATOMIC_HCA, "ATOMIC_HCA"},
                                                      {IBV_ATOMIC_GLOB, "ATOMIC_GLOB"}};
  EXPECT_EQ(fields["atomic_cap"].substr(0, fields["atomic_cap"].find(' ')),
            atomics.at(limits.atomic_cap));
  const ibv_port_attr port = device_.port();
  EXPECT_EQ(port.state == IBV_PORT_ACTIVE, fields["state"].starts_with("PORT_ACTIVE"));
  EXPECT_EQ(128ULL << port.active_mtu, number("active_mtu"));
  EXPECT_EQ(port.lid, number("port_lid"));
  EXPECT_EQ(port.link_layer == IBV_LINK_LAYER_ETHERNET, fields["link_layer"] == "Ethernet");
  for (const ibv_gid_entry& gid : device_.gids()) {
    std::array<char, 16> name{};
    std::snprintf(name.data(), name.size(), "GID[%3u]", gid.gid_index);
    const std::string& shown = fields[name.data()];
    EXPECT_EQ(gid.gid_type == IBV_GID_TYPE_ROCE_V2, shown.find("RoCE v2") != std::string::npos);
    EXPECT_TRUE(shown.starts_with(to_string(gid.gid)) ||
                shown.starts_with("::ffff:" + to_string(gid.gid)))
        << shown << " is not " << to_string(gid.gid);
  }
}

// ---- rping: either end tells the other where its memory is, and the server reads and writes it.

class RpingTest : public DeviceTest {
 protected:
  static constexpr std::size_t kMessage = 16;
  static constexpr std::size_t kLength = 64;
  static constexpr std::size_t kData = 4096;
  static constexpr auto kLimit = std::chrono::seconds(10);

  void SetUp() override {
    if (!is_there("rping")) GTEST_SKIP() << "rping is missing (package rdmacm-utils)";
    side_.connection.start();
  }
  ~RpingTest() override { stop(side_.connection); }

  [[nodiscard]] CmConnection::Callbacks callbacks() {
    return {
        [this](CmConnection&) { told_.emplace_back("connected"); },
        [this](CmConnection&, const core::Error& why) { told_.emplace_back(name_of(why.code())); }};
  }
  void post_receive() {
    ReceiveTask& receive = taken(side_.receives);
    receives_.push_back(room(next_message_ += 64, kMessage));
    receive.destination = receives_.back().get();
    ASSERT_TRUE(side_.connection.submit(receive).ok());
  }
  /// Waits for rping's message with the place of its memory.
  RemoteAddress await_place(std::size_t number) {
    EXPECT_TRUE(until([&] { return receives_.at(number)->data().size() == kMessage; }));
    protocol::Reader reader(receives_.at(number)->data());
    RemoteAddress place;
    place.range.address = reader.integer<std::uint64_t>();
    place.range.key = reader.integer<std::uint32_t>();
    place.range.length = reader.integer<std::uint32_t>();
    return place;
  }
  void await_message(std::size_t number) { static_cast<void>(await_place(number)); }
  void send_place(std::size_t offset) {
    const auto message = protocol::Writer()
                             .integer<std::uint64_t>(remote_.address + offset)
                             .integer(remote_.key)
                             .integer(static_cast<std::uint32_t>(kLength))
                             .take();
    std::copy(message.begin(), message.end(), bytes(next_message_ += 64, kMessage).begin());
    SendTask& send = taken(side_.sends);
    sends_.push_back(buffers_.take_by_data(region_, bytes(next_message_, kMessage)).buffer);
    send.source = sends_.back().get();
    ASSERT_TRUE(side_.connection.submit(send).ok());
  }

  Side side_{objects(), options(), engine_, "rping's peer"};
  static ConnectionOptions options() {
    ConnectionOptions options;
    options.queues.max_send_wr = options.queues.max_recv_wr = 16;
    return options;
  }
  std::string address_ = to_string(choose_gid(device_.gids(), {}).gid);
  std::vector<std::string> told_;
  std::size_t next_message_ = 0;
  std::vector<memory::BufferRef> receives_;
  std::vector<memory::BufferRef> sends_;
};

TEST_F(RpingTest, ItsServerReadsAndWritesOurMemory) {
  Program server("rping -s -a " + address_ + " -p 7174 -C 1 -S 64");
  post_receive();
  post_receive();
  std::optional<CmConnection> cm;
  const auto limit = core::Clock::now() + kLimit;
  do {  // rping takes some time until it listens
    told_.clear();
    cm.emplace(engine_, side_.connection, callbacks());
    cm->connect({address_, 7174}, kLimit, {}, CmExchange::parameters);
    ASSERT_TRUE(until([&] { return !told_.empty(); }));
  } while (told_.front() != "connected" && core::Clock::now() < limit);
  ASSERT_EQ(told_, Lines{"connected"});

  // The data is text, as rping writes back only the bytes up to the first zero.
  const auto text = bytes(kData, kLength);
  for (std::size_t i = 0; i + 1 < kLength; ++i) text[i] = static_cast<std::byte>('a' + i % 26);
  text.back() = std::byte{0};
  send_place(kData);
  await_message(0);  // it has read that
  send_place(2 * kData);
  await_message(1);  // it has written this
  EXPECT_TRUE(std::equal(text.begin(), text.end(), bytes(2 * kData, kLength).begin()));
  cm->disconnect();
  std::string output;
  EXPECT_EQ(server.wait(output), 0) << output;
}

TEST_F(RpingTest, ItsClientFindsItsOwnDataAgain) {
  std::optional<CmConnection> cm;
  const CmListener listener(
      engine_, {address_, 0},
      [&](ConnectRequest request) {
        EXPECT_EQ(request.peer_name(), address_);
        post_receive();
        post_receive();
        cm.emplace(engine_, side_.connection, callbacks());
        cm->accept(std::move(request), kLimit);
      },
      CmExchange::parameters);
  Program client("rping -c -a " + address_ + " -p " + std::to_string(listener.port()) +
                 " -C 1 -S 64 -V -v");
  ASSERT_TRUE(until([&] { return !told_.empty(); }));
  ASSERT_EQ(told_, Lines{"connected"});

  ReadTask& read = taken(side_.reads);
  read.from = await_place(0);
  read.length = kLength;
  const auto copy = room(kData, kLength);
  read.destination = copy.get();
  ASSERT_EQ(read.from.range.length, kLength);
  ASSERT_TRUE(side_.connection.submit(read).ok());
  EXPECT_TRUE(until([&] { return copy->data().size() == kLength; }));
  send_place(0);  // go ahead
  WriteTask& write = taken(side_.writes);
  write.to = await_place(1);
  write.source = copy.get();
  ASSERT_TRUE(side_.connection.submit(write).ok());
  send_place(0);                                          // which is behind the write
  EXPECT_TRUE(until([&] { return told_.size() == 2; }));  // it goes
  std::string output;
  EXPECT_EQ(client.wait(output), 0) << output;
  EXPECT_NE(output.find("ping data: rdma-ping-0"), std::string::npos) << output;
}

TEST_F(RpingTest, IsRejectedWhereADescriptorIsExpected) {
  int requests = 0;
  const CmListener listener(engine_, {address_, 0}, [&](const ConnectRequest&) { ++requests; });
  bool ended = false;
  std::string output;
  int status = 0;
  std::thread client([&] {
    Program rping("rping -c -a " + address_ + " -p " + std::to_string(listener.port()) + " -C 1");
    status = rping.wait(output);
    __atomic_store_n(&ended, true, __ATOMIC_RELEASE);  // pairs with the load below
    engine_.notify();
  });
  EXPECT_TRUE(until([&] { return __atomic_load_n(&ended, __ATOMIC_ACQUIRE); }));
  client.join();
  EXPECT_NE(status, 0);
  EXPECT_NE(output.find("REJECTED"), std::string::npos) << output;
  EXPECT_EQ(requests, 0);
}

}  // namespace
}  // namespace offload::rdma
