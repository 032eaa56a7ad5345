#include <doca_gpunetio.h>
#include <doca_umem.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <doca_gpunetio_dev_verbs_counter.cuh>
#include <doca_gpunetio_dev_verbs_twosided.cuh>
#include <optional>
#include <thread>
#include <vector>

#include "kernels/rdma/queue_pair.hpp"
#include "rdma/verbs/gid.hpp"
#include "tests/doca/verbs/verbs_fixture.hpp"
#include "tests/support/child_process.hpp"

/// Queue pairs with an external data path on the software card (docs/softcard.md): in memory of a
/// host GPU, whose kernels are threads.
namespace offload::doca {
namespace {

namespace wire = kernels::rdma;

constexpr std::uint32_t kKernelEntries = 64;
constexpr std::size_t kKernelPage = 4096;
constexpr std::size_t kKernelBytes = 100;  // of an operation
constexpr std::size_t kKernelRounds = 200;

/// A queue pair and its objects, made as a program does.
struct KernelEnd {
  doca_umem* sends_umem = nullptr;
  doca_umem* receives_umem = nullptr;
  doca_umem* rings_umem = nullptr;
  doca_umem* records_umem = nullptr;
  doca_verbs_cq* sends = nullptr;
  doca_verbs_cq* receives = nullptr;
  doca_verbs_qp* pair = nullptr;
  doca_gpu_verbs_qp* exported = nullptr;
  doca_gpu_dev_verbs_qp* kernel = nullptr;
  std::vector<void*> memory;
  void* rings = nullptr;
};

/// `GetParam()`: the ringer of the doorbells.
class GpuVerbsTest : public testing::TestWithParam<doca_gpu_dev_verbs_nic_handler> {
 protected:
  void SetUp() override {
    ::setenv("OFFLOAD_DOCA_GPUS", "17:00.0", 1);
    ASSERT_EQ(doca_gpu_create("17:00.0", &gpu_), DOCA_SUCCESS);
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    ASSERT_GT(count, 0) << "there is no RDMA device";
    ASSERT_EQ(doca_verbs_bridge_verbs_context_create(list[0], DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE,
                                                     &context_),
              DOCA_SUCCESS);
    ibv_free_device_list(list);
    ASSERT_EQ(doca_verbs_pd_create(context_, &pd_), DOCA_SUCCESS);
    ibv_pd* const native = doca_verbs_bridge_verbs_pd_get_ibv_pd(pd_);
    ASSERT_EQ(doca_rdma_bridge_open_dev_from_pd(native, &dev_), DOCA_SUCCESS);
    constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    region_ = (ibv_reg_mr)(native, bytes_.data(), bytes_.size(), kAccess);
    ASSERT_NE(region_, nullptr);
    std::vector<ibv_gid_entry> gids(16);
    const ssize_t found = ibv_query_gid_table(native->context, gids.data(), gids.size(), 0);
    ASSERT_GT(found, 0);
    gids.resize(static_cast<std::size_t>(found));
    const ibv_gid_entry gid = rdma::choose_gid(gids, {});
    std::copy_n(gid.gid.raw, gid_.size(), gid_.begin());
    gid_index_ = static_cast<std::uint8_t>(gid.gid_index);
    address_ = make_address(context_, gid_.data(), gid_index_);
    ASSERT_EQ(doca_uar_create(dev_, DOCA_UAR_ALLOCATION_TYPE_NONCACHE, &uar_), DOCA_SUCCESS);
    make(main_);
    make(companion_, true);
    make(peer_);
    make(peer_companion_);
    connect_all();
    if (GetParam() == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY) {
      proxy_ = std::jthread([this](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          for (const KernelEnd* each : {&main_, &companion_, &peer_, &peer_companion_}) {
            EXPECT_EQ(doca_gpu_verbs_cpu_proxy_progress(each->exported), DOCA_SUCCESS);
          }
          std::this_thread::yield();
        }
      });
    } else {
      EXPECT_EQ(doca_gpu_verbs_cpu_proxy_progress(main_.exported), DOCA_ERROR_BAD_STATE);
    }
  }
  void TearDown() override {
    proxy_ = {};
    for (KernelEnd* each : {&main_, &companion_, &peer_, &peer_companion_}) end(*each);
    EXPECT_EQ(doca_uar_destroy(uar_), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_ah_attr_destroy(address_), DOCA_SUCCESS);
    EXPECT_EQ(ibv_dereg_mr(region_), 0);
    EXPECT_EQ(doca_dev_close(dev_), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_pd_destroy(pd_), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_context_destroy(context_), DOCA_SUCCESS);
    EXPECT_EQ(doca_gpu_destroy(gpu_), DOCA_SUCCESS);
  }

  void* allocate(KernelEnd& of, std::size_t size) {
    void* memory = nullptr;
    EXPECT_EQ(doca_gpu_mem_alloc(gpu_, size, kKernelPage, DOCA_GPU_MEM_TYPE_GPU, &memory, nullptr),
              DOCA_SUCCESS);
    of.memory.push_back(memory);
    return memory;
  }
  doca_verbs_cq* make_completions(KernelEnd& of, doca_umem*& umem) {
    void* const memory = allocate(of, 2 * kKernelPage);
    auto* const entries = static_cast<wire::Cqe*>(memory);
    for (std::uint32_t i = 0; i < kKernelEntries; ++i) {
      entries[i].words[wire::kCqeOwner] = wire::big_endian(wire::kFreshOwner);
    }
    EXPECT_EQ(doca_umem_gpu_create(gpu_, dev_, memory, 2 * kKernelPage,
                                   DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, &umem),
              DOCA_SUCCESS);
    doca_verbs_cq_attr* attributes = nullptr;
    EXPECT_EQ(doca_verbs_cq_attr_create(&attributes), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_cq_attr_set_external_datapath_en(attributes, 1), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_cq_attr_set_external_umem(attributes, umem, 0), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_cq_attr_set_cq_size(attributes, kKernelEntries), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_cq_attr_set_cq_overrun(attributes, 1), DOCA_SUCCESS);
    doca_verbs_cq* queue = nullptr;
    EXPECT_EQ(doca_verbs_cq_create(context_, attributes, &queue), DOCA_SUCCESS);
    EXPECT_NE(doca_verbs_cq_get_cqn(queue), 0U);
    EXPECT_EQ(doca_verbs_cq_attr_destroy(attributes), DOCA_SUCCESS);
    ibv_wc none{};
    EXPECT_LT(doca_verbs_bridge_poll_cq(queue, 1, &none), 0);
    return queue;
  }
  doca_verbs_qp_init_attr* attributes_of(const KernelEnd& of) const {
    doca_verbs_qp_init_attr* const made = make_qp_attributes(pd_, of.sends, of.receives, uar_);
    EXPECT_EQ(doca_verbs_qp_init_attr_set_external_datapath_en(made, 1), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_init_attr_set_external_umem(made, of.rings_umem, 0), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_init_attr_set_external_dbr_umem(made, of.records_umem, 0),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_init_attr_set_sq_wr(made, kKernelEntries), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_init_attr_set_rq_wr(made, kKernelEntries), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_init_attr_set_send_max_sges(made, 1), DOCA_SUCCESS);
    return made;
  }
  void make(KernelEnd& of, bool is_master = false) {
    of.sends = make_completions(of, of.sends_umem);
    of.receives = make_completions(of, of.receives_umem);
    constexpr std::size_t kRings = kKernelEntries * (wire::kBlockBytes + sizeof(wire::Segment));
    constexpr std::size_t kWhole = (kRings + kKernelPage - 1) / kKernelPage * kKernelPage;
    of.rings = allocate(of, kWhole);
    ASSERT_EQ(doca_umem_gpu_create(gpu_, dev_, of.rings, kWhole, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE,
                                   &of.rings_umem),
              DOCA_SUCCESS);
    void* const records = allocate(of, kKernelPage);
    if (GetParam() == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY) {
      ASSERT_EQ(doca_umem_create(dev_, records, kKernelPage, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE,
                                 &of.records_umem),
                DOCA_SUCCESS);
    } else {
      ASSERT_EQ(doca_umem_gpu_create(gpu_, dev_, records, kKernelPage,
                                     DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, &of.records_umem),
                DOCA_SUCCESS);
    }
    doca_verbs_qp_init_attr* const attributes = attributes_of(of);
    EXPECT_EQ(doca_verbs_qp_init_attr_set_core_direct_master(attributes, is_master ? 1 : 0),
              DOCA_SUCCESS);
    ASSERT_EQ(doca_verbs_qp_create(context_, attributes, &of.pair), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_init_attr_destroy(attributes), DOCA_SUCCESS);
    ASSERT_EQ(doca_gpu_verbs_export_qp(gpu_, dev_, of.pair, GetParam(), of.rings, of.sends,
                                       of.receives, &of.exported),
              DOCA_SUCCESS);
    ASSERT_EQ(doca_gpu_verbs_get_qp_dev(of.exported, &of.kernel), DOCA_SUCCESS);
  }
  virtual void connect_all() {
    for (const auto& [one, other] :
         {std::pair(&main_, &peer_), std::pair(&companion_, &peer_companion_)}) {
      connect(*one, doca_verbs_qp_get_qpn(other->pair), address_);
      connect(*other, doca_verbs_qp_get_qpn(one->pair), address_);
    }
  }
  static void connect(const KernelEnd& own, std::uint32_t peer, doca_verbs_ah_attr* address) {
    QpAttributes attributes;
    attributes.set_peer(peer, address);
    EXPECT_EQ(
        doca_verbs_qp_attr_set_atomic_mode(attributes.get(), DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC),
        DOCA_SUCCESS);
    ASSERT_EQ(attributes.move(own.pair, DOCA_VERBS_QP_STATE_INIT,
                              kInitMask | DOCA_VERBS_QP_ATTR_ATOMIC_MODE),
              DOCA_SUCCESS);
    ASSERT_EQ(attributes.move(own.pair, DOCA_VERBS_QP_STATE_RTR, kReceiveMask), DOCA_SUCCESS);
    ASSERT_EQ(attributes.move(own.pair, DOCA_VERBS_QP_STATE_RTS, kSendMask), DOCA_SUCCESS);
  }
  void end(KernelEnd& of) {
    if (of.exported != nullptr) {
      EXPECT_EQ(doca_gpu_destroy(gpu_), DOCA_ERROR_IN_USE);
      EXPECT_EQ(doca_verbs_qp_destroy(of.pair), DOCA_ERROR_IN_USE);
      EXPECT_EQ(doca_gpu_verbs_unexport_qp(gpu_, of.exported), DOCA_SUCCESS);
    }
    if (of.pair != nullptr) {
      EXPECT_EQ(doca_umem_destroy(of.rings_umem), DOCA_ERROR_IN_USE);
      EXPECT_EQ(doca_verbs_qp_destroy(of.pair), DOCA_SUCCESS);
    }
    EXPECT_EQ(doca_verbs_cq_destroy(of.sends), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_cq_destroy(of.receives), DOCA_SUCCESS);
    for (doca_umem* umem : {of.sends_umem, of.receives_umem, of.rings_umem, of.records_umem}) {
      EXPECT_EQ(doca_umem_destroy(umem), DOCA_SUCCESS);
    }
    for (void* memory : of.memory) EXPECT_EQ(doca_gpu_mem_free(gpu_, memory), DOCA_SUCCESS);
  }

  [[nodiscard]] doca_gpu_dev_verbs_addr local(std::size_t offset) const {
    return {reinterpret_cast<std::uint64_t>(&bytes_[offset]), wire::big_endian(region_->lkey)};
  }
  [[nodiscard]] doca_gpu_dev_verbs_addr remote(std::size_t offset) const {
    return {reinterpret_cast<std::uint64_t>(&bytes_[offset]), wire::big_endian(region_->rkey)};
  }
  [[nodiscard]] std::uint64_t word(std::size_t offset) const {
    std::uint64_t value = 0;
    std::memcpy(&value, &bytes_[offset], sizeof value);
    return value;
  }

  static constexpr std::size_t kTo = 2048;
  static constexpr std::size_t kWord = 4096;
  static constexpr std::size_t kBefore = kWord + 8;

  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(2 * kKernelPage);
  doca_gpu* gpu_ = nullptr;
  doca_verbs_context* context_ = nullptr;
  doca_verbs_pd* pd_ = nullptr;
  doca_dev* dev_ = nullptr;
  doca_uar* uar_ = nullptr;
  std::array<std::uint8_t, 16> gid_{};
  std::uint8_t gid_index_ = 0;
  doca_verbs_ah_attr* address_ = nullptr;
  ibv_mr* region_ = nullptr;
  KernelEnd main_;
  KernelEnd companion_;
  KernelEnd peer_;
  KernelEnd peer_companion_;
  std::jthread proxy_;
};

TEST_P(GpuVerbsTest, AKernelPutsAndGets) {
  for (std::size_t round = 0; round < kKernelRounds; ++round) {
    std::memset(bytes_.data(), static_cast<int>(round), kKernelBytes);
    doca_gpu_dev_verbs_ticket_t ticket = 0;
    ASSERT_EQ(doca_gpu_dev_verbs_put(main_.kernel, remote(kTo), local(0), kKernelBytes, &ticket),
              0);
    ASSERT_EQ(doca_gpu_dev_verbs_wait(main_.kernel), 0);
    ASSERT_EQ(std::memcmp(bytes_.data(), &bytes_[kTo], kKernelBytes), 0) << round;
    std::memset(bytes_.data(), 0xff, kKernelBytes);
    ASSERT_EQ(
        doca_gpu_dev_verbs_get(main_.kernel, remote(kTo), local(0), kKernelBytes, {0, 0}, &ticket),
        0);
    ASSERT_EQ(doca_gpu_dev_verbs_get_wait(main_.kernel, {0, 0}), 0);
    ASSERT_EQ(std::memcmp(bytes_.data(), &bytes_[kTo], kKernelBytes), 0) << round;
  }
}

TEST_P(GpuVerbsTest, AKernelSignalsAndCounts) {
  for (std::size_t round = 0; round < kKernelRounds; ++round) {
    ASSERT_EQ(doca_gpu_dev_verbs_put_signal(main_.kernel, remote(kTo), local(0), kKernelBytes,
                                            remote(kWord), local(kBefore), 3),
              0);
  }
  ASSERT_EQ(doca_gpu_dev_verbs_wait(main_.kernel), 0);
  EXPECT_EQ(word(kWord), 3 * kKernelRounds);
  EXPECT_EQ(word(kBefore), 3 * (kKernelRounds - 1));
  for (std::size_t round = 0; round < kKernelRounds; ++round) {
    ASSERT_EQ(doca_gpu_dev_verbs_put_counter(main_.kernel, remote(kTo), local(0), kKernelBytes,
                                             companion_.kernel, remote(kWord), local(kBefore), 1),
              0);
  }
  ASSERT_EQ(doca_gpu_dev_verbs_wait(companion_.kernel), 0);
  EXPECT_EQ(word(kWord), 4 * kKernelRounds);
}

TEST_P(GpuVerbsTest, KernelsSendAndReceive) {
  std::memset(bytes_.data(), 7, kKernelBytes);
  for (std::size_t round = 0; round < kKernelRounds; ++round) {
    doca_gpu_dev_verbs_ticket_t ticket = 0;
    mlx5_cqe64* cqe = nullptr;
    ASSERT_EQ(doca_gpu_dev_verbs_recv(peer_.kernel, local(kTo), kKernelBytes, &ticket), 0);
    ASSERT_EQ(doca_gpu_dev_verbs_send(main_.kernel, local(0), kKernelBytes, &ticket), 0);
    ASSERT_EQ(doca_gpu_dev_verbs_recv_wait(peer_.kernel, {0, 0}, &cqe), 0);
    EXPECT_EQ(doca_gpu_dev_verbs_cqe_get_bytes(cqe), kKernelBytes);
    EXPECT_EQ(bytes_[kTo + kKernelBytes - 1], 7);
  }
  ASSERT_EQ(doca_gpu_dev_verbs_wait(main_.kernel), 0);
}

TEST_P(GpuVerbsTest, WhatDoesNotBelongTogetherIsRefused) {
  const auto refused = [&](auto set) {
    doca_verbs_qp_init_attr* const attributes = attributes_of(main_);
    EXPECT_EQ(set(attributes), DOCA_SUCCESS);
    doca_verbs_qp* pair = nullptr;
    const doca_error_t result = doca_verbs_qp_create(context_, attributes, &pair);
    EXPECT_EQ(doca_verbs_qp_init_attr_destroy(attributes), DOCA_SUCCESS);
    return result;
  };
  EXPECT_EQ(refused([](auto* each) { return doca_verbs_qp_init_attr_set_sq_wr(each, 63); }),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused([](auto* each) { return doca_verbs_qp_init_attr_set_rq_wr(each, 2); }),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused([](auto* each) { return doca_verbs_qp_init_attr_set_sq_wr(each, 128); }),
            DOCA_ERROR_INVALID_VALUE);  // no room
  EXPECT_EQ(refused([&](auto* each) {
              return doca_verbs_qp_init_attr_set_external_umem(each, main_.rings_umem, 64);
            }),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused([&](auto* each) {
              return doca_verbs_qp_init_attr_set_external_dbr_umem(each, main_.records_umem,
                                                                   kKernelPage - 4);
            }),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused([](auto* each) { return doca_verbs_qp_init_attr_set_send_max_sges(each, 2); }),
            DOCA_ERROR_NOT_SUPPORTED);
  doca_gpu_verbs_qp* exported = nullptr;
  EXPECT_EQ(doca_gpu_verbs_export_qp(gpu_, dev_, main_.pair, GetParam(), main_.rings, peer_.sends,
                                     main_.receives, &exported),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(
      doca_gpu_verbs_export_qp(gpu_, dev_, main_.pair, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB,
                               main_.rings, main_.sends, main_.receives, &exported),
      DOCA_ERROR_NOT_SUPPORTED);  // a host GPU reaches no registers
  ibv_send_wr request{};
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(doca_verbs_bridge_post_send(main_.pair, &request, &bad), EINVAL);
  EXPECT_EQ(bad, &request);
  ibv_recv_wr receive{};
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(doca_verbs_bridge_post_recv(main_.pair, &receive, &bad_receive), EINVAL);
}

INSTANTIATE_TEST_SUITE_P(Card, GpuVerbsTest,
                         testing::Values(DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
                                         DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY));

/// Does the same between two processes, each with its own device.
class GpuVerbsProcessesTest : public GpuVerbsTest {
 protected:
  /// A process tells it the other.
  struct Greeting {
    std::array<std::uint8_t, 16> gid;
    std::uint32_t pair;
    std::uint32_t key;
    std::uint64_t address;
  };

  void SetUp() override {
    child_.emplace([this](int socket) {
      socket_ = socket;
      GpuVerbsTest::SetUp();
      if (!HasFatalFailure()) answer();
      TearDown();
      return HasFailure() ? 1 : 0;
    });
    socket_ = child_->socket();
    GpuVerbsTest::SetUp();
  }
  void TearDown() override {
    GpuVerbsTest::TearDown();
    if (other_address_ != nullptr) {
      EXPECT_EQ(doca_verbs_ah_attr_destroy(other_address_), DOCA_SUCCESS);
    }
  }

  void connect_all() override {
    const Greeting own{gid_, doca_verbs_qp_get_qpn(main_.pair), region_->rkey,
                       reinterpret_cast<std::uint64_t>(bytes_.data())};
    ASSERT_EQ(::send(socket_, &own, sizeof own, MSG_NOSIGNAL), ssize_t{sizeof own});
    ASSERT_EQ(::recv(socket_, &other_, sizeof other_, 0), ssize_t{sizeof other_});
    other_address_ = make_address(context_, other_.gid.data(), gid_index_);
    connect(main_, other_.pair, other_address_);
    wait_for_other();
  }
  /// Returns when the other process has called it too.
  void wait_for_other() const {
    char byte = 0;
    ASSERT_EQ(::send(socket_, &byte, 1, MSG_NOSIGNAL), 1);
    ASSERT_EQ(::recv(socket_, &byte, 1, 0), 1);
  }
  [[nodiscard]] doca_gpu_dev_verbs_addr there(std::size_t offset) const {
    return {other_.address + offset, wire::big_endian(other_.key)};
  }
  /// The other process's part of the test.
  void answer() {
    std::memset(&bytes_[kAnswer], 9, kKernelBytes);
    wait_for_other();  // its operations begin
    wait_for_other();  // and have ended
    EXPECT_EQ(word(kWord), kKernelRounds);
    EXPECT_EQ(std::count(&bytes_[kTo], &bytes_[kTo + kKernelBytes], kKernelRounds - 1),
              std::ptrdiff_t{kKernelBytes});
    doca_gpu_dev_verbs_ticket_t ticket = 0;
    for (std::size_t round = 0; round < kKernelEntries; ++round) {
      ASSERT_EQ(doca_gpu_dev_verbs_send(main_.kernel, local(kAnswer), kKernelBytes, &ticket), 0);
    }
    ASSERT_EQ(doca_gpu_dev_verbs_wait(main_.kernel), 0);
    wait_for_other();
  }

  static constexpr std::size_t kAnswer = 1024;

  std::optional<support::ChildProcess> child_;
  int socket_ = -1;
  Greeting other_{};
  doca_verbs_ah_attr* other_address_ = nullptr;
};

TEST_P(GpuVerbsProcessesTest, KernelsOfTwoProcessesReachEachOther) {
  doca_gpu_dev_verbs_ticket_t ticket = 0;
  for (std::size_t round = 0; round < kKernelEntries; ++round) {
    ASSERT_EQ(doca_gpu_dev_verbs_recv(main_.kernel, local(kTo), kKernelBytes, &ticket), 0);
  }
  wait_for_other();
  for (std::size_t round = 0; round < kKernelRounds; ++round) {
    std::memset(bytes_.data(), static_cast<int>(round), kKernelBytes);
    ASSERT_EQ(doca_gpu_dev_verbs_put_signal(main_.kernel, there(kTo), local(0), kKernelBytes,
                                            there(kWord), local(kBefore), 1),
              0);
    ASSERT_EQ(doca_gpu_dev_verbs_wait(main_.kernel), 0);
    EXPECT_EQ(word(kBefore), round);
  }
  ASSERT_EQ(
      doca_gpu_dev_verbs_get(main_.kernel, there(kAnswer), local(0), kKernelBytes, {0, 0}, &ticket),
      0);
  ASSERT_EQ(doca_gpu_dev_verbs_get_wait(main_.kernel, {0, 0}), 0);
  EXPECT_EQ(std::count(bytes_.begin(), bytes_.begin() + kKernelBytes, 9),
            std::ptrdiff_t{kKernelBytes});
  wait_for_other();
  mlx5_cqe64* cqe = nullptr;
  for (std::size_t round = 0; round < kKernelEntries; ++round) {
    ASSERT_EQ(doca_gpu_dev_verbs_recv_wait(main_.kernel, {0, 0}, &cqe), 0);
    EXPECT_EQ(doca_gpu_dev_verbs_cqe_get_bytes(cqe), kKernelBytes);
  }
  EXPECT_EQ(std::count(&bytes_[kTo], &bytes_[kTo + kKernelBytes], 9), std::ptrdiff_t{kKernelBytes});
  wait_for_other();
  EXPECT_EQ(child_->wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Card, GpuVerbsProcessesTest,
                         testing::Values(DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
                                         DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY));

}  // namespace
}  // namespace offload::doca
