#include <memory>
#include <span>

#include "doca/rdma/rdma.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::rdma::ConnectionDescriptor;
using State = doca_rdma_connection::State;

doca_error_t doca_rdma_export(doca_rdma* rdma, const void** local_rdma_conn_details,
                              size_t* local_rdma_conn_details_size,
                              doca_rdma_connection** rdma_connection) {
  if (any_null(rdma, local_rdma_conn_details, local_rdma_conn_details_size, rdma_connection)) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (rdma->state != DOCA_CTX_STATE_RUNNING) return DOCA_ERROR_BAD_STATE;
  return guarded(__func__, [&] {
    doca_rdma_connection& made = rdma->endpoint.add(*rdma);
    made.given_back = true;  // unless all that follows succeeds
    rdma->endpoint.start(made);
    made.descriptor = made.connection->descriptor().encode();
    made.given_back = false;
    *local_rdma_conn_details = made.descriptor.data();
    *local_rdma_conn_details_size = made.descriptor.size();
    *rdma_connection = &made;
  });
}

doca_error_t doca_rdma_connect(doca_rdma* rdma, const void* remote_rdma_conn_details,
                               size_t remote_rdma_conn_details_size,
                               doca_rdma_connection* rdma_connection) {
  if (any_null(rdma, remote_rdma_conn_details, rdma_connection) || rdma_connection->rdma != rdma) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (rdma->state != DOCA_CTX_STATE_RUNNING || rdma_connection->state != State::exported) {
    return DOCA_ERROR_BAD_STATE;
  }
  return guarded(__func__, [&] {
    const auto peer = ConnectionDescriptor::decode(
        {static_cast<const std::byte*>(remote_rdma_conn_details), remote_rdma_conn_details_size});
    rdma_connection->connection->connect_to(peer);
    rdma_connection->state = State::connected;
  });
}

doca_error_t doca_rdma_connection_set_user_data(doca_rdma_connection* rdma_connection,
                                                doca_data connection_user_data) {
  if (rdma_connection == nullptr) return DOCA_ERROR_INVALID_VALUE;
  rdma_connection->user_data = connection_user_data;
  return DOCA_SUCCESS;
}

doca_error_t doca_rdma_connection_get_user_data(const doca_rdma_connection* rdma_connection,
                                                doca_data* connection_user_data) {
  if (any_null(rdma_connection, connection_user_data)) return DOCA_ERROR_INVALID_VALUE;
  *connection_user_data = rdma_connection->user_data;
  return DOCA_SUCCESS;
}
