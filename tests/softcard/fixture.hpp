#pragma once

#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// Objects of the real libmlx5 on the software card of the guest (docs/softcard.md).
namespace offload::softcard::test {

inline constexpr std::chrono::seconds kPatience(20);

template <class T>
using Handle = std::unique_ptr<T, int (*)(T*)>;

/// Returns the handle; ends the test's program without it.
template <class T>
Handle<T> held(T* native, int (*end)(T*), const char* what) {
  if (native == nullptr) {
    std::fprintf(stderr, "cannot make %s: %s\n", what, std::strerror(errno));
    std::abort();
  }
  return {native, end};
}

/// Opens the device that libmlx5 drives.
inline Handle<ibv_context> open_device() {
  int count = 0;
  const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list(ibv_get_device_list(&count),
                                                                  ibv_free_device_list);
  for (int i = 0; i < count; ++i) {
    ibv_device* const device = list.get()[i];
    if (mlx5dv_is_supported(device)) {
      return held(ibv_open_device(device), ibv_close_device, "a context");
    }
  }
  return held<ibv_context>(nullptr, ibv_close_device, "a context: libmlx5 drives no device here");
}

/// Memory that is registered.
class Memory {
 public:
  static constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

  Memory(ibv_pd* domain, std::size_t size, int access = kAll)
      : words_((size + 7) / 8),
        size_(size),
        native_(held((ibv_reg_mr)(domain, words_.data(), size, access), ibv_dereg_mr, "a memory")) {
  }

  [[nodiscard]] std::span<std::byte> bytes() {
    return std::as_writable_bytes(std::span(words_)).first(size_);
  }
  [[nodiscard]] std::uint64_t& word(std::size_t index) { return words_[index]; }
  [[nodiscard]] std::uint64_t address(std::size_t offset = 0) const {
    return reinterpret_cast<std::uint64_t>(words_.data()) + offset;
  }
  [[nodiscard]] ibv_sge piece(std::size_t offset, std::uint32_t length) const {
    return {address(offset), length, native_->lkey};
  }
  [[nodiscard]] std::uint32_t rkey() const { return native_->rkey; }
  /// By words, as a loop over bytes takes long in the guest.
  void fill(std::uint64_t seed) {
    std::uint64_t next = seed;
    for (std::uint64_t& each : words_) each = next += 0x9e37'79b9'7f4a'7c15;
  }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t size_;
  Handle<ibv_mr> native_;
};

struct PairOptions {
  std::uint32_t sends = 64;
  std::uint32_t receives = 64;
  std::uint32_t inline_data = 200;
  ibv_srq* shared = nullptr;
  int access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
};

/// How a queue pair is connected.
struct PathOptions {
  std::uint32_t psn = 0x12'3456;
  std::uint8_t timeout = 10;  ///< 4 ms
  std::uint8_t retries = 3;
  std::uint8_t rnr_retries = 7;
  std::uint8_t rnr_timer = 12;   ///< 0.64 ms
  std::optional<ibv_gid> gid{};  ///< of the peer; none: that of this card
};

/// A queue pair of the device with its completion queues.
class Pair {
 public:
  Pair(ibv_pd* domain, const PairOptions& options, std::uint32_t places = 256,
       ibv_comp_channel* channel = nullptr)
      : sent_(held(ibv_create_cq(domain->context, static_cast<int>(places), nullptr, channel, 0),
                   ibv_destroy_cq, "a completion queue")),
        came_(held(ibv_create_cq(domain->context, static_cast<int>(places), nullptr, channel, 0),
                   ibv_destroy_cq, "a completion queue")),
        native_(make(domain, options)) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qp_access_flags = static_cast<unsigned>(options.access);
    change(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }

  void connect(std::uint32_t peer, const PathOptions& options = {}) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = IBV_MTU_4096;
    attributes.dest_qp_num = peer;
    attributes.rq_psn = options.psn;
    attributes.max_dest_rd_atomic = 16;
    attributes.min_rnr_timer = options.rnr_timer;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = 1;
    attributes.ah_attr.grh.hop_limit = 64;
    attributes.ah_attr.grh.sgid_index = 1;  // the address of IPv4
    ibv_gid& gid = attributes.ah_attr.grh.dgid;
    if (ibv_query_gid(native_->context, 1, 1, &gid) != 0) std::abort();
    if (options.gid) gid = *options.gid;
    change(attributes, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attributes = {};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = options.psn;
    attributes.timeout = options.timeout;
    attributes.retry_cnt = options.retries;
    attributes.rnr_retry = options.rnr_retries;
    attributes.max_rd_atomic = 16;
    change(attributes, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                           IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
  }
  void change(ibv_qp_attr& attributes, int mask) {
    const int errnum = ibv_modify_qp(native_.get(), &attributes, mask);
    EXPECT_EQ(errnum, 0) << std::strerror(errnum);
  }
  void fail() {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    change(attributes, IBV_QP_STATE);
  }
  [[nodiscard]] ibv_qp_state state() const {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr initial{};
    EXPECT_EQ(ibv_query_qp(native_.get(), &attributes, IBV_QP_STATE, &initial), 0);
    return attributes.qp_state;
  }

  int post(ibv_send_wr request, std::span<ibv_sge> pieces) {
    request.sg_list = pieces.data();
    request.num_sge = static_cast<int>(pieces.size());
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(native_.get(), &request, &bad);
  }
  int post_receive(std::uint64_t id, std::vector<ibv_sge> pieces) {
    ibv_recv_wr request{id, nullptr, pieces.data(), static_cast<int>(pieces.size())};
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(native_.get(), &request, &bad);
  }

  /// Returns the next completion; one that has failed if there is none in time.
  static ibv_wc next(ibv_cq* queue) {
    ibv_wc completion{};
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (ibv_poll_cq(queue, 1, &completion) == 0) {
      if (std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << "no completion";
        completion.status = IBV_WC_GENERAL_ERR;
        return completion;
      }
      std::this_thread::yield();
    }
    return completion;
  }
  ibv_wc next_sent() { return next(sent_.get()); }
  ibv_wc next_came() { return next(came_.get()); }

  [[nodiscard]] std::uint32_t number() const { return native_->qp_num; }
  [[nodiscard]] ibv_qp* get() const { return native_.get(); }
  [[nodiscard]] ibv_cq* sent() const { return sent_.get(); }
  [[nodiscard]] ibv_cq* came() const { return came_.get(); }

 private:
  Handle<ibv_qp> make(ibv_pd* domain, const PairOptions& options) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = sent_.get();
    attributes.recv_cq = came_.get();
    attributes.srq = options.shared;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {options.sends, options.receives, 4, 4, options.inline_data};
    return held(ibv_create_qp(domain, &attributes), ibv_destroy_qp, "a queue pair");
  }

  Handle<ibv_cq> sent_;
  Handle<ibv_cq> came_;
  Handle<ibv_qp> native_;
};

/// Work of one kind, signalled.
inline ibv_send_wr work(ibv_wr_opcode opcode, std::uint64_t id = 0) {
  ibv_send_wr request{};
  request.wr_id = id;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  return request;
}
inline ibv_send_wr remote_work(ibv_wr_opcode opcode, const Memory& to, std::size_t offset,
                               std::uint64_t id = 0) {
  ibv_send_wr request = work(opcode, id);
  request.wr.rdma.remote_addr = to.address(offset);
  request.wr.rdma.rkey = to.rkey();
  return request;
}
inline ibv_send_wr atomic_work(ibv_wr_opcode opcode, const Memory& to, std::size_t offset,
                               std::uint64_t compare_add, std::uint64_t swap) {
  ibv_send_wr request = work(opcode);
  request.wr.atomic = {to.address(offset), compare_add, swap, to.rkey()};
  return request;
}

/// Two connected queue pairs, with memory.
class SoftcardTest : public testing::Test {
 protected:
  SoftcardTest() {
    one_.connect(other_.number());
    other_.connect(one_.number());
  }

  /// Posts at one_ and returns its completion.
  ibv_wc go(const ibv_send_wr& request, std::vector<ibv_sge> pieces) {
    EXPECT_EQ(one_.post(request, pieces), 0);
    return one_.next_sent();
  }
  /// Returns the next event of the device, of this kind or another one; none after a while.
  std::optional<ibv_async_event> next_event() {
    // The descriptor was made not to block.
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    ibv_async_event event{};
    while (ibv_get_async_event(device_.get(), &event) != 0) {
      if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ibv_ack_async_event(&event);
    return event;
  }

  static constexpr std::size_t kBytes = 64 << 10;
  Handle<ibv_context> device_ = open_device();
  Handle<ibv_pd> domain_ = held(ibv_alloc_pd(device_.get()), ibv_dealloc_pd, "a domain");
  Memory here_{domain_.get(), kBytes};
  Memory there_{domain_.get(), kBytes};
  Pair one_{domain_.get(), {}};
  Pair other_{domain_.get(), {}};
};

}  // namespace offload::softcard::test
