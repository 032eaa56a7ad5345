#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "doca/include/doca_verbs.h"
#include "doca/use.hpp"
#include "rdma/verbs/protection_domain.hpp"
#include "rdma/verbs/queue_pair.hpp"

struct doca_uar;
struct doca_umem;

/// A rdma::DeviceContext.
struct doca_verbs_context {
  offload::rdma::DeviceContext device;
  std::atomic<std::size_t> users{0};
};

/// A rdma::ProtectionDomain.
struct doca_verbs_pd {
  std::optional<offload::doca::Use<doca_verbs_context>> context;  ///< none: it is imported
  offload::rdma::ProtectionDomain domain;
  std::atomic<std::size_t> users{0};
};

struct doca_verbs_cq_attr {
  std::uint32_t size = 0;
  std::uint32_t entry_size = DOCA_VERBS_CQ_ENTRY_SIZE_64;
  std::uint8_t external_datapath = 0;
  std::uint8_t overrun = 0;
  doca_uar* uar = nullptr;
  doca_umem* umem = nullptr;  ///< as the next: of an external data path
  std::uint64_t umem_offset = 0;
};

struct doca_verbs_ah_attr {
  /// The peer as libibverbs wants it, from a port.
  [[nodiscard]] ibv_ah_attr path(std::uint8_t port) const noexcept;

  std::uint32_t type = DOCA_VERBS_ADDR_TYPE_IPv4;
  std::uint16_t dlid = 0;
  ibv_global_route route{};
};

struct doca_verbs_qp_init_attr : ibv_qp_cap {
  doca_verbs_qp_init_attr() noexcept : ibv_qp_cap{0, 0, 1, 1, 0} {}

  std::uint32_t type = DOCA_VERBS_QP_TYPE_RC;
  std::uint8_t sq_sig_all = 0;
  std::uint8_t external_datapath = 0;
  doca_verbs_pd* pd = nullptr;
  doca_verbs_cq* send_cq = nullptr;
  doca_verbs_cq* receive_cq = nullptr;
  doca_uar* uar = nullptr;
  std::uint8_t cqe_inline = 0;
  std::uint8_t is_master = 0;
  std::uint32_t send_dbr_mode = DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID;
  doca_umem* umem = nullptr;  ///< as the next: of an external data path
  std::uint64_t umem_offset = 0;
  doca_umem* dbr_umem = nullptr;
  std::uint64_t dbr_umem_offset = 0;
};

/// The members that have other units than libibverbs are separate.
struct doca_verbs_qp_attr : ibv_qp_attr {
  doca_verbs_qp_attr() noexcept : ibv_qp_attr{} {}

  std::uint32_t next_state = DOCA_VERBS_QP_STATE_RST;
  std::uint32_t mtu = DOCA_MTU_SIZE_256_BYTES;
  std::uint8_t port = 1;
  std::uint8_t allow_remote_write = 0;
  std::uint8_t allow_remote_read = 0;
  std::uint32_t atomic_mode = DOCA_VERBS_QP_ATOMIC_MODE_NONE;
  doca_verbs_ah_attr peer;
};

struct doca_verbs_device_attr {
  std::uint32_t max_qp_rd_atom = 0;
  std::uint32_t max_qp_init_rd_atom = 0;
  bool rings_without_record = false;
};

namespace offload::doca {

/// The way in which queues are made. A queue pair and its queues of completions have the same.
enum class Maker : std::uint8_t {
  libibverbs,
  card,      ///< the card's own commands, and the library posts and polls
  external,  ///< the same commands, but the program or its kernels post and poll
};

/// Throws Error with the code invalid_value.
[[noreturn]] inline void reject(const std::string& why) {
  throw core::Error(core::ErrorCode::invalid_value, why);
}

}  // namespace offload::doca

/// A completion queue, made by libibverbs or by the card's own commands.
struct doca_verbs_cq {
  explicit doca_verbs_cq(doca_verbs_context& of) noexcept : context(of) {}
  doca_verbs_cq& operator=(doca_verbs_cq&&) = delete;
  virtual ~doca_verbs_cq() = default;

  /// Takes completions, as ibv_poll_cq().
  virtual int poll(int most, ibv_wc* into) noexcept = 0;
  [[nodiscard]] virtual offload::doca::Maker maker() const noexcept = 0;
  /// Returns the card's number of a queue that libibverbs did not make.
  [[nodiscard]] virtual std::uint32_t number() const noexcept { return 0; }

  offload::doca::Use<doca_verbs_context> context;
  std::uint64_t taken = 0;  ///< completions
  std::atomic<std::size_t> users{0};
};

/// A queue pair, made in the same ways.
struct doca_verbs_qp {
  explicit doca_verbs_qp(doca_verbs_context& context, const doca_verbs_qp_init_attr& attributes);
  doca_verbs_qp& operator=(doca_verbs_qp&&) = delete;
  virtual ~doca_verbs_qp() = default;

  [[nodiscard]] virtual std::uint32_t number() const noexcept = 0;
  /// Makes a change to another state. `attributes` has all that `mask`, of ibv_qp_attr_mask, names.
  /// Throws Error.
  virtual void modify(const ibv_qp_attr& attributes, int mask) = 0;
  /// Post, as ibv_post_send() and ibv_post_recv() do, but `bad` is set after an error only.
  virtual int post_send(ibv_send_wr& first, ibv_send_wr*& bad) noexcept = 0;
  virtual int post_receive(ibv_recv_wr& first, ibv_recv_wr*& bad) noexcept = 0;

  ibv_qp_state state = IBV_QPS_RESET;
  std::uint8_t port = 1;  ///< since INIT
  std::atomic<std::size_t> users{0};

 protected:
  /// The queues of its completions, which were made in the same way as it is.
  [[nodiscard]] doca_verbs_cq& sends() const noexcept { return *sends_.get(); }
  [[nodiscard]] doca_verbs_cq& receives() const noexcept { return *receives_.get(); }

 private:
  offload::doca::Use<doca_verbs_context> context_;
  offload::doca::Use<doca_verbs_pd> domain_;
  offload::doca::Use<doca_verbs_cq> sends_;
  offload::doca::Use<doca_verbs_cq> receives_;
};

namespace offload::doca {

/// A request that waits for completion `index` of a queue, as an ibv_send_wr has it.
void set_wait(ibv_send_wr& request, std::uint32_t queue, std::uint32_t index) noexcept;

/// Returns the maker of queues with these attributes.
template <class Attributes>
Maker maker_of(const Attributes& attributes) noexcept {
  if (attributes.external_datapath != 0) return Maker::external;
  return attributes.uar != nullptr ? Maker::card : Maker::libibverbs;
}

/// Make queues with an external data path. Throw Error.
std::unique_ptr<doca_verbs_cq> make_external_cq(doca_verbs_context& context,
                                                const doca_verbs_cq_attr& attributes);
std::unique_ptr<doca_verbs_qp> make_external_qp(doca_verbs_context& context,
                                                const doca_verbs_qp_init_attr& attributes);

/// Make queues by the card's own commands, for attributes with a UAR. Throw Error.
std::unique_ptr<doca_verbs_cq> make_card_cq(doca_verbs_context& context,
                                            const doca_verbs_cq_attr& attributes);
std::unique_ptr<doca_verbs_qp> make_card_qp(doca_verbs_context& context,
                                            const doca_verbs_qp_init_attr& attributes);

}  // namespace offload::doca
