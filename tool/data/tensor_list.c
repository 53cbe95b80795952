/*
 * tensor_list.c - the tensors of a problem. See tensor_list.h.
 */
#include "tensor_list.h"

#include <string.h>

bool tensor_list_get(const attest_problem *problem, struct tensor_list *list)
{
    *list = (struct tensor_list){0};
    for (size_t i = 0; i < attest_tensor_count() && i < TENSORS_MOST; i++) {
        list->of[i].size = sizeof list->of[i];
        if (attest_tensor_get(problem, i, &list->of[i]) != ATTEST_OK)
            return false;
        list->count++;
    }
    return true;
}

int tensor_find(const struct tensor_list *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->of[i].name, name) == 0)
            return i;
    return -1;
}

const char *tensor_title(const attest_tensor_info *info)
{
    static const struct {
        const char *name, *title;
    } titles[] = {{"q", "Q"},
                  {"k", "K"},
                  {"v", "V"},
                  {"o", "O"},
                  {"lse", "LSE"},
                  {"bias", "the bias"},
                  {"alibi_slopes", "the ALiBi slopes"},
                  {"sinks", "the sinks"},
                  {"page_table", "the page table"}};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (strcmp(titles[i].name, info->name) == 0)
            return titles[i].title;
    return info->name;
}

void *tensor_pointer(const attest_tensors *tensors, const attest_tensor_info *info)
{
    void *pointer;
    memcpy(&pointer, (const char *)tensors + info->offset, sizeof pointer);
    return pointer;
}

void tensor_set_pointer(attest_tensors *tensors, const attest_tensor_info *info, void *pointer)
{
    memcpy((char *)tensors + info->offset, &pointer, sizeof pointer);
}
