/*
 * arrays.c - from a parsed .npy file to a tensor of a problem: the shape must be the tensor's, the type is converted where that is
 * exact or asked for (see the help of `run`), and the elements go to the strides of the problem.
 */
#include "layout.h"
#include "npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_shape(char *text, size_t size, int rank, const int64_t *shape)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < rank && used + 24 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? ", " : "", (long long)shape[i]);
}

/* Opens the array and compares its shape with what the problem says. */
static bool open_array(const char *path, const char *name, int rank, const int64_t *shape, struct npy *npy, unsigned char **bytes,
                       char *why, size_t why_size)
{
    if (!npy_read(path, npy, bytes, why, why_size))
        return false;
    bool same = npy->rank == rank;
    for (int i = 0; i < rank && same; i++)
        same = npy->shape[i] == shape[i];
    if (same)
        return true;
    char has[200], wants[200];
    print_shape(has, sizeof has, npy->rank, npy->shape);
    print_shape(wants, sizeof wants, rank, shape);
    snprintf(why, why_size, "%s has shape [%s], and %s of this problem has shape [%s]", path, has, name, wants);
    free(*bytes);
    *bytes = NULL;
    return false;
}

static bool wrong_type(const char *path, const char *name, const struct npy *npy, const char *wants, char *why, size_t why_size)
{
    snprintf(why, why_size, "%s holds '%c%d', and %s of this problem must be %s", path, npy->kind, npy->item_size, name, wants);
    return false;
}

/* Place in the file of the element that is number `index` in C order. */
static int64_t file_index(const struct npy *npy, int64_t index)
{
    if (!npy->fortran)
        return index;
    int64_t places[NPY_MAX_RANK];
    for (int i = npy->rank - 1; i >= 0; i--) {
        places[i] = index % npy->shape[i];
        index /= npy->shape[i];
    }
    for (int i = npy->rank - 1; i >= 0; i--)
        index = index * npy->shape[i] + places[i];
    return index;
}

bool npy_read_view(const char *path, const char *name, const struct view *view, uint32_t dtype, void *at, char *why,
                   size_t why_size)
{
    static const char *const wants[] = {[ATTEST_F32] = "'<f4'",
                                        [ATTEST_F16] = "'<f2', or '<f4', which is rounded",
                                        [ATTEST_BF16] = "raw bits '<u2', or '<f4', which is rounded",
                                        [ATTEST_U8] = "bytes or booleans, '|u1' or '|b1'"};
    struct npy npy;
    unsigned char *bytes;
    if (!open_array(path, name, view->rank, view->shape, &npy, &bytes, why, why_size))
        return false;
    bool floats = npy.kind == 'f' && npy.item_size == 4 && dtype != ATTEST_U8;
    bool single = npy.item_size == 1 && dtype == ATTEST_U8 && (npy.kind == 'u' || npy.kind == 'b');
    bool halves = npy.item_size == 2 &&
                  ((dtype == ATTEST_F16 && npy.kind == 'f') || (dtype == ATTEST_BF16 && (npy.kind == 'u' || npy.kind == 'V')));
    bool taken = floats || halves || single || wrong_type(path, name, &npy, wants[dtype], why, why_size);
    for (int64_t index = 0; index < npy.count && taken; index++) {
        const unsigned char *from = npy.data + file_index(&npy, index) * npy.item_size;
        int64_t to = view_at(view, index);
        if (floats) {
            float value;
            memcpy(&value, from, sizeof value);
            element_store(at, dtype, to, value);
        } else if (single) {
            ((uint8_t *)at)[to] = *from;
        } else {
            memcpy((uint16_t *)at + to, from, 2);
        }
    }
    free(bytes);
    return taken;
}

bool npy_read_int32(const char *path, const char *name, int rank, const int64_t *shape, int32_t *to, char *why, size_t why_size)
{
    struct npy npy;
    unsigned char *bytes;
    if (!open_array(path, name, rank, shape, &npy, &bytes, why, why_size))
        return false;
    bool taken = (npy.kind == 'i' && (npy.item_size == 4 || npy.item_size == 8)) ||
                 wrong_type(path, name, &npy, "'<i4' or '<i8'", why, why_size);
    for (int64_t index = 0; index < npy.count && taken; index++) {
        const unsigned char *from = npy.data + file_index(&npy, index) * npy.item_size;
        int64_t wide;
        int32_t narrow;
        if (npy.item_size == 4) {
            memcpy(&narrow, from, 4);
            wide = narrow;
        } else {
            memcpy(&wide, from, 8);
        }
        taken = wide >= INT32_MIN && wide <= INT32_MAX;
        if (!taken)
            snprintf(why, why_size, "%s holds %lld, which is too large for %s", path, (long long)wide, name);
        to[index] = (int32_t)wide;
    }
    free(bytes);
    return taken;
}

bool npy_read_float(const char *path, const char *name, int rank, const int64_t *shape, float *to, char *why, size_t why_size)
{
    struct view view = {.rank = rank};
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        view.shape[i] = shape[i];
        view.stride[i] = stride;
        stride *= shape[i];
    }
    return npy_read_view(path, name, &view, ATTEST_F32, to, why, why_size);
}
