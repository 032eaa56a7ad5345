#pragma once

/// libibverbs with one device that has done at once what is posted to it: this program's own
/// definitions of its functions, which the linker takes before the library's. One thread.
namespace offload::bench {

inline constexpr const char* kNothingDevice = "nothing0";

}  // namespace offload::bench
