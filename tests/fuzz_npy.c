/* Fuzzer of the .npy parser: whatever it accepts lies within the bytes, with a shape whose product is the count. */
#include "fuzz_main.h"

#include "../tool/data/npy.c"
#include "../tool/base/regular_file.c"

static void demand(int condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy npy;
    char why[200] = "";
    if (!npy_parse(data, size, &npy, why, sizeof why)) {
        demand(why[0] != '\0' && memchr(why, '\0', sizeof why));
        return 0;
    }
    demand(npy.rank >= 0 && npy.rank <= NPY_MAX_RANK && npy.item_size > 0 && npy.count >= 0);
    int64_t count = 1;
    for (int n = 0; n < npy.rank; n++)
        count = npy.shape[n] == 0 ? 0 : count; /* an empty array may have any other sizes */
    for (int n = 0; n < npy.rank; n++)
        demand(npy.shape[n] >= 0 && !__builtin_mul_overflow(count, npy.shape[n], &count));
    demand(count == npy.count);
    demand(npy.data >= data && npy.data <= data + size);
    demand((uint64_t)npy.count * (uint64_t)npy.item_size <= (uint64_t)(data + size - npy.data));
    unsigned sum = 0;
    for (size_t n = 0; n < (size_t)npy.count * (size_t)npy.item_size; n++)
        sum += npy.data[n];
    demand(sum <= UINT32_MAX);
    return 0;
}
