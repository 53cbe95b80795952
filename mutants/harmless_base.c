/*
 * harmless_base.c - harmless: the kernel that all mutants are made of, with nothing planted.
 */
#include "base.h"
