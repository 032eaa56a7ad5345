#include "comch/address_options.hpp"

#include "cli/options.hpp"
#include "comch/address.hpp"

namespace offload::comch {

void add_address_options(cli::CommandLine& line, std::string& address, std::string& key_file,
                         const std::string& description) {
  const auto comch =
      cli::add_text(
          line, "--comch", address,
          description + ": unix:PATH on one machine, tcp:HOST:PORT or rdma:HOST:PORT on two")
          .type_name("ADDRESS")
          .default_str(address)
          .check(check_address);
  cli::add(line, "-c,--comch-channel-name", address, address_of_name, "a name without '/'",
           "Short for --comch unix:/tmp/NAME.sock")
      .type_name("NAME")
      .excludes(comch);
  cli::add_text(
      line, "--comch-key-file", key_file,
      "The key for tcp: and rdma:, 16 to 4096 bytes that server and worker share. Without "
      "it they meet on loopback alone")
      .type_name("FILE");
}

}  // namespace offload::comch
