/*
 * tensor_list.h - the tensors of a problem, as the library lists them (attest_tensor_get): a loop over them needs no names.
 */
#ifndef ATTEST_TENSOR_LIST_H
#define ATTEST_TENSOR_LIST_H

#include <attest.h>
#include <stdbool.h>

enum { TENSORS_MOST = 16 }; /* room for them, in messages too */

struct tensor_list {
    int count;
    attest_tensor_info of[TENSORS_MOST]; /* in the order of the pointers of attest_tensors */
};

/* False if the problem is not valid. */
bool tensor_list_get(const attest_problem *problem, struct tensor_list *list);

/* The place of a tensor in the list: "q", "lse"; -1 if there is none. */
int tensor_find(const struct tensor_list *list, const char *name);

/* Which tensor it is, in a sentence: "Q", "the page table", "kv_lengths". */
const char *tensor_title(const attest_tensor_info *info);

void *tensor_pointer(const attest_tensors *tensors, const attest_tensor_info *info);
void tensor_set_pointer(attest_tensors *tensors, const attest_tensor_info *info, void *pointer);

#endif
