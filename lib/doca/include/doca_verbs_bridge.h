/// Verbs with the structures of libibverbs: imports, and the data path.
#ifndef DOCA_VERBS_BRIDGE_H_
#define DOCA_VERBS_BRIDGE_H_

#include <infiniband/verbs.h>
#include <stdint.h>

#include "doca_error.h"
#include "doca_verbs.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// Opens a device of libibverbs' list. DOCA_ERROR_INVALID_VALUE if a pointer is NULL, or for flags
/// other than DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE.
doca_error_t doca_verbs_bridge_verbs_context_create(struct ibv_device* ibv_dev, uint32_t flags,
                                                    struct doca_verbs_context** verbs_context);
/// Make an object of one that the program owns, and ends after the new object.
/// DOCA_ERROR_INVALID_VALUE if a pointer is NULL, or for flags other than
/// DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE.
doca_error_t doca_verbs_bridge_verbs_context_import(struct ibv_context* ibv_ctx, uint32_t flags,
                                                    struct doca_verbs_context** verbs_context);
doca_error_t doca_verbs_bridge_verbs_pd_import(struct ibv_pd* pd, struct doca_verbs_pd** verbs_pd);
/// Returns the domain, which is valid as long as `verbs_pd`; NULL for NULL.
struct ibv_pd* doca_verbs_bridge_verbs_pd_get_ibv_pd(const struct doca_verbs_pd* verbs_pd);

/// Post a list of work requests, and return 0 or an errno; then `bad_wr` is the first that was not
/// posted. Else it stays as it was. ENOMEM: no room. EINVAL: the queue pair does not take it, or is
/// in a state in which it cannot be posted; with an external data path always. With an external UAR, sends, writes, reads and the wait
/// below can be posted.
int doca_verbs_bridge_post_send(struct doca_verbs_qp* verbs_qp, struct ibv_send_wr* wr,
                                struct ibv_send_wr** bad_wr);
int doca_verbs_bridge_post_recv(struct doca_verbs_qp* verbs_qp, struct ibv_recv_wr* wr,
                                struct ibv_recv_wr** bad_wr);
/// Takes up to `num_entries` completions and returns how many there were; negative: the queue has
/// failed or an external data path, or an argument is invalid. Completions of a queue pair that was destroyed are dropped.
int doca_verbs_bridge_poll_cq(struct doca_verbs_cq* verbs_cq, int num_entries, struct ibv_wc* wc);

/// Returns the number of completions that were taken from the queue, which is the index of the
/// next; 0 for NULL.
uint32_t doca_verbs_bridge_get_current_cq_ci(struct doca_verbs_cq* verbs_cq);
/// Makes `wr` a request that holds back those posted behind it until the completion with index
/// `cq_pi` is in the queue, whether it was taken or not. wr_id, next and send_flags are the
/// program's. Its completion has the opcode IBV_WC_DRIVER1. It can be posted to a queue pair with
/// an external UAR. DOCA_ERROR_INVALID_VALUE if a pointer is NULL, DOCA_ERROR_NOT_SUPPORTED if
/// libibverbs made the queue.
doca_error_t doca_verbs_bridge_set_wait_cq_pi_wr(struct doca_verbs_cq* verbs_cq, uint32_t cq_pi,
                                                 struct ibv_send_wr* wr);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
