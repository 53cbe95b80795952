/*
 * emulated_driver.cpp - the functions of libcuda.so.1 that libattest uses, for the emulated device: so the library's own host path
 * (plans, arguments, tensor maps, splits, clusters, persistent grids) launches what is emulated. Memory is the host's, streams are
 * in order, a launch runs to its end, and an image is the name of a shared object that the emulation gate has compiled.
 *
 * Environment: EMULATED_COMPUTE (90: the compute capability of the device), EMULATED_MULTIPROCESSORS (3), EMULATED_SEED, EMULATED_ORDER
 * (the number of one order, instead of all in turn). What went wrong is printed in full, behind "emulation: ".
 */
#include "emulator.h"

#include "tensor_map.h"

#include <cstdlib>
#include <dlfcn.h>
#include <link.h>

using namespace emulation;

namespace
{
/* Few multiprocessors with one block each: persistent grids go round soon. */
int multiprocessors = 3;
enum { INVALID = 1, NO_MEMORY = 2, NO_IMAGE = 200, NOT_FOUND = 500, LAUNCH_FAILED = 719, NOT_SUPPORTED = 801 };

int compute = 90;
char trouble[1700]; /* of the last launch */
bool failed;
int the_context;
uint64_t launches;

constexpr Schedule orders[] = {{SIDE_BY_SIDE, false, "side by side, copies late", 0},
                               {LAST_FIRST, false, "last first, copies late", 1},
                               {FIRST_FIRST, true, "first first, copies early", 2},
                               {SHUFFLED, false, "at random, copies late", 3},
                               {SHUFFLED, true, "at random, copies early", 4}};
constexpr int ORDERS = sizeof orders / sizeof *orders;

struct Function {
    const Image *image;
    void (*enter)(void **);
};

int find_range(struct dl_phdr_info *info, size_t, void *data)
{
    Image *made = (Image *)data;
    if (strcmp(info->dlpi_name, made->path) != 0)
        return 0;
    made->begin = (const unsigned char *)info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            const unsigned char *end = made->begin + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
            made->end = end > made->end ? end : made->end;
        }
    return 1;
}

/* What the asm statements of an image use decides how long a clock is. */
uint32_t features_of(const emulated_site *sites, int count)
{
    static const struct {
        const char *text;
        uint32_t features;
    } rows[] = {{"cp.async", USES_COPIES},
                {"cp.async.bulk", USES_STORES | USES_ASYNC | USES_BARRIERS},
                {"wgmma", USES_PRODUCTS | USES_ASYNC},
                {"fence.proxy", USES_ASYNC},
                {"mbarrier", USES_BARRIERS},
                {"st.async", USES_BARRIERS}};
    uint32_t found = 0;
    for (int i = 0; i < count; i++)
        for (const auto &row : rows)
            if (strstr(sites[i].text, row.text))
                found |= row.features;
    return found;
}

int launch_now(Function *function, const unsigned *grid, const unsigned *block, unsigned shared, unsigned cluster_size, bool early,
               void **parameters)
{
    const char *fixed = getenv("EMULATED_ORDER");
    if (failed)
        return LAUNCH_FAILED;
    schedule = orders[fixed ? (unsigned)atoi(fixed) % ORDERS : launches % ORDERS];
    launches++;
    Launch launch = {function->image,
                     function->enter,
                     parameters,
                     {grid[0], grid[1], grid[2]},
                     {block[0], block[1], block[2]},
                     shared,
                     cluster_size ? cluster_size : function->image->cluster,
                     early};
    if (!grid[0] || !grid[1] || !grid[2] || !block[0] || block[0] * block[1] * block[2] > 1024 ||
        (launch.cluster && grid[0] % launch.cluster))
        return INVALID;
    failed = !launch_run(launch, trouble, sizeof trouble);
    if (failed)
        fprintf(stderr, "emulation: %s [%s]\n", trouble, function->image->path);
    return failed ? LAUNCH_FAILED : 0;
}

struct Counts {
    ~Counts()
    {
        fprintf(stderr, "emulated: %llu launches, %llu accesses\n", (unsigned long long)launches,
                (unsigned long long)memory.accesses);
    }
} counts;

/* As in cuda.h. */
struct Attribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        int allowed;
        unsigned cluster[3];
    } value;
};
struct Config {
    unsigned grid[3], block[3], shared;
    void *stream;
    Attribute *attributes;
    unsigned count;
};
} // namespace

extern "C" {
int cuInit(unsigned)
{
    const char *asked = getenv("EMULATED_COMPUTE"), *seed = getenv("EMULATED_SEED");
    if (const char *count = getenv("EMULATED_MULTIPROCESSORS"))
        multiprocessors = atoi(count);
    if (asked)
        compute = atoi(asked);
    if (seed)
        random_state ^= approximation_seed = strtoull(seed, nullptr, 0) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    return 0;
}

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

int cuGetErrorName(int result, const char **text)
{
    *text = result == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
            : result == NO_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
                                    : "CUDA_ERROR_EMULATED";
    return 0;
}

int cuGetErrorString(int result, const char **text)
{
    *text = result == LAUNCH_FAILED ? trouble
            : result == NO_MEMORY   ? "out of memory"
            : result == NO_IMAGE    ? trouble
                                    : "the emulated device refuses this call";
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = 1;
    return 0;
}

int cuDeviceGet(int *device, int index)
{
    *device = index;
    return index == 0 ? 0 : 101;
}

int cuDeviceGetName(char *name, int size, int)
{
    snprintf(name, (size_t)size, "emulated %d.%d", compute / 10, compute % 10);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int)
{
    *bytes = (size_t)1 << 30;
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int)
{
    switch (attribute) {
    case 16:
        *value = multiprocessors;
        return 0;
    case 38:
        *value = 1 << 20;
        return 0;
    case 75:
        *value = compute / 10;
        return 0;
    case 76:
        *value = compute % 10;
        return 0;
    case 97:
        *value = compute == 90 || compute == 100 ? 232448 : compute == 80 || compute == 87 ? 166912 : 101376;
        return 0;
    default:
        return INVALID;
    }
}

int cuDevicePrimaryCtxRetain(void **context, int)
{
    *context = &the_context;
    return 0;
}

int cuCtxGetCurrent(void **context)
{
    *context = &the_context;
    return 0;
}

int cuCtxSetCurrent(void *)
{
    return 0;
}
int cuCtxPushCurrent_v2(void *)
{
    return 0;
}
int cuCtxPopCurrent_v2(void **context)
{
    *context = &the_context;
    return 0;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    *address = memory_allocate(bytes);
    return *address ? 0 : NO_MEMORY;
}

int cuMemFree_v2(uint64_t address)
{
    return memory_free(address) ? 0 : INVALID;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *)
{
    if (!memory_mark(to, bytes, true))
        return INVALID;
    memcpy((void *)to, from, bytes);
    return 0;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *)
{
    if (bytes && !is_global(from, bytes))
        return INVALID;
    memcpy(to, (const void *)from, bytes);
    return failed ? LAUNCH_FAILED : 0;
}

int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, void *)
{
    if (!memory_mark(to, bytes, false))
        return INVALID;
    memset((void *)to, byte, bytes);
    return 0;
}

/* The bytes of an allocation that are a tensor; the others are none from the `first` on. */
void emulated_tensor(uint64_t address, size_t bytes, int output, int first)
{
    memory_tensor(address, bytes, output != 0, first != 0);
}

int cuStreamSynchronize(void *)
{
    return failed ? LAUNCH_FAILED : 0;
}
int cuStreamCreate(void **stream, unsigned)
{
    *stream = &the_context;
    return 0;
}
int cuStreamDestroy_v2(void *)
{
    return 0;
}
int cuStreamBeginCapture_v2(void *, int)
{
    return NOT_SUPPORTED;
}
int cuStreamEndCapture(void *, void **)
{
    return NOT_SUPPORTED;
}
int cuThreadExchangeStreamCaptureMode(int *)
{
    return 0;
}
int cuGraphInstantiateWithFlags(void **, void *, unsigned long long)
{
    return NOT_SUPPORTED;
}
int cuGraphLaunch(void *, void *)
{
    return NOT_SUPPORTED;
}
int cuGraphDestroy(void *)
{
    return 0;
}
int cuGraphExecDestroy(void *)
{
    return 0;
}
int cuEventCreate(void **event, unsigned)
{
    *event = &the_context;
    return 0;
}
int cuEventDestroy_v2(void *)
{
    return 0;
}
int cuEventRecord(void *, void *)
{
    return 0;
}
int cuEventElapsedTime(float *milliseconds, void *, void *)
{
    *milliseconds = 1;
    return 0;
}

/* An image is "emulated image\n" and the path of a shared object. */
int cuModuleLoadDataEx(void **module, const void *data, unsigned, int *, void **)
{
    static const char mark[] = "emulated image\n";
    if (memcmp(data, mark, sizeof mark - 1) != 0) {
        snprintf(trouble, sizeof trouble, "no image that was compiled for the emulated device");
        return NO_IMAGE;
    }
    Image *made = new Image();
    snprintf(made->path, sizeof made->path, "%s", (const char *)data + sizeof mark - 1);
    made->library = dlopen(made->path, RTLD_NOW | RTLD_LOCAL);
    if (!made->library) {
        snprintf(trouble, sizeof trouble, "the image cannot be loaded: %s", dlerror());
        delete made;
        return NO_IMAGE;
    }
    const int *count = (const int *)dlsym(made->library, "emulated_site_count");
    const emulated_site *sites = (const emulated_site *)dlsym(made->library, "emulated_sites");
    const unsigned *statics = (const unsigned *)dlsym(made->library, "emulated_static_bytes"),
                   *clusters = (const unsigned *)dlsym(made->library, "emulated_cluster");
    if (!count || !sites || !statics || !clusters) {
        snprintf(trouble, sizeof trouble, "the image lacks what the emulated device needs");
        delete made;
        return NO_IMAGE;
    }
    made->static_bytes = *statics;
    made->cluster = *clusters;
    made->features = features_of(sites, *count);
    dl_iterate_phdr(find_range, made);
    *module = made;
    return 0;
}

int cuModuleUnload(void *)
{
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    char symbol[128];
    const Image *of = (const Image *)module;
    snprintf(symbol, sizeof symbol, "emulated_enter_%s", name);
    void *found = dlsym(of->library, symbol);
    if (!found)
        return NOT_FOUND;
    Function *made = new Function{of, nullptr};
    memcpy(&made->enter, &found, sizeof found);
    *function = made;
    return 0;
}

int cuFuncGetAttribute(int *value, int, void *)
{
    *value = 0;
    return 0;
}

int cuFuncSetAttribute(void *, int, int)
{
    return 0;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, void *, int, size_t)
{
    *count = 1;
    return 0;
}

/* As if a group of 16 multiprocessors held them: the more blocks a cluster has, the fewer there are. */
int cuOccupancyMaxActiveClusters(int *clusters, void *, const Config *config)
{
    unsigned size = config->count == 1 && config->attributes->id == 4 ? config->attributes->value.cluster[0] : 0;
    if (!size)
        return INVALID;
    *clusters = (int)(16 / size);
    return 0;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z,
                   unsigned shared, void *, void **parameters, void **extra)
{
    const unsigned grid[] = {x, y, z}, block[] = {block_x, block_y, block_z};
    return extra ? INVALID : launch_now((Function *)function, grid, block, shared, 0, false, parameters);
}

int cuLaunchKernelEx(const Config *config, void *function, void **parameters, void **extra)
{
    unsigned cluster_size = 0;
    bool early = false;
    for (unsigned i = 0; i < config->count; i++) {
        if (config->attributes[i].id == 4)
            cluster_size = config->attributes[i].value.cluster[0];
        else if (config->attributes[i].id == 6)
            early = config->attributes[i].value.allowed != 0;
        else
            return INVALID;
    }
    return extra ? INVALID
                 : launch_now((Function *)function, config->grid, config->block, config->shared, cluster_size, early, parameters);
}

int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *sizes, const uint64_t *strides,
                           const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int, int)
{
    if ((uintptr_t)map % 64 || rank < 1 || rank > EMULATED_MAP_DIMENSIONS || (uintptr_t)address % 16 || interleave)
        return INVALID;
    emulated_map made = {};
    made.magic = EMULATED_MAP_MAGIC;
    made.element = type == 7 ? 4 : 2;
    made.data = (unsigned char *)address;
    made.rank = rank;
    made.swizzle = swizzle == 3 ? 128 : swizzle == 2 ? 64 : swizzle == 1 ? 32 : 0;
    for (uint32_t d = 0; d < rank; d++) {
        if (!sizes[d] || sizes[d] > (uint64_t)1 << 32 || !box[d] || box[d] > 256 || steps[d] != 1 ||
            (d && (strides[d - 1] % 16 || strides[d - 1] >= (uint64_t)1 << 40)))
            return INVALID;
        made.size[d] = sizes[d] >> 32 ? 0xffffffff : (uint32_t)sizes[d];
        made.box[d] = box[d];
        made.stride[d] = d ? (int64_t)strides[d - 1] : made.element;
    }
    static_assert(sizeof made <= 128, "a tensor map has 128 bytes");
    memset(map, 0, 128);
    memcpy(map, &made, sizeof made);
    return 0;
}

int cuTensorMapReplaceAddress(void *map, void *address)
{
    emulated_map *made = (emulated_map *)map;
    if ((uintptr_t)map % 64 || (uintptr_t)address % 16 || made->magic != EMULATED_MAP_MAGIC)
        return INVALID;
    made->data = (unsigned char *)address;
    return 0;
}
}
