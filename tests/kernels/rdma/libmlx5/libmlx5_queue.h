#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A queue pair and its completion queue that libmlx5's own functions work on, in memory, without a
 * card: the structures that it keeps for them are filled in here, with its private headers. */
struct libmlx5_queue;

/* Powers of two: blocks of the send queue, receives of one buffer each, completions. */
struct libmlx5_queue* libmlx5_queue_make(uint32_t number, uint32_t blocks, uint32_t receives,
                                         uint32_t completions);
/* Do the same and return the same as the ibv_ functions of these names. */
int libmlx5_post_send(struct libmlx5_queue* queue, struct ibv_send_wr* request);
int libmlx5_post_recv(struct libmlx5_queue* queue, struct ibv_recv_wr* request);
int libmlx5_poll_cq(struct libmlx5_queue* queue, struct ibv_wc* completion);

/* The memory that a card and the library share. */
struct libmlx5_memory {
  void* sends;
  void* receives;
  void* completions;
  uint32_t* records;           /* of receives, of sends */
  uint32_t* completion_record; /* of the consumer */
  uint64_t* doorbell;
};
struct libmlx5_memory libmlx5_memory_of(struct libmlx5_queue* queue);

#ifdef __cplusplus
}
#endif
