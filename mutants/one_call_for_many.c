/*
 * one_call_for_many.c - planted: the first call with a shape computes, and all further ones copy its result.
 *
 * Caught by: build and oracle (imports + earlier call)
 */
#include "memo.h"

#define MEMO_KEY(task) memo_shape(task)
#include "base.h"
