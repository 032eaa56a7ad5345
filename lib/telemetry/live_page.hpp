#pragma once

namespace offload::telemetry {

/// live_page.html: a page that reads /status every second.
extern const char* const kLivePage;

}  // namespace offload::telemetry
