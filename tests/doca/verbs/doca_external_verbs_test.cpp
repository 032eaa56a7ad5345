// Verbs of devices that are no mlx5 cards: what they know of external data paths.
#include <doca_gpunetio.h>
#include <doca_umem.h>

#include <vector>

#include "tests/doca/verbs/fake_device.hpp"
#include "tests/doca/verbs/verbs_fixture.hpp"
#include "tests/rdma/fake_verbs.hpp"

namespace offload::doca {
namespace {

using rdma::test::fake;

constexpr doca_error_t kRefused = DOCA_ERROR_INVALID_VALUE;
constexpr doca_error_t kNotSupported = DOCA_ERROR_NOT_SUPPORTED;

/// Verbs on the fake device, which a program opens by libibverbs' list.
class DocaExternalVerbsTest : public DocaFakeDeviceTest {
 protected:
  DocaExternalVerbsTest() {
    int count = 0;
    ibv_device** const list = (ibv_get_device_list)(&count);
    EXPECT_EQ(doca_verbs_bridge_verbs_context_create(list[0], DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE,
                                                     &context_),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_bridge_verbs_context_create(list[0], 1, &context_), kRefused);
    ibv_free_device_list(list);
    EXPECT_EQ(doca_verbs_pd_create(context_, &pd_), DOCA_SUCCESS);
  }
  ~DocaExternalVerbsTest() override {
    EXPECT_EQ(doca_verbs_pd_destroy(pd_), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_context_destroy(context_), DOCA_SUCCESS);
  }
  /// Returns the result of the creation of a queue pair whose attributes `set` changes.
  template <class Set>
  doca_error_t create_with(const Set& set) {
    doca_verbs_cq* const cq = make_cq(context_);
    EXPECT_EQ(doca_verbs_cq_get_cqn(cq), 0U);
    doca_verbs_qp_init_attr* const attributes = make_qp_attributes(pd_, cq, cq);
    EXPECT_EQ(set(attributes), DOCA_SUCCESS);
    doca_verbs_qp* pair = nullptr;
    const doca_error_t result = doca_verbs_qp_create(context_, attributes, &pair);
    if (pair != nullptr) {
      EXPECT_EQ(doca_verbs_qp_destroy(pair), DOCA_SUCCESS);
    }
    EXPECT_EQ(doca_verbs_qp_init_attr_destroy(attributes), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_cq_destroy(cq), DOCA_SUCCESS);
    return result;
  }

  doca_verbs_context* context_ = nullptr;
  doca_verbs_pd* pd_ = nullptr;
};

TEST_F(DocaExternalVerbsTest, TheDeviceTellsItsLimits) {
  doca_verbs_device_attr* limits = nullptr;
  ASSERT_EQ(doca_verbs_query_device(context_, &limits), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_device_attr_get_max_qp_rd_atom(limits), 16U);
  EXPECT_EQ(doca_verbs_device_attr_get_max_qp_init_rd_atom(limits), 8U);
  EXPECT_EQ(doca_verbs_device_attr_get_is_cqe_inline_supported(limits), kNotSupported);
  EXPECT_EQ(doca_verbs_device_attr_get_is_send_dbr_mode_supported(
                limits, DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID),
            DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_device_attr_get_is_send_dbr_mode_supported(
                limits, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT),
            kNotSupported);
  EXPECT_EQ(doca_verbs_device_attr_get_is_send_dbr_mode_supported(
                nullptr, DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID),
            kRefused);
  EXPECT_EQ(doca_verbs_device_attr_free(limits), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_device_attr_free(nullptr), kRefused);
  EXPECT_EQ(doca_verbs_query_device(context_, nullptr), kRefused);
  EXPECT_EQ(doca_verbs_device_attr_get_max_qp_rd_atom(nullptr), 0U);
  EXPECT_EQ(doca_verbs_device_attr_get_max_qp_init_rd_atom(nullptr), 0U);
  EXPECT_EQ(doca_verbs_device_attr_get_is_cqe_inline_supported(nullptr), kRefused);
}

TEST_F(DocaExternalVerbsTest, ADeviceOfAProtectionDomainUsesIt) {
  ibv_pd* const native = doca_verbs_bridge_verbs_pd_get_ibv_pd(pd_);
  doca_dev* dev = nullptr;
  ASSERT_EQ(doca_rdma_bridge_open_dev_from_pd(native, &dev), DOCA_SUCCESS);
  ibv_pd* found = nullptr;
  EXPECT_EQ(doca_rdma_bridge_get_dev_pd(dev, &found), DOCA_SUCCESS);
  EXPECT_EQ(found, native);
  EXPECT_EQ(doca_dev_close(dev), DOCA_SUCCESS);
  EXPECT_EQ(doca_rdma_bridge_open_dev_from_pd(nullptr, &dev), kRefused);
}

TEST_F(DocaExternalVerbsTest, OnlyACardKnowsMemoryForItsQueues) {
  std::vector<std::uint8_t> bytes(4096);
  doca_umem* umem = nullptr;
  EXPECT_EQ(
      doca_umem_create(dev_, bytes.data(), bytes.size(), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, &umem),
      kNotSupported);
  EXPECT_EQ(doca_umem_create(dev_, bytes.data(), 0, 0, &umem), kRefused);
  EXPECT_EQ(doca_umem_create(dev_, nullptr, 4096, 0, &umem), kRefused);
  EXPECT_EQ(doca_umem_create(dev_, bytes.data(), 4096, 1U << 30, &umem), kRefused);
  EXPECT_EQ(doca_umem_gpu_create(nullptr, dev_, bytes.data(), 4096, 0, &umem), kRefused);
  EXPECT_EQ(doca_umem_destroy(nullptr), kRefused);
  EXPECT_EQ(umem, nullptr);
  for (const doca_uar_allocation_type type :
       {DOCA_UAR_ALLOCATION_TYPE_BLUEFLAME, DOCA_UAR_ALLOCATION_TYPE_NONCACHE,
        DOCA_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED}) {
    doca_uar* uar = nullptr;
    EXPECT_EQ(doca_uar_create(dev_, type, &uar), kNotSupported);
  }
}

TEST_F(DocaExternalVerbsTest, WhatOnlyACardsQueuesHaveIsRefused) {
  EXPECT_EQ(create_with([](auto* each) { return doca_verbs_qp_init_attr_set_cqe_inline(each, 1); }),
            kNotSupported);
  EXPECT_EQ(create_with(
                [](auto* each) { return doca_verbs_qp_init_attr_set_core_direct_master(each, 1); }),
            kNotSupported);
  EXPECT_EQ(create_with([](auto* each) {
              return doca_verbs_qp_init_attr_set_send_dbr_mode(
                  each, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT);
            }),
            kNotSupported);
  EXPECT_EQ(create_with([](auto* each) {
              EXPECT_EQ(doca_verbs_qp_init_attr_set_external_umem(each, nullptr, 0), kRefused);
              EXPECT_EQ(doca_verbs_qp_init_attr_set_external_dbr_umem(each, nullptr, 0), kRefused);
              return doca_verbs_qp_init_attr_set_core_direct_master(each, 0);
            }),
            DOCA_SUCCESS);
  doca_verbs_cq_attr* attributes = nullptr;
  ASSERT_EQ(doca_verbs_cq_attr_create(&attributes), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_cq_attr_set_external_umem(attributes, nullptr, 0), kRefused);
  EXPECT_EQ(doca_verbs_cq_attr_set_cq_overrun(nullptr, 1), kRefused);
  EXPECT_EQ(doca_verbs_cq_attr_destroy(attributes), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_cq_get_cqn(nullptr), 0U);
}

/// Reads and atomics of a peer, as many as the program says.
TEST_F(DocaExternalVerbsTest, RightsAndOutstandingReadsAreThoseOfTheMask) {
  doca_verbs_cq* const cq = make_cq(context_);
  doca_verbs_qp* const pair = make_qp(context_, pd_, cq, cq);
  doca_verbs_ah_attr* const address = make_address(context_, fake().gids[0].gid.raw, 1);
  QpAttributes attributes;
  attributes.set_peer(5, address);
  EXPECT_EQ(doca_verbs_qp_attr_set_atomic_mode(attributes.get(), DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC),
            DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_qp_attr_set_max_rd_atomic(attributes.get(), 4), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_qp_attr_set_max_dest_rd_atomic(attributes.get(), 8), DOCA_SUCCESS);
  ASSERT_EQ(
      attributes.move(pair, DOCA_VERBS_QP_STATE_INIT, kInitMask | DOCA_VERBS_QP_ATTR_ATOMIC_MODE),
      DOCA_SUCCESS);
  EXPECT_EQ(fake().queue_pairs.at(0)->attributes.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC,
            unsigned{IBV_ACCESS_REMOTE_ATOMIC});
  ASSERT_EQ(attributes.move(pair, DOCA_VERBS_QP_STATE_RTR,
                            kReceiveMask | DOCA_VERBS_QP_ATTR_MAX_DEST_RD_ATOMIC),
            DOCA_SUCCESS);
  EXPECT_EQ(fake().queue_pairs.at(0)->attributes.max_dest_rd_atomic, 8);
  ASSERT_EQ(attributes.move(pair, DOCA_VERBS_QP_STATE_RTS,
                            kSendMask | DOCA_VERBS_QP_ATTR_MAX_QP_RD_ATOMIC),
            DOCA_SUCCESS);
  EXPECT_EQ(fake().queue_pairs.at(0)->attributes.max_rd_atomic, 4);
  EXPECT_EQ(doca_verbs_qp_destroy(pair), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_ah_attr_destroy(address), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_cq_destroy(cq), DOCA_SUCCESS);
}

TEST_F(DocaExternalVerbsTest, QueuePairsOfLibibverbsAreNotForKernels) {
  ::setenv("OFFLOAD_DOCA_GPUS", "17:00.0", 1);
  doca_gpu* gpu = nullptr;
  ASSERT_EQ(doca_gpu_create("17:00.0", &gpu), DOCA_SUCCESS);
  ::unsetenv("OFFLOAD_DOCA_GPUS");
  doca_verbs_cq* const cq = make_cq(context_);
  doca_verbs_qp* const pair = make_qp(context_, pd_, cq, cq);
  doca_gpu_verbs_qp* exported = nullptr;
  int rings = 0;
  EXPECT_EQ(doca_gpu_verbs_export_qp(gpu, dev_, pair, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO, &rings,
                                     cq, cq, &exported),
            kRefused);
  EXPECT_EQ(doca_gpu_verbs_export_qp(gpu, dev_, nullptr, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
                                     &rings, cq, cq, &exported),
            kRefused);
  EXPECT_EQ(doca_gpu_verbs_unexport_qp(gpu, nullptr), kRefused);
  EXPECT_EQ(doca_gpu_verbs_get_qp_dev(nullptr, nullptr), kRefused);
  EXPECT_EQ(doca_gpu_verbs_cpu_proxy_progress(nullptr), kRefused);
  EXPECT_EQ(doca_verbs_qp_destroy(pair), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_cq_destroy(cq), DOCA_SUCCESS);
  EXPECT_EQ(doca_gpu_destroy(gpu), DOCA_SUCCESS);
}

}  // namespace
}  // namespace offload::doca
