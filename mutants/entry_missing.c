/*
 * entry_missing.c - planted: the entry function is there under another name.
 *
 * Caught by: build
 */
#define ENTRY my_kernel_entry
#include "base.h"
