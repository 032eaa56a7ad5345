#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_mmap.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <string>

#include "memory/process_memory.hpp"
#include "tests/doca/dma_fixture.hpp"

namespace {

unsigned long tracer = 0;  ///< what PR_SET_PTRACER set last

}  // namespace

/// Instead of libc's: kernels without Yama refuse PR_SET_PTRACER, and none says what is set.
extern "C" int prctl(int option, ...) {
  std::va_list arguments;
  va_start(arguments, option);
  unsigned long values[4];
  for (unsigned long& value : values) value = va_arg(arguments, unsigned long);
  va_end(arguments);
  if (option == PR_SET_PTRACER) tracer = values[0];
  return static_cast<int>(::syscall(SYS_prctl, option, values[0], values[1], values[2], values[3]));
}

namespace offload::doca {
namespace {

TEST_F(MemoryTest, ABufferDescribesAPieceAndItsData) {
  doca_buf* buf = nullptr;
  ASSERT_EQ(doca_buf_inventory_buf_get_by_args(inventory_, mmap_, piece(1), kPiece, piece(1) + 8,
                                               16, &buf),
            DOCA_SUCCESS);
  std::size_t length = 0;
  EXPECT_EQ(doca_buf_get_len(buf, &length), DOCA_SUCCESS);
  EXPECT_EQ(length, kPiece);
  void* at = nullptr;
  EXPECT_EQ(doca_buf_get_head(buf, &at), DOCA_SUCCESS);
  EXPECT_EQ(at, piece(1));
  EXPECT_EQ(doca_buf_get_data(buf, &at), DOCA_SUCCESS);
  EXPECT_EQ(at, piece(1) + 8);
  EXPECT_EQ(data_length(buf), 16U);
  EXPECT_EQ(doca_buf_set_data_len(buf, kPiece - 8), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_set_data_len(buf, kPiece - 7), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_set_data(buf, piece(1) - 1, 1), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_set_data(buf, piece(2), 1), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_reset_data_len(buf), DOCA_SUCCESS);
  EXPECT_EQ(data_length(buf), 0U);
  EXPECT_EQ(doca_buf_get_data(buf, &at), DOCA_SUCCESS);
  EXPECT_EQ(at, piece(1) + 8) << "the address of the data stays";
  EXPECT_EQ(doca_buf_dec_refcount(buf, nullptr), DOCA_SUCCESS);
}

TEST_F(MemoryTest, ReferencesAreCountedBeforeTheCall) {
  doca_buf* const buf = destination(0);
  std::uint16_t count = 0;
  EXPECT_EQ(doca_buf_inc_refcount(buf, &count), DOCA_SUCCESS);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(doca_buf_get_refcount(buf, &count), DOCA_SUCCESS);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(doca_buf_dec_refcount(buf, &count), DOCA_SUCCESS);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(doca_buf_dec_refcount(buf, &count), DOCA_SUCCESS);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(doca_buf_dec_refcount(buf, &count), DOCA_ERROR_BAD_STATE) << "it was returned";
  EXPECT_EQ(doca_buf_get_refcount(buf, &count), DOCA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryTest, ReferencesAreAtMostTheMostOfTheirType) {
  doca_buf* const buf = destination(0);
  for (std::uint32_t count = 1; count != UINT16_MAX; ++count) {
    ASSERT_EQ(doca_buf_inc_refcount(buf, nullptr), DOCA_SUCCESS);
  }
  EXPECT_EQ(doca_buf_inc_refcount(buf, nullptr), DOCA_ERROR_TOO_BIG);
  std::uint16_t count = 0;
  EXPECT_EQ(doca_buf_get_refcount(buf, &count), DOCA_SUCCESS);
  EXPECT_EQ(count, UINT16_MAX);
  while (doca_buf_dec_refcount(buf, nullptr) == DOCA_SUCCESS) continue;
}

TEST_F(MemoryTest, AListTakesTheOnlyReference) {
  doca_buf* const first = destination(0);
  doca_buf* const second = destination(1);
  ASSERT_EQ(doca_buf_inc_refcount(second, nullptr), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_chain_list(first, second), DOCA_ERROR_NOT_PERMITTED);
  ASSERT_EQ(doca_buf_dec_refcount(second, nullptr), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_chain_list(first, second), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_dec_refcount(first, nullptr), DOCA_SUCCESS);
}

TEST_F(MemoryTest, AListHoldsAReferenceToEachButTheFirst) {
  doca_buf* const first = destination(0);
  doca_buf* const second = source(1, 1);
  ASSERT_EQ(doca_buf_chain_list(first, second), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_chain_list(first, second), DOCA_ERROR_INVALID_VALUE) << "second is not first";
  EXPECT_EQ(doca_buf_chain_list(first, first), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_dec_refcount(second, nullptr), DOCA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(doca_buf_inc_refcount(second, nullptr), DOCA_ERROR_NOT_PERMITTED);
  std::uint32_t elements = 0;
  EXPECT_EQ(doca_buf_get_list_len(first, &elements), DOCA_SUCCESS);
  EXPECT_EQ(elements, 2U);
  EXPECT_EQ(doca_buf_get_list_len(second, &elements), DOCA_ERROR_NOT_PERMITTED);
  doca_buf* found = nullptr;
  EXPECT_EQ(doca_buf_get_next_in_list(first, &found), DOCA_SUCCESS);
  EXPECT_EQ(found, second);
  EXPECT_EQ(doca_buf_get_next_in_list(second, &found), DOCA_SUCCESS);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(doca_buf_get_last_in_list(first, &found), DOCA_SUCCESS);
  EXPECT_EQ(found, second);
  std::uint8_t is = 0;
  EXPECT_EQ(doca_buf_is_first_in_list(first, &is), DOCA_SUCCESS);
  EXPECT_EQ(is, 1);
  EXPECT_EQ(doca_buf_is_first_in_list(second, &is), DOCA_SUCCESS);
  EXPECT_EQ(is, 0);
  EXPECT_EQ(doca_buf_is_last_in_list(second, &is), DOCA_SUCCESS);
  EXPECT_EQ(is, 1);
  EXPECT_EQ(doca_buf_unchain_list(second, first), DOCA_ERROR_INVALID_VALUE);
  ASSERT_EQ(doca_buf_unchain_list(first, second), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_dec_refcount(second, nullptr), DOCA_SUCCESS) << "it is the program's again";
  ASSERT_EQ(doca_buf_chain_list(first, source(1, 1)), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_dec_refcount(first, nullptr), DOCA_SUCCESS) << "with all of the list";
}

TEST_F(MemoryTest, AnInventoryHasSoManyBuffers) {
  std::vector<doca_buf*> taken;
  for (std::size_t i = 0; i < kBuffers; ++i) taken.push_back(destination(i));
  doca_buf* buf = nullptr;
  EXPECT_EQ(doca_buf_inventory_buf_get_by_addr(inventory_, mmap_, piece(0), 1, &buf),
            DOCA_ERROR_NO_MEMORY);
  EXPECT_EQ(doca_buf_inventory_buf_dup(inventory_, taken[0], &buf), DOCA_ERROR_NO_MEMORY);
  std::uint32_t count = 0;
  EXPECT_EQ(doca_buf_inventory_get_num_elements(inventory_, &count), DOCA_SUCCESS);
  EXPECT_EQ(count, kBuffers);
  EXPECT_EQ(doca_buf_inventory_get_num_free_elements(inventory_, &count), DOCA_SUCCESS);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(doca_mmap_get_num_bufs(mmap_, &count), DOCA_SUCCESS);
  EXPECT_EQ(count, kBuffers);
  EXPECT_EQ(doca_buf_inventory_stop(inventory_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_buf_inventory_destroy(inventory_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_mmap_stop(mmap_), DOCA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(doca_mmap_destroy(mmap_), DOCA_ERROR_NOT_PERMITTED);
  for (doca_buf* each : taken) EXPECT_EQ(doca_buf_dec_refcount(each, nullptr), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_inventory_start(inventory_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_buf_inventory_stop(inventory_), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_inventory_stop(inventory_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_buf_inventory_buf_get_by_addr(inventory_, mmap_, piece(0), 1, &buf),
            DOCA_ERROR_NOT_PERMITTED);
}

TEST_F(MemoryTest, ADuplicateHasTheSamePieceAndData) {
  doca_buf* const buf = source(3, 5);
  doca_buf* other = nullptr;
  ASSERT_EQ(doca_buf_inventory_buf_dup(inventory_, buf, &other), DOCA_SUCCESS);
  void* at = nullptr;
  EXPECT_EQ(doca_buf_get_data(other, &at), DOCA_SUCCESS);
  EXPECT_EQ(at, piece(3));
  EXPECT_EQ(data_length(other), kPiece);
  EXPECT_EQ(doca_buf_dec_refcount(buf, nullptr), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_dec_refcount(other, nullptr), DOCA_SUCCESS);
}

TEST_F(MemoryTest, APieceOutsideTheMmapIsRefused) {
  doca_buf* buf = nullptr;
  const auto get = [&](void* at, std::size_t length) {
    return doca_buf_inventory_buf_get_by_addr(inventory_, mmap_, at, length, &buf);
  };
  EXPECT_EQ(get(piece(0), memory_.size() + 1), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(get(piece(0) - 1, 2), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(get(piece(0), 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(get(nullptr, 1), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_inventory_buf_get_by_args(inventory_, mmap_, piece(0), 8, piece(0), 9, &buf),
            DOCA_ERROR_INVALID_VALUE);
  ASSERT_EQ(doca_mmap_stop(mmap_), DOCA_SUCCESS);
  EXPECT_EQ(get(piece(0), 1), DOCA_ERROR_NOT_PERMITTED);
}

TEST_F(MemoryTest, AnMmapIsConfiguredWhileItIsStopped) {
  EXPECT_EQ(doca_mmap_start(mmap_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_mmap_add_dev(mmap_, dev_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_mmap_rm_dev(mmap_, dev_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_mmap_set_memrange(mmap_, piece(0), 1), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_mmap_set_permissions(mmap_, 0), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_mmap_set_free_cb(mmap_, nullptr, nullptr), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_mmap_set_user_data(mmap_, {.u64 = 2}), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_dev_close(dev_), DOCA_ERROR_IN_USE);
  ASSERT_EQ(doca_mmap_stop(mmap_), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_stop(mmap_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_mmap_add_dev(mmap_, dev_), DOCA_ERROR_ALREADY_EXIST);
  EXPECT_EQ(doca_mmap_rm_dev(mmap_, dev_), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_rm_dev(mmap_, dev_), DOCA_ERROR_NOT_FOUND);
  EXPECT_EQ(doca_mmap_start(mmap_), DOCA_ERROR_NOT_PERMITTED) << "it has no device";
  EXPECT_EQ(doca_mmap_add_dev(mmap_, dev_), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_set_permissions(mmap_, 1U << 20), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_set_permissions(
                mmap_, DOCA_ACCESS_FLAG_PCI_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE),
            DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_set_memrange(mmap_, piece(0), 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_set_user_data(mmap_, {.u64 = 3}), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_start(mmap_), DOCA_SUCCESS);
  void* at = nullptr;
  std::size_t length = 0;
  EXPECT_EQ(doca_mmap_get_memrange(mmap_, &at, &length), DOCA_SUCCESS);
  EXPECT_EQ(at, memory_.data());
  EXPECT_EQ(length, memory_.size());
  doca_data data{};
  EXPECT_EQ(doca_mmap_get_user_data(mmap_, &data), DOCA_SUCCESS);
  EXPECT_EQ(data.u64, 3U);
}

TEST_F(MemoryTest, AnMmapTellsWhenItsMemoryIsFree) {
  doca_mmap* other = nullptr;
  ASSERT_EQ(doca_mmap_create(&other), DOCA_SUCCESS);
  void* at = nullptr;
  std::size_t length = 0;
  EXPECT_EQ(doca_mmap_get_memrange(other, &at, &length), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_mmap_start(other), DOCA_ERROR_NOT_PERMITTED);
  std::vector<std::pair<void*, std::size_t>> freed;
  const auto on_free = [](void* addr, std::size_t len, void* cookie) {
    static_cast<decltype(freed)*>(cookie)->emplace_back(addr, len);
  };
  ASSERT_EQ(doca_mmap_set_free_cb(other, on_free, &freed), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_set_memrange(other, piece(0), SIZE_MAX), DOCA_ERROR_INVALID_VALUE);
  ASSERT_EQ(doca_mmap_set_memrange(other, piece(0), 8), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_set_memrange(other, piece(1), 16), DOCA_ERROR_NOT_PERMITTED);
  ASSERT_EQ(doca_mmap_add_dev(other, dev_), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_start(other), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_stop(other), DOCA_SUCCESS);
  EXPECT_TRUE(freed.empty()) << "it may be started again";
  ASSERT_EQ(doca_mmap_destroy(other), DOCA_SUCCESS);
  EXPECT_EQ(freed, (decltype(freed){{piece(0), 8}}));
}

TEST_F(MemoryTest, AnMmapThatWasNotStartedFreesNoMemory) {
  doca_mmap_memrange_free_cb_t* const on_free = [](void*, std::size_t, void* cookie) {
    ++*static_cast<int*>(cookie);
  };
  int calls = 0;
  doca_mmap* other = nullptr;
  ASSERT_EQ(doca_mmap_create(&other), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_set_memrange(other, piece(0), 8), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_set_free_cb(other, on_free, &calls), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_destroy(other), DOCA_SUCCESS);
  EXPECT_EQ(calls, 0);
  ASSERT_EQ(doca_mmap_create(&other), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_set_memrange(other, piece(0), 8), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_add_dev(other, dev_), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_start(other), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_stop(other), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_set_free_cb(other, on_free, &calls), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_destroy(other), DOCA_SUCCESS);
  EXPECT_EQ(calls, 0) << "the callback was set after the last start";
}

TEST_F(MemoryTest, AnExportNeedsTheRightAndTheDevice) {
  const void* blob = nullptr;
  std::size_t length = 0;
  EXPECT_EQ(doca_mmap_export_pci(mmap_, dev_, &blob, &length), DOCA_ERROR_NOT_PERMITTED);
  doca_dev* const other = open_first_device();
  EXPECT_EQ(doca_mmap_export_pci(mmap_, other, &blob, &length), DOCA_ERROR_NOT_FOUND);
  EXPECT_EQ(doca_dev_close(other), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_stop(mmap_), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_export_pci(mmap_, dev_, &blob, &length), DOCA_ERROR_NOT_PERMITTED);
  ASSERT_EQ(doca_mmap_set_permissions(mmap_, DOCA_ACCESS_FLAG_PCI_READ_ONLY), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_start(mmap_), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_export_pci(mmap_, dev_, &blob, &length), DOCA_SUCCESS);
  doca_mmap* imported = nullptr;
  const doca_data data{.u64 = 4};
  ASSERT_EQ(doca_mmap_create_from_export(&data, blob, length, dev_, &imported), DOCA_SUCCESS);
  doca_data read{};
  EXPECT_EQ(doca_mmap_get_user_data(imported, &read), DOCA_SUCCESS);
  EXPECT_EQ(read.u64, 4U);
  void* at = nullptr;
  std::size_t bytes = 0;
  EXPECT_EQ(doca_mmap_get_memrange(imported, &at, &bytes), DOCA_SUCCESS);
  EXPECT_EQ(at, memory_.data());
  EXPECT_EQ(bytes, memory_.size());
  EXPECT_EQ(doca_mmap_set_user_data(imported, {.u64 = 5}), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_mmap_stop(imported), DOCA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(doca_mmap_export_pci(imported, dev_, &blob, &length), DOCA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(doca_mmap_create_from_export(nullptr, blob, length - 1, dev_, &imported),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_create_from_export(nullptr, nullptr, 0, dev_, &imported),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_destroy(imported), DOCA_SUCCESS);
}

// The library's own exports have one range; other programs of the suite may export more.
TEST_F(MemoryTest, AnExportOfSeveralRangesIsRefused) {
  using namespace offload::memory;
  std::vector<std::byte> bytes(8);
  MemoryRegion region(
      {"exported", kLocalAccess | Access::peer_pcie},
      {borrow_range(std::span(bytes).first(4)), borrow_range(std::span(bytes).last(4))});
  region.start();
  const InPlaceExport made = export_in_place(region, kLocalAccess);
  doca_mmap* imported = nullptr;
  EXPECT_EQ(
      doca_mmap_create_from_export(nullptr, made.blob.data(), made.blob.size(), dev_, &imported),
      DOCA_ERROR_NOT_SUPPORTED);
}

TEST_F(MemoryTest, AnExportIsTheSameUntilTheStop) {
  ASSERT_EQ(doca_mmap_stop(mmap_), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_set_permissions(mmap_, DOCA_ACCESS_FLAG_PCI_READ_WRITE), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_start(mmap_), DOCA_SUCCESS);
  const void* first = nullptr;
  const void* second = nullptr;
  std::size_t length = 0;
  ASSERT_EQ(doca_mmap_export_pci(mmap_, dev_, &first, &length), DOCA_SUCCESS);
  const std::string bytes(static_cast<const char*>(first), length);
  ASSERT_EQ(doca_mmap_export_pci(mmap_, dev_, &second, &length), DOCA_SUCCESS);
  EXPECT_EQ(second, first) << "the program may still have the first one";
  ASSERT_EQ(doca_mmap_stop(mmap_), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_set_permissions(mmap_, DOCA_ACCESS_FLAG_PCI_READ_ONLY), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_start(mmap_), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_export_pci(mmap_, dev_, &second, &length), DOCA_SUCCESS);
  EXPECT_NE(std::string(static_cast<const char*>(second), length), bytes) << "it has other rights";
}

TEST_F(MemoryTest, TheProcessIsOpenToOthersUntilTheLastExportStops) {
  const auto make = [&] {
    doca_mmap* made = nullptr;
    EXPECT_EQ(doca_mmap_create(&made), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_set_memrange(made, piece(0), kPiece), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_set_permissions(made, DOCA_ACCESS_FLAG_PCI_READ_ONLY), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_add_dev(made, dev_), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_start(made), DOCA_SUCCESS);
    const void* blob = nullptr;
    std::size_t length = 0;
    EXPECT_EQ(doca_mmap_export_pci(made, dev_, &blob, &length), DOCA_SUCCESS);
    return made;
  };
  tracer = 0;
  doca_mmap* const first = make();
  EXPECT_EQ(tracer, PR_SET_PTRACER_ANY);
  doca_mmap* const second = make();
  EXPECT_EQ(doca_mmap_stop(first), DOCA_SUCCESS);
  EXPECT_EQ(tracer, PR_SET_PTRACER_ANY) << "the second one is exported";
  EXPECT_EQ(doca_mmap_destroy(second), DOCA_SUCCESS);
  EXPECT_EQ(tracer, 0UL);
  EXPECT_EQ(doca_mmap_destroy(first), DOCA_SUCCESS);
}

TEST_F(MemoryTest, NullIsRefused) {
  doca_buf* buf = nullptr;
  EXPECT_EQ(doca_mmap_create(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_start(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_stop(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_add_dev(mmap_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_rm_dev(nullptr, dev_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_set_permissions(nullptr, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_set_memrange(mmap_, nullptr, 1), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_get_memrange(mmap_, nullptr, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_set_free_cb(nullptr, nullptr, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_set_user_data(nullptr, {}), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_get_user_data(mmap_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_get_num_bufs(mmap_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_inventory_create(0, &inventory_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_inventory_create(1, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_inventory_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_inventory_start(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_inventory_buf_get_by_data(inventory_, nullptr, piece(0), 1, &buf),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_inventory_buf_dup(inventory_, nullptr, &buf), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_inventory_get_num_elements(nullptr, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_get_len(nullptr, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_set_data(nullptr, nullptr, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_set_data_len(nullptr, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_inc_refcount(nullptr, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_dec_refcount(nullptr, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_chain_list(nullptr, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_unchain_list(nullptr, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_get_next_in_list(nullptr, &buf), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_get_last_in_list(nullptr, &buf), DOCA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace offload::doca
