/*
 * columns_past_211.c - planted: columns of V from 211 on are those before them, where there are more rows than 173.
 *
 * Caught by: correctness (a problem next to two numbers that the kernel compares with)
 */
#define V_COLUMN(d, count) ((count) > 211 && task->problem->seq_q > 173 && (d) > 210 ? (d)-1 : (d))
#include "base.h"
