#include "apps/worker/datagrams.hpp"
#include "core/error.hpp"

namespace offload::worker {

ExitStatus run_datagrams(const Options&, core::Signals&) {
  throw core::Error(core::ErrorCode::not_supported,
                    "--udp: this build has no AF_XDP, because libbpf 1.0 or clang was missing");
}

}  // namespace offload::worker
