#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.hpp"
#include "memory/access.hpp"
#include "rdma/verbs/completion_queue.hpp"
#include "rdma/verbs/path.hpp"
#include "rdma/verbs/protection_domain.hpp"
#include "rdma/verbs/shared_receive_queue.hpp"
#include "rdma/verbs/transport.hpp"

namespace offload::rdma {

struct QueuePairOptions {
  Transport transport = Transport::rc;
  std::uint32_t send_depth = 128;  ///< work requests under way
  std::uint32_t receive_depth = 128;
  std::uint32_t gather = 4;  ///< pieces of memory in one work request, of either queue
  std::uint32_t inline_size =
      0;                    ///< bytes copied into the request itself: no key, no read by the card
  bool signal_all = false;  ///< every send is told, not only those marked IBV_SEND_SIGNALED
  const SharedReceiveQueue* shared_receives = nullptr;  ///< instead of receives of its own
};

/// What a queue pair must know to take packets: who sends them and how.
struct Peer {
  Path path;
  std::uint32_t queue_pair = 0;    ///< the peer's number
  std::uint32_t first_packet = 0;  ///< the peer's, 24 bits
  ibv_mtu mtu = IBV_MTU_1024;      ///< the smaller of the two ports'
  std::uint8_t reads_in = 1;       ///< RC: reads and atomics of the peer at a time
  /// RC: how long a peer is to wait where no receive is posted: 10 ms. The code is the standard's.
  std::uint8_t receiver_not_ready_timer = 20;
};

/// How it sends, and how long it tries.
struct SendOptions {
  std::uint32_t first_packet = 0;  ///< its own, 24 bits
  std::uint8_t reads_out = 1;      ///< RC: reads and atomics at a time; no more than the peer takes
  /// RC: an answer is awaited for 4.096 us * 2^timeout (67 ms), then asked for again.
  std::uint8_t timeout = 14;
  /// RC: how often. 7 means for ever where no receive is posted, and with some devices altogether,
  /// so no more than 6 is taken.
  std::uint8_t retries = 6;
  std::uint8_t receiver_not_ready_retries = 6;
};

/// Two queues of work for a device. Made in RESET, it goes INIT → RTR → RTS, and from any state to
/// ERR or back to RESET; a call out of turn is a bad_state that names queue pair and state.
/// Receives may be posted from INIT on, sends in RTS.
///
/// Move-only; domain, completion queues and shared receive queue outlive it. One thread changes its
/// state and posts.
class QueuePair {
 public:
  enum class State : std::uint8_t { reset, init, ready_to_receive, ready_to_send, error };

  /// Throws Error: not_supported or invalid_value for what the device does not take.
  QueuePair(const ProtectionDomain& domain, const CompletionQueue& sends,
            const CompletionQueue& receives, const QueuePairOptions& options);

  /// RESET → INIT. `access`: what peers may do through this queue pair; remote flags count. `key`:
  /// UD alone, what datagrams must carry. Throws Error.
  void initialize(std::uint8_t port = 1, memory::Access access = memory::kRemoteAccess,
                  std::uint32_t key = 0);
  /// INIT → RTR. Throws Error.
  void ready_to_receive(const Peer& peer);
  /// The same of a UD one, which has no peer.
  void ready_to_receive();
  /// RTR → RTS. Throws Error: invalid_value for retries beyond 6.
  void ready_to_send(const SendOptions& options = {});
  /// Any state but RESET → ERR: what is posted is told as flushed. Throws Error.
  void fail();
  /// Any state → RESET: what is posted is forgotten, and the device touches its memory no more.
  /// Throws Error.
  void reset();

  /// As the calls above left it.
  [[nodiscard]] State state() const noexcept { return state_; }
  /// What the device says now, its state too: an error of the connection shows there. Throws Error.
  [[nodiscard]] ibv_qp_attr query() const;

  /// Posts the list that `first` heads, with one doorbell. On an error those before `bad` are
  /// posted: bad_state, full, invalid_value, driver.
  core::Status post_send(ibv_send_wr& first, ibv_send_wr*& bad) noexcept;
  core::Status post_receive(ibv_recv_wr& first, ibv_recv_wr*& bad) noexcept;

  [[nodiscard]] ibv_qp* get() const noexcept { return native_.get(); }
  [[nodiscard]] std::uint32_t number() const noexcept { return native_->qp_num; }
  [[nodiscard]] Transport transport() const noexcept { return transport_; }
  /// What the device made of the options: at least what was asked for.
  [[nodiscard]] const ibv_qp_cap& capacity() const noexcept { return capacity_; }
  /// "queue pair 17 (RC) on mlx5_0": for errors.
  [[nodiscard]] std::string described() const;

 private:
  void expect(State state, std::string_view action) const;
  void modify(ibv_qp_attr& attributes, int mask, State to);

  Handle<ibv_qp, ibv_destroy_qp> native_;
  Transport transport_;
  ibv_qp_cap capacity_{};
  State state_ = State::reset;
};

/// "RESET", "INIT", "RTR", "RTS", "ERR".
std::string_view name_of(QueuePair::State state) noexcept;

}  // namespace offload::rdma
