#include "apps/rdma_tasks/rendezvous.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

/// Descriptor files, on a device that is not there. tests/rdma_tasks/tool/matrix has both ends.
namespace offload::rdma_tool {
namespace {

using core::ErrorCode;
using support::thrown_by;

class RendezvousTest : public rdma::FakeDeviceTest {
 protected:
  RendezvousTest() {
    for (std::uint32_t i = 0; i < options_.connections; ++i) {
      endpoints_.push_back(std::make_unique<Endpoint>(environment_, options_, i, nullptr));
    }
  }
  Options make_options() {
    Options options;
    options.role = Role::responder;
    options.connections = 2;
    options.timeout = std::chrono::milliseconds(50);
    options.local_descriptor = folder_.file("own");
    options.remote_descriptor = folder_.file("peers");
    return options;
  }
  void write_peers(const std::string& text) {
    std::ofstream(options_.remote_descriptor, std::ios::binary) << text;
  }
  static std::string descriptor(std::uint32_t qp_num) {
    rdma::ConnectionDescriptor descriptor;
    descriptor.gid = rdma::parse_gid("10.0.0.2");
    descriptor.qp_num = qp_num;
    const auto bytes = descriptor.encode();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  ErrorCode failure() {
    return thrown_by([&] { const Rendezvous failed(environment_, options_, endpoints_); }).code();
  }

  support::TempDir folder_;
  Options options_ = make_options();
  core::Signals signals_;
  Environment environment_{options_, signals_, 2 * Endpoint::completions(options_)};
  Endpoints endpoints_;
};

TEST_F(RendezvousTest, TheResponderConnectsAndThenWritesItsOwnFile) {
  write_peers(descriptor(71) + descriptor(72));
  {
    const Rendezvous rendezvous(environment_, options_, endpoints_);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(endpoints_[i]->connection().connected());
      EXPECT_EQ(rdma::test::fake().queue_pairs[i]->modified.at(1).dest_qp_num, 71 + i);
    }
    std::ifstream file(options_.local_descriptor, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    ASSERT_EQ(text.size(), 2 * rdma::kDescriptorBytes);
    const auto own = rdma::ConnectionDescriptor::decode(
        std::as_bytes(std::span(text)).last(rdma::kDescriptorBytes));
    EXPECT_EQ(own.qp_num, endpoints_[1]->connection().queue_pair()->qp_num());
  }
  EXPECT_FALSE(std::filesystem::exists(options_.local_descriptor)) << "it is removed at the end";
}

TEST_F(RendezvousTest, AFileThatThePeerDidNotWriteIsRefused) {
  for (const std::string& text :
       {std::string(), descriptor(71), descriptor(71) + descriptor(72) + "x",
        std::string(2 * rdma::kDescriptorBytes, 'x')}) {
    write_peers(text);
    EXPECT_EQ(failure(), ErrorCode::bad_message) << text.size();
    EXPECT_FALSE(std::filesystem::exists(options_.local_descriptor));
  }
}

TEST_F(RendezvousTest, APeerThatDoesNotComeIsATimeOut) {
  EXPECT_EQ(failure(), ErrorCode::timed_out);
}

TEST_F(RendezvousTest, TheRequesterTakesNoFileOfAnEarlierRun) {
  options_.role = Role::requester;
  write_peers(descriptor(71) + descriptor(72));
  EXPECT_EQ(failure(), ErrorCode::timed_out);
  EXPECT_FALSE(std::filesystem::exists(options_.remote_descriptor));
}

}  // namespace
}  // namespace offload::rdma_tool
