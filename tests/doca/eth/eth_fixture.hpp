#pragma once

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_eth_rxq.h>
#include <doca_eth_rxq_cpu_data_path.h>
#include <doca_eth_txq.h>
#include <doca_eth_txq_cpu_data_path.h>
#include <doca_mmap.h>
#include <doca_pe.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "packets/privileges.hpp"
#include "tests/packets/veth.hpp"
#include "tests/support/eventually.hpp"

namespace offload::doca {

using packets::test::Bytes;
using packets::test::make_datagram;
using packets::test::Veth;

/// Returns a datagram whose payload counts from `first` on.
inline Bytes datagram(std::uint16_t port, std::size_t length, std::uint8_t first = 0) {
  Bytes payload(length);
  std::iota(payload.begin(), payload.end(), first);
  return make_datagram(port, payload);
}

/// A device with the interface v0 of a veth pair, whose other end the test writes and reads; with
/// memory and a progress engine. Datagrams to port 7 are for queue 0, those to port 8 for queue 3.
class EthTest : public testing::Test {
 protected:
  static constexpr std::size_t kPiece = 2048;
  static constexpr std::size_t kPieces = 64;

  void SetUp() override {
    if (!veth_.unavailable().empty()) GTEST_SKIP() << veth_.unavailable();
    const std::string missing = packets::missing_privileges();
    if (!missing.empty()) GTEST_SKIP() << "unprivileged" << missing;
    ::setenv("OFFLOAD_DOCA_DEVICES", "03:00.0=v0,b1:00.0", 1);
    ::setenv("OFFLOAD_DOCA_ETH_RULES", "udp dport 7 to 0; udp dport 8 to 3", 1);
    dev_ = open_device(0);
    ASSERT_EQ(doca_mmap_create(&mmap_), DOCA_SUCCESS);
    ASSERT_EQ(doca_mmap_set_memrange(mmap_, memory_.data(), memory_.size()), DOCA_SUCCESS);
    ASSERT_EQ(doca_mmap_add_dev(mmap_, dev_), DOCA_SUCCESS);
    ASSERT_EQ(doca_mmap_start(mmap_), DOCA_SUCCESS);
    ASSERT_EQ(doca_buf_inventory_create(kPieces, &inventory_), DOCA_SUCCESS);
    ASSERT_EQ(doca_buf_inventory_start(inventory_), DOCA_SUCCESS);
    ASSERT_EQ(doca_pe_create(&pe_), DOCA_SUCCESS);
  }
  void TearDown() override {
    if (pe_ == nullptr) return;
    EXPECT_EQ(doca_pe_destroy(pe_), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_inventory_destroy(inventory_), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_destroy(mmap_), DOCA_SUCCESS);
    EXPECT_EQ(doca_dev_close(dev_), DOCA_SUCCESS);
    ::unsetenv("OFFLOAD_DOCA_DEVICES");
    ::unsetenv("OFFLOAD_DOCA_ETH_RULES");
  }

  static doca_dev* open_device(std::size_t index) {
    doca_devinfo** list = nullptr;
    std::uint32_t count = 0;
    EXPECT_EQ(doca_devinfo_create_list(&list, &count), DOCA_SUCCESS);
    doca_dev* dev = nullptr;
    EXPECT_GT(count, index);
    EXPECT_EQ(doca_dev_open(list[index], &dev), DOCA_SUCCESS);
    EXPECT_EQ(doca_devinfo_destroy_list(list), DOCA_SUCCESS);
    return dev;
  }
  std::uint8_t* piece(std::size_t index) { return memory_.data() + index * kPiece; }
  /// A buffer without data over the first `length` bytes of a piece.
  doca_buf* destination(std::size_t index, std::size_t length = kPiece) {
    doca_buf* buf = nullptr;
    EXPECT_EQ(doca_buf_inventory_buf_get_by_addr(inventory_, mmap_, piece(index), length, &buf),
              DOCA_SUCCESS);
    return buf;
  }
  /// A buffer whose data is a frame in a piece.
  doca_buf* source(std::size_t index, const Bytes& frame) {
    std::memcpy(piece(index), frame.data(), frame.size());
    doca_buf* buf = nullptr;
    EXPECT_EQ(
        doca_buf_inventory_buf_get_by_data(inventory_, mmap_, piece(index), frame.size(), &buf),
        DOCA_SUCCESS);
    return buf;
  }
  /// Returns the next UDP frame that came to the other end; empty if none comes for a long time.
  [[nodiscard]] Bytes read() const {
    Bytes frame;
    for (int i = 0; i < 10 && frame.empty(); ++i) frame = veth_.read();
    return frame;
  }
  static doca_ctx_states state_of(const doca_ctx* ctx) {
    doca_ctx_states state{};
    EXPECT_EQ(doca_ctx_get_state(ctx, &state), DOCA_SUCCESS);
    return state;
  }
  template <class Condition>
  bool eventually(Condition condition) {
    return support::eventually(condition, [&] { ::doca_pe_progress(pe_); });
  }
  /// Stops a context, and waits until it is idle.
  void stop(doca_ctx* ctx) {
    const doca_error_t result = doca_ctx_stop(ctx);
    EXPECT_TRUE(result == DOCA_SUCCESS || result == DOCA_ERROR_IN_PROGRESS) << result;
    EXPECT_TRUE(eventually([&] { return state_of(ctx) == DOCA_CTX_STATE_IDLE; }));
  }

  Veth veth_;
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(kPieces * kPiece);
  doca_dev* dev_ = nullptr;
  doca_mmap* mmap_ = nullptr;
  doca_buf_inventory* inventory_ = nullptr;
  doca_pe* pe_ = nullptr;
};

}  // namespace offload::doca
