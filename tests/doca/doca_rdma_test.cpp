#include <cstdint>
#include <utility>
#include <vector>

#include "memory/region_blob.hpp"
#include "tests/doca/dma_fixture.hpp"
#include "tests/doca/rdma_fixture.hpp"

/// Contexts for RDMA and memory of peers, as far as they can be tested without a device. The rest
/// needs one: guest/rdma_test.cpp and guest/rdma_cm_test.cpp.
namespace offload::doca {
namespace {

using memory::Access;

TEST(DocaRdmaWithoutDevice, AHostDeviceHasNoTasksOfRdma) {
  doca_dev* const dev = open_first_device();
  const doca_devinfo* const info = doca_dev_as_devinfo(dev);
  for (const doca_devinfo* of : {info, static_cast<const doca_devinfo*>(nullptr)}) {
    const doca_error_t no = of == info ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE;
    EXPECT_EQ(doca_rdma_cap_task_receive_is_supported(of), no);
    EXPECT_EQ(doca_rdma_cap_task_send_is_supported(of), no);
    EXPECT_EQ(doca_rdma_cap_task_send_imm_is_supported(of), no);
    EXPECT_EQ(doca_rdma_cap_task_read_is_supported(of), no);
    EXPECT_EQ(doca_rdma_cap_task_write_is_supported(of), no);
    EXPECT_EQ(doca_rdma_cap_task_write_imm_is_supported(of), no);
    EXPECT_EQ(doca_rdma_cap_task_remote_net_sync_event_get_is_supported(of), no);
    EXPECT_EQ(doca_rdma_cap_task_remote_net_sync_event_notify_set_is_supported(of), no);
  }
  doca_rdma* rdma = nullptr;
  EXPECT_EQ(doca_rdma_create(dev, &rdma), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_rdma_create(nullptr, &rdma), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(rdma, nullptr);
  EXPECT_EQ(doca_dev_close(dev), DOCA_SUCCESS);
}

TEST(DocaRdmaWithoutDevice, RefusesNull) {
  const void* bytes = nullptr;
  std::size_t size = 0;
  doca_rdma_connection* connection = nullptr;
  doca_data data{};
  EXPECT_EQ(doca_rdma_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_as_ctx(nullptr), nullptr);
  EXPECT_EQ(doca_rdma_set_permissions(nullptr, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_set_gid_index(nullptr, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_set_max_num_connections(nullptr, 1), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_export(nullptr, &bytes, &size, &connection), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_connect(nullptr, &size, size, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_connection_set_user_data(nullptr, data), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_connection_get_user_data(nullptr, &data), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_connection_accept(nullptr, nullptr, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_connection_reject(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_connection_disconnect(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_start_listen_to_port(nullptr, 1), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_stop_listen_to_port(nullptr, 1), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_connect_to_addr(nullptr, nullptr, {}), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_set_connection_state_callbacks(nullptr, nullptr, nullptr, nullptr, nullptr),
            DOCA_ERROR_INVALID_VALUE);
  doca_rdma_task_write* write = nullptr;
  EXPECT_EQ(doca_rdma_task_write_allocate_init(nullptr, nullptr, nullptr, nullptr, {}, &write),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_rdma_task_write_as_task(nullptr), nullptr);
  EXPECT_EQ(doca_rdma_task_receive_get_result_len(nullptr), 0U);
}

TEST(DocaRdmaWithoutDevice, AnAddressIsANumberOfItsFamily) {
  struct Case {
    doca_rdma_addr_type type;
    const char* text;
    doca_error_t result;
  };
  for (const Case& each : {Case{DOCA_RDMA_ADDR_TYPE_IPv4, "10.0.0.1", DOCA_SUCCESS},
                           Case{DOCA_RDMA_ADDR_TYPE_IPv6, "fd00::1", DOCA_SUCCESS},
                           Case{DOCA_RDMA_ADDR_TYPE_GID, "fd00::1", DOCA_SUCCESS},
                           Case{DOCA_RDMA_ADDR_TYPE_GID, "::ffff:10.0.0.1", DOCA_SUCCESS},
                           Case{DOCA_RDMA_ADDR_TYPE_IPv4, "fd00::1", DOCA_ERROR_INVALID_VALUE},
                           Case{DOCA_RDMA_ADDR_TYPE_IPv6, "10.0.0.1", DOCA_ERROR_INVALID_VALUE},
                           Case{DOCA_RDMA_ADDR_TYPE_IPv4, "localhost", DOCA_ERROR_INVALID_VALUE},
                           Case{DOCA_RDMA_ADDR_TYPE_GID, "", DOCA_ERROR_INVALID_VALUE}}) {
    doca_rdma_addr* addr = nullptr;
    EXPECT_EQ(doca_rdma_addr_create(each.type, each.text, 1, &addr), each.result) << each.text;
    if (addr != nullptr) {
      EXPECT_EQ(doca_rdma_addr_destroy(addr), DOCA_SUCCESS);
    }
  }
  EXPECT_EQ(doca_rdma_addr_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
}

/// An mmap of a peer's export, in the inventory and with the DMA context of the fixture.
class PeerMemoryTest : public DmaTest {
 protected:
  /// The export of a peer with this range.
  static std::vector<std::byte> blob(std::uint64_t address, std::uint64_t length) {
    return memory::RegionBlob{Access::remote_read | Access::remote_write,
                              std::vector<memory::RemoteRange>{{address, length, 7}}}
        .encode();
  }
  doca_error_t import(const std::vector<std::byte>& bytes, doca_mmap** mmap) {
    return doca_mmap_create_from_export(nullptr, bytes.data(), bytes.size(), dev_, mmap);
  }
};

TEST_F(PeerMemoryTest, HasTheRangeOfThePeerAndIsReachedByNoOtherTask) {
  doca_mmap* far = nullptr;
  ASSERT_EQ(import(blob(0x1000, 4096), &far), DOCA_SUCCESS);
  void* begin = nullptr;
  std::size_t length = 0;
  EXPECT_EQ(doca_mmap_get_memrange(far, &begin, &length), DOCA_SUCCESS);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(begin), 0x1000U);
  EXPECT_EQ(length, 4096U);
  const void* export_desc = nullptr;
  EXPECT_EQ(doca_mmap_export_rdma(far, dev_, &export_desc, &length), DOCA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(doca_mmap_export_rdma(mmap_, dev_, &export_desc, &length), DOCA_ERROR_NOT_SUPPORTED);

  doca_buf* there = nullptr;
  ASSERT_EQ(doca_buf_inventory_buf_get_by_data(inventory_, far, begin, 16, &there), DOCA_SUCCESS);
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  doca_buf* const here = destination(0);
  doca_dma_task_memcpy* task = nullptr;
  ASSERT_EQ(doca_dma_task_memcpy_alloc_init(dma_, there, here, {}, &task), DOCA_SUCCESS);
  EXPECT_EQ(submit(task), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_mmap_stop(far), DOCA_ERROR_NOT_PERMITTED);  // it has a buffer
  free_all(task);
  EXPECT_EQ(doca_mmap_stop(far), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_start(far), DOCA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(doca_mmap_destroy(far), DOCA_SUCCESS);
}

TEST_F(PeerMemoryTest, RefusesBytesThatAreDamagedOrCutOff) {
  const auto good = blob(0x1000, 4096);
  doca_mmap* far = nullptr;
  for (std::size_t length = 1; length < good.size(); ++length) {
    const std::vector<std::byte> part{good.begin(),
                                      good.begin() + static_cast<std::ptrdiff_t>(length)};
    EXPECT_EQ(import(part, &far), DOCA_ERROR_INVALID_VALUE) << length;
  }
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] ^= std::byte{0x10};
    EXPECT_NE(import(bad, &far), DOCA_SUCCESS) << i;
  }
  // Ranges that no memory can have.
  EXPECT_EQ(import(blob(0, 4096), &far), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(import(blob(0x1000, 0), &far), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(import(blob(UINT64_MAX - 10, 4096), &far), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(far, nullptr);
}

}  // namespace
}  // namespace offload::doca
