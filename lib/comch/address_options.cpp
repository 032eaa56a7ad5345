#include "comch/address_options.hpp"

#include "cli/options.hpp"
#include "comch/address.hpp"
#include "comch/transport/transport.hpp"

namespace offload::comch {
namespace {

/// "tcp:HOST:PORT or rdma:HOST:PORT"
std::string examples(bool shares_memory) {
  std::string examples;
  for (const Transport& transport : transports()) {
    if (transport.shares_memory != shares_memory) continue;
    examples += (examples.empty() ? "" : " or ") + transport.example();
  }
  return examples;
}

}  // namespace

void add_address_options(cli::CommandLine& line, std::string& address, std::string& key_file,
                         const std::string& description) {
  const auto comch = cli::add_text(line, "--comch", address,
                                   description + ": " + examples(true) + " on one machine, " +
                                       examples(false) + " on two")
                         .type_name("ADDRESS")
                         .default_str(address)
                         .check(check_address);
  cli::add(line, "-c,--comch-channel-name", address, address_of_name, "a name without '/'",
           "Short for --comch unix:/tmp/NAME.sock")
      .type_name("NAME")
      .excludes(comch);
  cli::add_text(line, "--comch-key-file", key_file,
                "The key for two machines, 16 to 4096 bytes that server and worker share. Without "
                "it they meet on loopback alone")
      .type_name("FILE");
}

}  // namespace offload::comch
