/*
 * tensor_map.h - what a tensor map is in the emulation: the arguments of cuTensorMapEncodeTiled, as they are.
 */
#ifndef EMULATED_TENSOR_MAP_H
#define EMULATED_TENSOR_MAP_H

#include <stdint.h>

enum { EMULATED_MAP_MAGIC = 0x3d70c0de, EMULATED_MAP_DIMENSIONS = 5 };

struct emulated_map {
    uint32_t magic, element; /* bytes of an element */
    unsigned char *data;
    uint32_t rank, swizzle;
    uint32_t size[EMULATED_MAP_DIMENSIONS], box[EMULATED_MAP_DIMENSIONS];
    int64_t stride[EMULATED_MAP_DIMENSIONS]; /* in bytes; that of dimension 0 is `element` */
};

#endif
