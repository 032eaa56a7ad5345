// Does the same as ask.cpp, by the client library.
#include <cstdio>
#include <cstdlib>
#include <offload_client/client.hpp>

int main(int, char** arguments) {
  try {
    offload::Client client("127.0.0.1", static_cast<std::uint16_t>(std::atoi(arguments[1])));
    std::puts(client.call("hello").c_str());
    return 0;
  } catch (const offload::Error& error) {
    std::puts(error.what());
    return 1;
  }
}
