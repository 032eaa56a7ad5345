#include "libmlx5_queue.h"

#include <stdlib.h>
#include <string.h>

#include "mlx5.h" /* of the library's sources */

/* The functions of the static library, whose names have its version in front. */
#define NAME_OF(prefix, name) prefix##name
#define NAME(prefix, name) NAME_OF(prefix, name)
#define POST_SEND NAME(LIBMLX5_PREFIX, mlx5_post_send)
#define POST_RECV NAME(LIBMLX5_PREFIX, mlx5_post_recv)
#define POLL_CQ NAME(LIBMLX5_PREFIX, mlx5_poll_cq)
int POST_SEND(struct ibv_qp* qp, struct ibv_send_wr* wr, struct ibv_send_wr** bad);
int POST_RECV(struct ibv_qp* qp, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad);
int POLL_CQ(struct ibv_cq* cq, int count, struct ibv_wc* wc);

struct libmlx5_queue {
  struct mlx5_context context;
  struct mlx5_qp qp;
  struct mlx5_cq cq;
  struct mlx5_bf doorbell;
};

static void* zeros(size_t bytes) {
  void* const memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (memory == NULL) abort();
  return memset(memory, 0, bytes);
}

static void set_up(struct mlx5_wq* queue, uint32_t entries, int shift, int pieces) {
  queue->wqe_cnt = queue->max_post = entries;
  queue->wqe_shift = shift;
  queue->max_gs = queue->qp_state_max_gs = pieces;
  queue->wrid = zeros(entries * sizeof *queue->wrid);
  queue->wqe_head = zeros(entries * sizeof *queue->wqe_head);
  queue->wr_data = zeros(entries * sizeof *queue->wr_data);
}

struct libmlx5_queue* libmlx5_queue_make(uint32_t number, uint32_t blocks, uint32_t receives,
                                         uint32_t completions) {
  struct libmlx5_queue* const made = zeros(sizeof *made);
  struct mlx5_context* const context = &made->context;
  struct mlx5_qp* const qp = &made->qp;
  struct mlx5_cq* const cq = &made->cq;

  cq->verbs_cq.cq.context = &context->ibv_ctx.context;
  cq->verbs_cq.cq.cqe = (int)completions - 1;
  cq->cqe_sz = 64;
  cq->buf_a.buf = zeros(completions * 64UL);
  for (uint32_t i = 0; i < completions; ++i) ((uint8_t*)cq->buf_a.buf)[i * 64 + 63] = 0xf0;
  cq->active_buf = &cq->buf_a;
  cq->dbrec = zeros(2 * sizeof *cq->dbrec);

  struct ibv_qp* const native = &qp->verbs_qp.qp;
  native->context = &context->ibv_ctx.context;
  native->send_cq = native->recv_cq = &cq->verbs_cq.cq;
  native->qp_num = number;
  native->qp_type = IBV_QPT_RC;
  native->state = IBV_QPS_RTS;
  qp->ibv_qp = native;
  qp->rsc.type = MLX5_RSC_TYPE_QP;
  qp->rsc.rsn = number;
  qp->atomics_enabled = 1;
  qp->max_inline_data = 1 << 16;
  qp->db = zeros(2 * sizeof *qp->db);
  set_up(&qp->sq, blocks, 6, 32);
  qp->sq_start = zeros(blocks * 64UL);
  qp->sq.qend = (char*)qp->sq_start + blocks * 64UL;
  set_up(&qp->rq, receives, 4, 1);
  qp->buf.buf = zeros(receives * 16UL);
  qp->bf = &made->doorbell;
  made->doorbell.reg = zeros(4096);

  const uint32_t table = number >> MLX5_QP_TABLE_SHIFT;
  context->qp_table[table].table = zeros((MLX5_QP_TABLE_MASK + 1UL) * sizeof(struct mlx5_qp*));
  context->qp_table[table].table[number & MLX5_QP_TABLE_MASK] = qp;
  context->qp_table[table].refcnt = 1;
  return made;
}

int libmlx5_post_send(struct libmlx5_queue* queue, struct ibv_send_wr* request) {
  struct ibv_send_wr* bad = NULL;
  return POST_SEND(&queue->qp.verbs_qp.qp, request, &bad);
}

int libmlx5_post_recv(struct libmlx5_queue* queue, struct ibv_recv_wr* request) {
  struct ibv_recv_wr* bad = NULL;
  return POST_RECV(&queue->qp.verbs_qp.qp, request, &bad);
}

int libmlx5_poll_cq(struct libmlx5_queue* queue, struct ibv_wc* completion) {
  return POLL_CQ(&queue->cq.verbs_cq.cq, 1, completion);
}

struct libmlx5_memory libmlx5_memory_of(struct libmlx5_queue* queue) {
  struct libmlx5_memory memory = {queue->qp.sq_start,         queue->qp.buf.buf,
                                  queue->cq.buf_a.buf,        (uint32_t*)queue->qp.db,
                                  (uint32_t*)queue->cq.dbrec, queue->doorbell.reg};
  return memory;
}
