#pragma once

#include <string>

namespace offload::cli {
class CommandLine;
}

namespace offload::comch {

/// --comch, and the reference's short form of it, into `address`, whose value is the default, and
/// --comch-key-file. `description`: what the program does there, without the form of an address.
void add_address_options(cli::CommandLine& line, std::string& address, std::string& key_file,
                         const std::string& description);

}  // namespace offload::comch
