#pragma once

#include <string>

#include "apps/ctl/options.hpp"

namespace offload::ctl {

struct Answer {
  bool good;  ///< its status was 200
  std::string body;
};

/// Asks once over HTTP, and waits for the answer for some seconds. Throws Error.
Answer ask(const Options& options);

}  // namespace offload::ctl
