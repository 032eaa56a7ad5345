/* A client of offload-server in C (docs/reference/clients.md). A client is one connection with
 * requests in flight on it; responses come in the order of the requests.
 *
 * Threads: one at a time may be in a call of a client; others get OFFLOAD_NOT_OWNER, and nothing
 * happens. Different clients are independent. Processes: a client belongs to the process that
 * opened it. After fork() the child gets OFFLOAD_NOT_OWNER, and offload_client_close() there frees
 * the child's copy only. Signals: no call raises SIGPIPE.
 *
 * Times are in milliseconds: 0 is the default, a negative one is no limit. */
#ifndef OFFLOAD_CLIENT_H
#define OFFLOAD_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OFFLOAD_CLIENT_API __attribute__((visibility("default")))
#else
#define OFFLOAD_CLIENT_API
#endif

/* The result of a call or a request. A positive one is the code of the server's error frame
 * (docs/reference/wire-protocol.md); a later server may send codes that are not in this list. */
enum offload_status {
  OFFLOAD_OK = 0,

  /* instead of a response; the connection stays, except for 2 and 7 */
  OFFLOAD_FRAME_TOO_LONG = 2, /* the request is longer than the server accepts */
  OFFLOAD_WORKER_UNAVAILABLE = 6,
  OFFLOAD_SHUTTING_DOWN = 7,
  OFFLOAD_WORKER_FAILED = 8,
  OFFLOAD_REQUEST_TIMED_OUT = 13, /* the server's own limit */

  /* why the server closed the connection; each request without a response gets it */
  OFFLOAD_OUT_OF_MEMORY = 20,
  OFFLOAD_FRAME_TIMED_OUT = 21,
  OFFLOAD_IDLE_TIMED_OUT = 22,
  OFFLOAD_TOO_MANY_CLIENTS = 23,
  OFFLOAD_TOO_MANY_OF_ADDRESS = 24,
  OFFLOAD_TLS_REQUIRED = 25, /* the port speaks TLS, and this client does not use it */

  OFFLOAD_INVALID = -1,        /* an argument or option is not allowed */
  OFFLOAD_NO_MEMORY = -2,      /* of this process, or it has no descriptors left */
  OFFLOAD_CONNECT_FAILED = -3, /* name, TCP or TLS */
  OFFLOAD_TIMED_OUT = -4,      /* no response in time; it is dropped when it comes */
  OFFLOAD_LOST = -5,           /* the connection ended before the response came */
  OFFLOAD_MALFORMED = -6,      /* the server broke the protocol; the connection was closed */
  OFFLOAD_NOT_OWNER = -7,      /* another thread is in a call, or another process owns the client */
  OFFLOAD_FULL = -8,           /* too much is in flight: call offload_client_wait() */
  OFFLOAD_BUSY = -9,           /* offload_client_call() beside submitted requests */
  OFFLOAD_NOTHING = -10,       /* no request was completed within the time */
  OFFLOAD_IDLE = -11           /* no request is in flight */
};

/* Zero is the default of each field but the first two. Strings are copied. */
typedef struct offload_client_options {
  size_t struct_size;           /* sizeof(offload_client_options): later versions append fields */
  const char* host;             /* a name, all of whose addresses are tried, or an address */
  uint16_t port;                /* 12345 */
  uint16_t use_tls;             /* 1: TLS 1.3; the server's certificate and name are checked */
  uint32_t max_in_flight;       /* 1024 requests, also those that timed out and are not answered */
  uint32_t max_response_length; /* 16 MiB; a longer response is OFFLOAD_MALFORMED */
  int32_t connect_timeout;      /* 10 s, for all addresses together, with TLS */
  int32_t timeout;              /* 30 s, from submission to response */
  int32_t reconnect_timeout;    /* off; how long a lost server is tried again */
  const char* tls_ca;           /* PEM file of authorities; the system's */
  const char* tls_server_name;  /* host */
  const char* tls_certificate;  /* PEM files: this client's own chain, and its key */
  const char* tls_key;
  const char* tls_crl; /* PEM file of revocation lists, one for each authority of the server */
} offload_client_options;

/* The request may be sent again after a lost connection, though the server may have processed it.
 * Requests that were not sent yet are always sent on the next connection. Needs reconnect_timeout. */
#define OFFLOAD_IDEMPOTENT 1U

typedef struct offload_client_request {
  const void* data; /* copied; null only if size is 0 */
  size_t size;      /* 16 MiB at most */
  uint64_t tag;     /* comes back with the response */
  int32_t timeout;  /* from now on; 0: that of the options */
  uint32_t flags;   /* 0 or OFFLOAD_IDEMPOTENT */
} offload_client_request;

typedef struct offload_client_response {
  const void* data; /* valid until the next call of this client; null unless status is 0 */
  size_t size;
  uint64_t tag; /* that of the request */
  int status;   /* offload_status; offload_client_error() has the text */
} offload_client_response;

typedef struct offload_client offload_client;

/* Connects. Sets *client also on failure, for offload_client_error(), unless there is no memory for
 * it or an argument is null. Close it in any case. The look-up of a name takes as long as the
 * system's resolver allows. */
OFFLOAD_CLIENT_API int offload_client_open(const offload_client_options* options,
                                           offload_client** client);

/* Does not wait. Requests in flight are dropped. Null is allowed. No other thread may use it. */
OFFLOAD_CLIENT_API void offload_client_close(offload_client* client);

/* Sends one request and waits for its response. Returns its status. OFFLOAD_BUSY while a submitted
 * request has not been returned by offload_client_wait(). */
OFFLOAD_CLIENT_API int offload_client_call(offload_client* client,
                                           const offload_client_request* request,
                                           offload_client_response* response);

/* Adds a request to those in flight; it is sent by this call or a later offload_client_wait().
 * Returns 0 or OFFLOAD_FULL, OFFLOAD_LOST and others: nothing was added then. Never waits. */
OFFLOAD_CLIENT_API int offload_client_submit(offload_client* client,
                                             const offload_client_request* request);

/* Sends what was submitted and waits for the next request that is complete, at most for `timeout`;
 * here 0 is no wait. Returns 0 and fills in *response, whose status says how the request ended; or
 * OFFLOAD_NOTHING or OFFLOAD_IDLE. Each submitted request is returned exactly once: answered and
 * refused ones in the order of submission, those that timed out when their time is over. */
OFFLOAD_CLIENT_API int offload_client_wait(offload_client* client, int timeout,
                                           offload_client_response* response);

/* Returns a descriptor for poll() or epoll: readable when offload_client_wait() has work to do, also
 * for time-outs. It stays the same, and nothing else may be done with it. Before you wait for it,
 * call offload_client_wait() with timeout 0 until it returns OFFLOAD_NOTHING or OFFLOAD_IDLE. */
OFFLOAD_CLIENT_API int offload_client_fd(const offload_client* client);

/* Returns the text for the last status other than OFFLOAD_OK, OFFLOAD_NOTHING and OFFLOAD_IDLE that a
 * call or response of this client had; printable, also if it is the server's. Valid until the next
 * call. Null is allowed: then it is the text for no memory. */
OFFLOAD_CLIENT_API const char* offload_client_error(const offload_client* client);

/* Returns a status's name, for programs and logs: "ok", "worker_unavailable", "timed_out". */
OFFLOAD_CLIENT_API const char* offload_client_status_name(int status);

#ifdef __cplusplus
}
#endif
#endif
