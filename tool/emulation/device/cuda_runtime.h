/*
 * cuda_runtime.h - for the emulated device, which has all of its words already.
 */
#include "emulated_device.h"
