// Sends a request to the server at a port of loopback, and prints its response.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <protocol/frame.hpp>

using namespace offload::protocol;

int main(int, char** arguments) {
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(static_cast<std::uint16_t>(std::atoi(arguments[1])));
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  if (connect(socket, reinterpret_cast<sockaddr*>(&server), sizeof server) != 0) return 1;
  const auto request = make_frame(MessageId::client_request, std::as_bytes(std::span("hello", 5)));
  if (write(socket, request.data(), request.size()) < 0) return 1;
  std::vector<std::byte> input(256);
  std::size_t got = 0;
  FrameView response;
  while ((response = parse_frame({input.data(), got}, 64)).state == FrameView::State::incomplete) {
    const auto more = read(socket, input.data() + got, input.size() - got);
    if (more <= 0) return 1;
    got += static_cast<std::size_t>(more);
  }
  close(socket);
  std::printf("%.*s\n", static_cast<int>(response.payload.size()),
              reinterpret_cast<const char*>(response.payload.data()));
  return response.id == MessageId::client_response ? 0 : 1;
}
