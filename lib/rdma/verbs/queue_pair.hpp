#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.hpp"
#include "memory/access.hpp"
#include "rdma/verbs/completion_queue.hpp"
#include "rdma/verbs/protection_domain.hpp"
#include "rdma/verbs/shared_receive_queue.hpp"

namespace offload::rdma {

/// The most bytes of a message: 2^31 (max_msg_sz of ibv_query_port(3)).
inline constexpr std::uint64_t kMaxMessage = 1U << 31;

/// Returns a path by GID from port 1, with the usual hop limit of IP; the caller must set the
/// peer's address.
inline ibv_ah_attr default_path() noexcept {
  ibv_ah_attr path{};
  path.is_global = 1;
  path.port_num = 1;
  path.grh.hop_limit = 64;
  return path;
}

/// An address handle (ibv_ah): the path of a datagram. Move-only; the domain outlives it.
class AddressHandle {
 public:
  /// Throws Error.
  AddressHandle(const ProtectionDomain& domain, ibv_ah_attr path);
  [[nodiscard]] ibv_ah* get() const noexcept { return native_.get(); }

 private:
  Handle<ibv_ah, ibv_destroy_ah> native_;
};

/// The options of a new queue pair, named as in ibv_qp_init_attr and ibv_qp_cap (ibv_create_qp(3)).
struct QueuePairOptions {
  QpType qp_type = QpType::rc;
  std::uint32_t max_send_wr = 128;  ///< outstanding work requests
  std::uint32_t max_recv_wr = 128;
  std::uint32_t max_sge = 4;          ///< scatter/gather elements of a work request of either queue
  std::uint32_t max_inline_data = 0;  ///< bytes that IBV_SEND_INLINE copies into the work request
  bool sq_sig_all = false;            ///< every send completes, not only IBV_SEND_SIGNALED ones
  const SharedReceiveQueue* srq = nullptr;  ///< replaces the receive queue
};

/// The attributes of INIT → RTR, named as in ibv_qp_attr (ibv_modify_qp(3)).
struct RtrAttributes {
  /// The path to the peer's port. RoCE addresses by GID (grh); InfiniBand by LID, with a GID across
  /// subnets.
  ibv_ah_attr ah_attr = default_path();
  std::uint32_t dest_qp_num = 0;
  std::uint32_t rq_psn = 0;         ///< packet sequence number of the peer's first packet, 24 bits
  ibv_mtu path_mtu = IBV_MTU_1024;  ///< the smaller of the two ports' active MTUs
  std::uint8_t max_dest_rd_atomic = 1;  ///< RC: reads and atomics of the peer, answered at a time
  /// RC: the wait that an RNR NAK asks of the peer, as a code: 20 is 10.24 ms (IBTA volume 1,
  /// 9.7.5.2.8, table 45).
  std::uint8_t min_rnr_timer = 20;
};

/// The attributes of RTR → RTS, named as in ibv_qp_attr (ibv_modify_qp(3)).
struct RtsAttributes {
  std::uint32_t sq_psn = 0;        ///< packet sequence number of the first packet, 24 bits
  std::uint8_t max_rd_atomic = 1;  ///< RC: outstanding reads and atomics; the peer answers as many
  /// RC: the local ACK timeout is 4.096 us * 2^timeout, 67 ms (IBTA volume 1, 9.7.6.1.3).
  std::uint8_t timeout = 14;
  /// RC: retries after a timeout, and after an RNR NAK. An rnr_retry of 7 retries for ever, and so
  /// does a retry_cnt of 7 on some devices; 6 is the most that is taken.
  std::uint8_t retry_cnt = 6;
  std::uint8_t rnr_retry = 6;
};

/// The attributes of a queue pair now and at its creation (ibv_query_qp(3)).
struct QueuePairQuery {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
};

/// A queue pair (ibv_qp). Made in RESET, it goes INIT → RTR → RTS, and from any state to ERR or
/// back to RESET (IBTA volume 1, 10.3.1); a call in another state is a bad_state that names queue
/// pair and state. Receives may be posted from INIT on, sends in RTS and SQD.
///
/// Move-only; domain, completion queues and shared receive queue outlive it. One thread changes its
/// state and posts.
class QueuePair {
 public:
  /// Throws Error: not_supported or invalid_value for options that the device rejects.
  QueuePair(const ProtectionDomain& domain, const CompletionQueue& sends,
            const CompletionQueue& receives, const QueuePairOptions& options);

  /// Takes over one in RESET that was made in another way, such as by mlx5dv_create_qp().
  static QueuePair adopt(ibv_qp* native, QpType type, const ibv_qp_cap& capacity);

  /// RESET → INIT. `access`: what the peer may do; only the remote flags count. `qkey`: UD alone,
  /// the key that datagrams must carry. `pkey_index`: of the port's table of partitions; 0 is the
  /// default one, which every port has. Raw packets have the port alone. Throws Error.
  void initialize(std::uint8_t port_num = 1, memory::Access access = memory::kRemoteAccess,
                  std::uint32_t qkey = 0, std::uint16_t pkey_index = 0);
  /// INIT → RTR. Throws Error.
  void ready_to_receive(const RtrAttributes& rtr);
  /// INIT → RTR of a queue pair for datagrams or raw packets, which has no peer. Throws Error.
  void ready_to_receive();
  /// RTR → RTS. Throws Error: invalid_value for retries beyond 6.
  void ready_to_send(const RtsAttributes& rts = {});
  /// Any state but RESET → ERR: outstanding work completes as flushed. Throws Error.
  void fail();
  /// Any state → RESET: drops outstanding work; the device touches its memory no more. Throws
  /// Error.
  void reset();

  /// Makes any other change: sets the members of `attributes` that `mask` (ibv_qp_attr_mask) names.
  /// With IBV_QP_STATE a transition, such as RTS → SQD → RTS, whose second half fails until query()
  /// returns sq_draining 0; without, a change within its state, such as min_rnr_timer or access in
  /// RTS. ibv_modify_qp(3) lists the changes of each state. The device checks it; here the caller
  /// may choose 7 retries, which have no end. Throws Error.
  void modify(const ibv_qp_attr& attributes, int mask);

  /// The state that the calls above left it in.
  [[nodiscard]] ibv_qp_state state() const noexcept { return state_; }
  /// Queries the device, whose state also shows errors of the connection (ERR). Throws Error.
  [[nodiscard]] ibv_qp_attr query() const;
  /// Queries what `mask` (ibv_qp_attr_mask) names; other members have no meaning. Throws Error.
  [[nodiscard]] QueuePairQuery query(int mask) const;
  /// Post the list from `first` on, with one doorbell. After an error (bad_state, full,
  /// invalid_value, driver) those before `bad` are posted.
  core::Status post_send(ibv_send_wr& first, ibv_send_wr*& bad) noexcept {
    bad = &first;
    if (state_ != IBV_QPS_RTS && state_ != IBV_QPS_SQD) return core::ErrorCode::bad_state;
    return post_status(ibv_post_send(get(), &first, &bad));
  }
  core::Status post_receive(ibv_recv_wr& first, ibv_recv_wr*& bad) noexcept;

  [[nodiscard]] ibv_qp* get() const noexcept { return native_.get(); }
  [[nodiscard]] std::uint32_t qp_num() const noexcept { return native_->qp_num; }
  [[nodiscard]] QpType type() const noexcept { return type_; }
  /// Returns the granted capacity: at least that of the options.
  [[nodiscard]] const ibv_qp_cap& capacity() const noexcept { return capacity_; }
  /// "queue pair 17 (RC) on mlx5_0": for errors.
  [[nodiscard]] std::string described() const;

 private:
  QueuePair(ibv_qp* native, QpType type, const ibv_qp_cap& capacity)
      : native_(native, "a queue pair"), type_(type), capacity_(capacity) {}
  void expect(ibv_qp_state state, std::string_view action) const;
  void move_to(ibv_qp_state to, ibv_qp_attr& attributes, int mask);

  Handle<ibv_qp, ibv_destroy_qp> native_;
  QpType type_;
  ibv_qp_cap capacity_{};
  ibv_qp_state state_ = IBV_QPS_RESET;
};

/// "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR".
std::string_view name_of(ibv_qp_state state) noexcept;

}  // namespace offload::rdma
