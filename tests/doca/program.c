/* A program in C, which includes every header, copies a text by DMA and sleeps until it is done. */
#include <doca_argp.h>
#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_build_config.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_dma.h>
#include <doca_error.h>
#include <doca_graph.h>
#include <doca_log.h>
#include <doca_mmap.h>
#include <doca_pe.h>
#include <doca_sync_event.h>
#include <doca_types.h>
#include <doca_version.h>
#include <poll.h>
#include <string.h>

DOCA_LOG_REGISTER(PROGRAM::C);

#define CHECK(call)                                                                    \
  do {                                                                                 \
    doca_error_t checked = (call);                                                     \
    if (checked != DOCA_SUCCESS) {                                                     \
      DOCA_LOG_ERR("line %d: %s", __LINE__, doca_error_get_descr(checked));            \
      return 1;                                                                        \
    }                                                                                  \
  } while (0)

static void on_end(struct doca_dma_task_memcpy *task, union doca_data task_data,
                   union doca_data ctx_data) {
  (void)ctx_data;
  *(doca_error_t *)task_data.ptr = doca_task_get_status(doca_dma_task_memcpy_as_task(task));
  doca_task_free(doca_dma_task_memcpy_as_task(task));
}

/* Turns of the engine and sleeps, until `result` is set. */
static int wait_for(struct doca_pe *pe, const doca_error_t *result) {
  struct pollfd waiting = {doca_event_invalid_handle, POLLIN, 0};
  CHECK(doca_pe_get_notification_handle(pe, &waiting.fd));
  while (*result == DOCA_ERROR_AGAIN) {
    if (doca_pe_progress(pe) != 0) continue;
    CHECK(doca_pe_request_notification(pe));
    if (poll(&waiting, 1, 10000) != 1) return 1;
    CHECK(doca_pe_clear_notification(pe, waiting.fd));
  }
  return 0;
}

static char memory[64] = "a text";

int main(int argc, char **argv) {
  struct doca_devinfo **list;
  struct doca_dev *dev;
  struct doca_mmap *mmap;
  struct doca_buf_inventory *inventory;
  struct doca_buf *from, *to;
  struct doca_pe *pe;
  struct doca_dma *dma;
  struct doca_dma_task_memcpy *task;
  doca_error_t result = DOCA_ERROR_AGAIN;
  union doca_data data = {&result};
  uint32_t count;

  CHECK(doca_log_backend_create_standard());
  CHECK(doca_argp_init("program", NULL));
  CHECK(doca_argp_start(argc, argv));
  CHECK(doca_devinfo_create_list(&list, &count));
  CHECK(doca_dev_open(list[0], &dev));
  CHECK(doca_devinfo_destroy_list(list));
  CHECK(doca_mmap_create(&mmap));
  CHECK(doca_mmap_set_memrange(mmap, memory, sizeof memory));
  CHECK(doca_mmap_add_dev(mmap, dev));
  CHECK(doca_mmap_start(mmap));
  CHECK(doca_buf_inventory_create(2, &inventory));
  CHECK(doca_buf_inventory_start(inventory));
  CHECK(doca_buf_inventory_buf_get_by_data(inventory, mmap, memory, 32, &from));
  CHECK(doca_buf_inventory_buf_get_by_addr(inventory, mmap, memory + 32, 32, &to));
  CHECK(doca_pe_create(&pe));
  CHECK(doca_dma_create(dev, &dma));
  CHECK(doca_pe_connect_ctx(pe, doca_dma_as_ctx(dma)));
  CHECK(doca_dma_task_memcpy_set_conf(dma, on_end, on_end, 1));
  CHECK(doca_ctx_start(doca_dma_as_ctx(dma)));
  CHECK(doca_dma_task_memcpy_alloc_init(dma, from, to, data, &task));
  CHECK(doca_task_submit(doca_dma_task_memcpy_as_task(task)));
  if (wait_for(pe, &result) != 0) return 1;
  CHECK(result);
  CHECK(doca_buf_dec_refcount(from, NULL));
  CHECK(doca_buf_dec_refcount(to, NULL));
  CHECK(doca_ctx_stop(doca_dma_as_ctx(dma)));
  CHECK(doca_dma_destroy(dma));
  CHECK(doca_pe_destroy(pe));
  CHECK(doca_buf_inventory_destroy(inventory));
  CHECK(doca_mmap_destroy(mmap));
  CHECK(doca_dev_close(dev));
  CHECK(doca_argp_destroy());
  DOCA_LOG_INFO("%s: copied '%s'", doca_version(), memory + 32);
  return strcmp(memory, memory + 32) != 0;
}
