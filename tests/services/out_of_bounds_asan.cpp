// The form for a CPU, compiled for AddressSanitizer.
#include "tests/services/out_of_bounds.cu"
