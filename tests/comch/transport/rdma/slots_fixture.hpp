#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "channel/channel_memory.hpp"
#include "comch/proxy/worker_proxy.hpp"
#include "comch/transport/rdma/slots.hpp"
#include "kernels/serve.hpp"
#include "kernels/services/reverse.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/log_capture.hpp"

/// Slots that are written into a peer's, on a fake device. The test is the peer, and does the work
/// of the device.
namespace offload::comch {
using rdma::test::fake;
using support::Bytes;
using support::random_bytes;

constexpr std::uint32_t kSlotDepth = 4;
constexpr std::uint32_t kSlotLongest = 2000;
constexpr std::uint32_t kPeerKey = 0x7001;

/// The peer's channel, whose memory belongs to this test.
class PeerSlots {
 public:
  PeerSlots() : memory_(0, kSlotDepth, kSlotLongest, -1), view_(memory_.endpoint().view) {}

  [[nodiscard]] const kernels::ChannelView& view() const { return view_; }
  /// Returns the peer's description of the region at `memory`, in answer to the description
  /// `other`.
  [[nodiscard]] static Bytes describe(std::span<const std::byte> other, const std::uint8_t* memory,
                                      std::uint64_t length) {
    SlotDescription end = SlotDescription::decode(other);
    end.region = {reinterpret_cast<std::uint64_t>(memory), kPeerKey};
    end.length = length;
    return end.encode();
  }

 private:
  channel::ChannelMemory memory_;
  kernels::ChannelView view_;
};

class RdmaSlotsTest : public rdma::FakeDeviceTest {
 protected:
  static rdma::test::FakeQueuePair& queue() { return *fake().queue_pairs.back(); }
  /// Carries out the oldest work request as a device does: copies or swaps, and completes it.
  void carry_out() {
    const rdma::test::Posted& work = queue().sends.front();
    if (work.send.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
      ASSERT_EQ(work.send.wr.atomic.rkey, kPeerKey);
      auto* const word = std::bit_cast<std::uint64_t*>(work.send.wr.atomic.remote_addr);
      std::memcpy(std::bit_cast<void*>(work.pieces[0].addr), word, sizeof *word);
      if (*word == work.send.wr.atomic.compare_add) *word = work.send.wr.atomic.swap;
    } else {
      ASSERT_EQ(work.send.wr.rdma.rkey, kPeerKey);
      auto* to = std::bit_cast<std::byte*>(work.send.wr.rdma.remote_addr);
      for (const ibv_sge& piece : work.pieces) {
        std::memcpy(to, std::bit_cast<const void*>(piece.addr), piece.length);
        to += piece.length;
      }
    }
    if (work.send.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) arrived_.push_back(work.send.imm_data);
    fake().finish_send(queue());
  }
  void carry_out_all() {
    while (!queue().sends.empty()) carry_out();
  }

  support::LogCapture log_;
  PeerSlots peer_;
  std::vector<std::uint32_t> arrived_;  ///< immediates at the peer
};

/// Answers request `sequence` with `payload`, as a back end does.
inline kernels::rdma::WorkResult respond_with(const kernels::rdma::SlotWriter& writer,
                                              const kernels::ChannelView& view,
                                              std::uint64_t sequence, const Bytes& payload) {
  std::vector<std::uint8_t> room(payload.size() + 2 * kernels::kSlack);
  std::ranges::copy(std::as_bytes(std::span(payload)),
                    std::as_writable_bytes(std::span(room)).begin() + kernels::kSlack);
  const kernels::Request request(room.data() + kernels::kSlack,
                                 static_cast<std::uint32_t>(payload.size()));
  const kernels::Packet header =
      kernels::answer(kernels::SingleLane{}, kernels::Reverse{}, request, view.response(sequence),
                      view.layout.flag_of(sequence));
  return kernels::rdma::write_response(kernels::SingleLane{}, writer, view, sequence, header);
}

// ---- The server's end

class RdmaSlotRequestsTest : public RdmaSlotsTest {
 protected:
  ~RdmaSlotRequestsTest() override { proxy_.reset(); }

  void start(std::shared_ptr<Adapter> adapter = nullptr) {
    if (adapter == nullptr) adapter = std::make_shared<Adapter>("fake0");
    auto endpoint = std::make_unique<RdmaSlotEndpoint>(std::move(adapter), rdma::PathOptions{},
                                                       memory_.endpoint().view);
    endpoint->connect(PeerSlots::describe(endpoint->describe(), peer_.view().requests,
                                          peer_.view().layout.request_bytes));
    proxy_.emplace(server_.requester, memory_.endpoint(), std::move(endpoint));
    server_.requester.set_wakeup(channel::Wakeup::engine);
  }
  void post(const Bytes& request) {
    ASSERT_TRUE(server_.requester.post(request, channel::test::Server::somebody()).ok());
    server_.requester.flush();
    server_.engine.progress();
  }
  /// The worker takes request `sequence` from its slot, and writes its response.
  void answer(std::uint64_t sequence) {
    kernels::ChannelView view = peer_.view();
    view.responses = memory_.endpoint().view.responses;
    kernels::Staging staging{};
    ASSERT_EQ(kernels::serve(kernels::SingleLane{}, view, sequence, kernels::Reverse{}, staging),
              kernels::Outcome::answered);
    kernels::rdma::set_flag(view.response(sequence), 0);  // the server sets it
    say_it_came(static_cast<std::uint32_t>(sequence % kSlotDepth));
  }
  /// Reports the immediate of a response, as the device does.
  static void say_it_came(std::uint32_t slot) {
    ibv_wc told{};
    told.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    told.imm_data = htonl(slot);
    fake().finish_receive(queue(), told);
  }

  channel::ChannelMemory memory_{0, kSlotDepth, kSlotLongest, -1};
  channel::test::Server server_{memory_.endpoint()};
  std::optional<WorkerProxy> proxy_;
};

}  // namespace offload::comch
