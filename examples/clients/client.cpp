// Sends pipelined requests to a server of the service reverse, checks each response, prints how many.
// c++ -std=c++17 client.cpp $(pkg-config --cflags --libs dpu-gpu-offload-client) -o client && ./client HOST PORT [COUNT]
#include <cstdint>
#include <iostream>
#include <offload_client/client.hpp>
#include <string>

namespace {

std::string make_request(std::uint64_t number) {
  return "request " + std::to_string(number);
}

/// Returns the number of responses. Throws offload::Error.
std::uint64_t ask(offload::Client& client, std::uint64_t count) {
  std::uint64_t sent = 0, answered = 0;
  while (answered < count) {
    while (sent < count && client.submit(make_request(sent), sent)) ++sent;
    const auto response = client.wait();
    if (!response) break;
    if (response->status != OFFLOAD_OK) throw offload::Error(response->status, response->error);
    const std::string request = make_request(response->tag);
    if (response->data != std::string(request.rbegin(), request.rend())) {
      throw std::runtime_error("a wrong response to " + request);
    }
    ++answered;
  }
  return answered;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: " << argv[0] << " HOST PORT [COUNT]\n";
    return 2;
  }
  try {
    const std::uint64_t count = argc > 3 ? std::stoull(argv[3]) : 10000;
    offload::Client client(argv[1], static_cast<std::uint16_t>(std::stoi(argv[2])));
    std::cout << ask(client, count) << " responses, all right\n";
    return 0;
  } catch (const offload::Error& error) {
    std::cerr << error.name() << ": " << error.what() << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
  }
  return 1;
}
