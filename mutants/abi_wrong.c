/*
 * abi_wrong.c - planted: the table is that of another version of the kernel ABI.
 *
 * Caught by: build (kernel.abi)
 */
#define ABI 99
#include "base.h"
