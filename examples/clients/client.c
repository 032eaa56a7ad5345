/* Sends pipelined requests to a server of the service reverse, checks each response, prints how many.
 * cc client.c $(pkg-config --cflags --libs dpu-gpu-offload-client) -o client && ./client HOST PORT [COUNT] */
#include <inttypes.h>
#include <offload_client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t make_request(char *text, size_t room, uint64_t number) {
  return (size_t)snprintf(text, room, "request %" PRIu64, number);
}

static int is_reversed(const char *text, const char *request, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (text[i] != request[size - 1 - i]) return 0;
  }
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s HOST PORT [COUNT]\n", argv[0]);
    return 2;
  }
  const uint64_t count = argc > 3 ? strtoull(argv[3], NULL, 10) : 10000;
  offload_client_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.host = argv[1];
  options.port = (uint16_t)atoi(argv[2]);

  offload_client *client = NULL;
  int status = offload_client_open(&options, &client);
  uint64_t sent = 0, answered = 0;
  char text[64];
  while (status == OFFLOAD_OK && answered < count) {
    while (status == OFFLOAD_OK && sent < count) {
      offload_client_request request = {.data = text, .tag = sent};
      request.size = make_request(text, sizeof text, sent);
      status = offload_client_submit(client, &request);
      if (status == OFFLOAD_OK) ++sent;
    }
    if (status != OFFLOAD_OK && status != OFFLOAD_FULL) break;
    offload_client_response response;
    status = offload_client_wait(client, -1, &response);
    if (status == OFFLOAD_OK) status = response.status;
    if (status != OFFLOAD_OK) break;
    const size_t size = make_request(text, sizeof text, response.tag);
    if (response.size != size || !is_reversed(response.data, text, size)) {
      fprintf(stderr, "a wrong response to request %" PRIu64 "\n", response.tag);
      return 1;
    }
    ++answered;
  }
  if (status != OFFLOAD_OK) {
    fprintf(stderr, "%s: %s\n", offload_client_status_name(status), offload_client_error(client));
  } else {
    printf("%" PRIu64 " responses, all right\n", answered);
  }
  offload_client_close(client);
  return status != OFFLOAD_OK;
}
