#pragma once

#include <string>

namespace offload::client {

/// The machine that this program runs on, for a result's reader. Unknown fields are empty.
struct ThisMachine {
  std::string host;
  std::string system;     ///< "Linux 6.1.0 x86_64"
  std::string processor;  ///< the model's name
  unsigned processors = 0;

  static ThisMachine here();
};

}  // namespace offload::client
