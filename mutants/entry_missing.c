/*
 * entry_missing.c - planted: the entry function is there under another name.
 *
 * Caught by: build (does not export)
 */
#define ENTRY my_kernel_entry
#include "base.h"
