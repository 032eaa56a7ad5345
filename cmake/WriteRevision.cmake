# Run at each build: cmake -DSOURCE=... -DOUTPUT=... -P WriteRevision.cmake
# Writes a header with the commit that is built; "unknown" outside of a git checkout. A header that
# would not change is left alone, so that nothing is compiled again.
execute_process(
  COMMAND git -C "${SOURCE}" describe --always --dirty --abbrev=12
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR revision STREQUAL "")
  set(revision unknown)
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#pragma once

/// The commit that was built.
#define OFFLOAD_REVISION \"${revision}\"
")
