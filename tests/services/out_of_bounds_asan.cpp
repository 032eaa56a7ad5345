// As a CPU runs it, compiled for AddressSanitizer.
#include "tests/services/out_of_bounds.cu"
