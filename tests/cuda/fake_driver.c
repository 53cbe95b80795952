/*
 * fake_driver.c - a CUDA driver that is made up, built as libcuda.so.1 by tests/cuda_backend.t: memory is ordinary memory, images
 * are looked at, launches are written down, and nothing is computed. So everything of the backend that is not the GPU itself is
 * tested where there is none.
 *
 * The environment variable FAKE_CUDA says how it fails from the start: nodevice, init=N.
 *
 * Devices: 0 and 1 like an H200 (9.0), 2 like an L4 (8.9), 3 a GPU of tomorrow (12.0), 4 one of yesterday (7.5).
 */
#include "fake_cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_cuda fake_cuda = {.blocks_per_sm = 2};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_init;

static const struct {
    const char *name;
    int major, minor, sms, shared;
} devices[] = {{"NVIDIA H200", 9, 0, 132, 232448},
               {"NVIDIA H200", 9, 0, 132, 232448},
               {"NVIDIA L4", 8, 9, 58, 101376},
               {"NVIDIA  RTX (tomorrow)", 12, 0, 100, 101376},
               {"Tesla T4", 7, 5, 40, 65536}};
enum { DEVICES = sizeof devices / sizeof *devices };
static char contexts[DEVICES]; /* the address of one is a context */

/* The stack of contexts of a thread. */
static _Thread_local void *stack[16];
static _Thread_local int height;
static _Thread_local void *capturing; /* the stream that this thread captures */

struct module {
    const void *image;
    int device;
};
struct function {
    struct module *module;
    char name[32];
    int most_shared;
    bool wide_clusters;
};
struct stream {
    bool captures;
};

/* A call that needs a context, and a driver that still works. */
#define BEGIN                                                                                                                      \
    if (!is_init)                                                                                                                  \
        return 3;                                                                                                                  \
    if (fake_cuda.sticky)                                                                                                          \
        return fake_cuda.sticky;                                                                                                   \
    if (!height || !stack[height - 1])                                                                                             \
    return 201

/* The result that was asked for, once. */
static int take(int *failure)
{
    pthread_mutex_lock(&lock);
    int result = *failure;
    *failure = 0;
    pthread_mutex_unlock(&lock);
    return result;
}

#define COUNT(what, by)                                                                                                            \
    do {                                                                                                                           \
        pthread_mutex_lock(&lock);                                                                                                 \
        fake_cuda.what += by;                                                                                                      \
        pthread_mutex_unlock(&lock);                                                                                               \
    } while (0)

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    const char *how = getenv("FAKE_CUDA");
    (void)flags;
    COUNT(inits, 1);
    if (how && strncmp(how, "init=", 5) == 0)
        return atoi(how + 5);
    is_init = true;
    return how && strcmp(how, "nodevice") == 0 ? 100 : 0;
}

int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

int cuGetErrorName(int result, const char **text);
int cuGetErrorName(int result, const char **text)
{
    *text = result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : result == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return 0;
}

int cuGetErrorString(int result, const char **text);
int cuGetErrorString(int result, const char **text)
{
    if (result == 1234)
        return 1;
    *text = result == 700 ? "an illegal memory access was encountered" : result == 2 ? "out of memory" : "something made up";
    return 0;
}

int cuDeviceGetCount(int *count);
int cuDeviceGetCount(int *count)
{
    *count = DEVICES;
    return is_init ? 0 : 3;
}

int cuDeviceGet(int *device, int index);
int cuDeviceGet(int *device, int index)
{
    *device = index;
    return index < DEVICES ? 0 : 101;
}

int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetName(char *name, int size, int device)
{
    snprintf(name, (size_t)size, "%s", devices[device].name);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = (size_t)(device + 1) << 30;
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    switch (attribute) {
    case 16:
        *value = devices[device].sms;
        return 0;
    case 38:
        *value = 50 << 20;
        return 0;
    case 75:
        *value = devices[device].major;
        return 0;
    case 76:
        *value = devices[device].minor;
        return 0;
    case 97:
        *value = devices[device].shared;
        return 0;
    default:
        return 1;
    }
}

int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = &contexts[device];
    return 0;
}

int cuCtxGetCurrent(void **context);
int cuCtxGetCurrent(void **context)
{
    *context = height ? stack[height - 1] : NULL;
    return 0;
}

int cuCtxSetCurrent(void *context);
int cuCtxSetCurrent(void *context)
{
    if (!height)
        height = 1;
    stack[height - 1] = context;
    return 0;
}

int cuCtxPushCurrent_v2(void *context);
int cuCtxPushCurrent_v2(void *context)
{
    if (height == 16)
        return 1;
    stack[height++] = context;
    COUNT(depth, 1);
    return 0;
}

int cuCtxPopCurrent_v2(void **context);
int cuCtxPopCurrent_v2(void **context)
{
    if (!height)
        return 201;
    *context = stack[--height];
    COUNT(depth, -1);
    return 0;
}

static int current_device(void)
{
    return (int)((char *)stack[height - 1] - contexts);
}

/* ---- memory ---- */

int cuMemAlloc_v2(uint64_t *memory, size_t bytes);
int cuMemAlloc_v2(uint64_t *memory, size_t bytes)
{
    BEGIN;
    int failure = take(&fake_cuda.fail_alloc);
    if (failure || bytes > (size_t)1 << 34)
        return failure ? failure : 2;
    void *found = aligned_alloc(512, (bytes + 511) / 512 * 512);
    *memory = (uint64_t)(uintptr_t)found;
    COUNT(allocations, 1);
    return found ? 0 : 2;
}

int cuMemFree_v2(uint64_t memory);
int cuMemFree_v2(uint64_t memory)
{
    BEGIN;
    free((void *)(uintptr_t)memory);
    COUNT(allocations, -1);
    return 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    BEGIN;
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    BEGIN;
    (void)stream;
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return 0;
}

int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, void *stream);
int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, void *stream)
{
    BEGIN;
    (void)stream;
    memset((void *)(uintptr_t)to, byte, bytes);
    return 0;
}

/* ---- streams, events, graphs ---- */

int cuStreamSynchronize(void *stream);
int cuStreamSynchronize(void *stream)
{
    BEGIN;
    (void)stream;
    COUNT(waits, 1);
    int failure = take(&fake_cuda.fail_wait);
    if (failure == 700)
        fake_cuda.sticky = failure;
    return failure;
}

int cuStreamCreate(void **stream, unsigned flags);
int cuStreamCreate(void **stream, unsigned flags)
{
    BEGIN;
    (void)flags;
    *stream = calloc(1, sizeof(struct stream));
    COUNT(streams, 1);
    return 0;
}

int cuStreamDestroy_v2(void *stream);
int cuStreamDestroy_v2(void *stream)
{
    free(stream);
    COUNT(streams, -1);
    return 0;
}

int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamBeginCapture_v2(void *stream, int mode)
{
    BEGIN;
    (void)mode;
    ((struct stream *)stream)->captures = true;
    capturing = stream;
    COUNT(captures, 1);
    return 0;
}

int cuStreamEndCapture(void *stream, void **graph);
int cuStreamEndCapture(void *stream, void **graph)
{
    BEGIN;
    if (!((struct stream *)stream)->captures)
        return 401;
    ((struct stream *)stream)->captures = false;
    capturing = NULL;
    *graph = malloc(1);
    COUNT(captures, -1);
    COUNT(graphs, 1);
    return 0;
}

int cuThreadExchangeStreamCaptureMode(int *mode);
int cuThreadExchangeStreamCaptureMode(int *mode)
{
    static _Thread_local int current;
    int before = current;
    current = *mode;
    *mode = before;
    return 0;
}

int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags);
int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags)
{
    BEGIN;
    (void)graph, (void)flags;
    int failure = take(&fake_cuda.fail_instantiate);
    if (failure)
        return failure;
    *exec = malloc(1);
    COUNT(graphs, 1);
    return 0;
}

int cuGraphLaunch(void *exec, void *stream);
int cuGraphLaunch(void *exec, void *stream)
{
    BEGIN;
    (void)exec, (void)stream;
    COUNT(graph_launches, 1);
    return 0;
}

int cuGraphDestroy(void *graph);
int cuGraphDestroy(void *graph)
{
    free(graph);
    COUNT(graphs, -1);
    return 0;
}

int cuGraphExecDestroy(void *exec);
int cuGraphExecDestroy(void *exec)
{
    free(exec);
    COUNT(graphs, -1);
    return 0;
}

int cuEventCreate(void **event, unsigned flags);
int cuEventCreate(void **event, unsigned flags)
{
    BEGIN;
    (void)flags;
    *event = malloc(1);
    COUNT(events, 1);
    return 0;
}

int cuEventDestroy_v2(void *event);
int cuEventDestroy_v2(void *event)
{
    free(event);
    COUNT(events, -1);
    return 0;
}

int cuEventRecord(void *event, void *stream);
int cuEventRecord(void *event, void *stream)
{
    BEGIN;
    (void)event, (void)stream;
    return 0;
}

int cuEventElapsedTime(float *milliseconds, void *from, void *to);
int cuEventElapsedTime(float *milliseconds, void *from, void *to)
{
    BEGIN;
    (void)from, (void)to;
    *milliseconds = 6;
    return 0;
}

/* ---- modules and launches ---- */

/* An image is a cubin, PTX or a fatbin; and for the tests anything that begins with "image". */
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values);
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values)
{
    BEGIN;
    int failure = take(&fake_cuda.fail_load);
    bool known = memcmp(image, "\177ELF", 4) == 0 || memcmp(image, "\x50\xed\x55\xba", 4) == 0 || memcmp(image, "//", 2) == 0 ||
                 memcmp(image, "image", 5) == 0;
    if (capturing) /* in the thread's own capture nothing may be loaded */
        return 900;
    if (failure || !known) {
        if (count == 2 && options[0] == 5 && options[1] == 6)
            snprintf(values[0], (size_t)(uintptr_t)values[1], "ptxas says no\nand more");
        return failure ? failure : 200;
    }
    struct module *made = calloc(1, sizeof *made);
    made->image = image;
    made->device = current_device();
    *module = made;
    pthread_mutex_lock(&lock);
    fake_cuda.loads++;
    memcpy(fake_cuda.last_image, image, sizeof fake_cuda.last_image);
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuModuleUnload(void *module);
int cuModuleUnload(void *module)
{
    free(module);
    COUNT(unloads, 1);
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    BEGIN;
    if (strstr(((struct module *)module)->image, "nocombine") && strcmp(name, "attest_combine") == 0)
        return 500;
    struct function *made = calloc(1, sizeof *made);
    made->module = module;
    made->most_shared = 48 << 10;
    snprintf(made->name, sizeof made->name, "%s", name);
    *function = made;
    return 0;
}

int cuFuncGetAttribute(int *value, int attribute, void *function);
int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    BEGIN;
    (void)attribute, (void)function;
    *value = 0;
    return 0;
}

int cuFuncSetAttribute(void *function, int attribute, int value);
int cuFuncSetAttribute(void *function, int attribute, int value)
{
    BEGIN;
    struct function *of = function;
    if (attribute == 14) {
        of->wide_clusters = value != 0;
        return 0;
    }
    if (attribute != 8 || value > devices[of->module->device].shared)
        return 1;
    of->most_shared = value > of->most_shared ? value : of->most_shared;
    return 0;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared)
{
    BEGIN;
    (void)function, (void)threads, (void)shared;
    *blocks = fake_cuda.blocks_per_sm;
    return 0;
}

/* As in cuda.h. */
struct attribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        int allowed;
        unsigned cluster[3];
    } value;
};
struct config {
    unsigned grid[3], block[3], shared;
    void *stream;
    struct attribute *attributes;
    unsigned count;
};

static bool can_be_cluster(const struct function *function, const struct config *config, const struct attribute *attribute)
{
    unsigned size = attribute->value.cluster[0];
    return size && size <= (function->wide_clusters ? 16 : 8) && config->grid[0] % size == 0 && attribute->value.cluster[1] == 1 &&
           attribute->value.cluster[2] == 1;
}

/* The multiprocessors are in groups of 18, in which clusters have to lie. */
int cuOccupancyMaxActiveClusters(int *clusters, void *function, const struct config *config);
int cuOccupancyMaxActiveClusters(int *clusters, void *function, const struct config *config)
{
    BEGIN;
    const struct function *of = function;
    if (config->count != 1 || config->attributes->id != 4 || !can_be_cluster(of, config, config->attributes) ||
        (int)config->shared > of->most_shared || !config->block[0])
        return 1;
    int size = (int)config->attributes->value.cluster[0], room = devices[of->module->device].sms;
    *clusters = room / 18 * (18 / size) + room % 18 / size;
    return 0;
}

static int launch(struct function *function, const unsigned *grid, const unsigned *block, unsigned shared, void *stream, bool early,
                  unsigned cluster, void **parameters)
{
    bool combine = strcmp(function->name, "attest_combine") == 0;
    int failure = take(combine ? &fake_cuda.fail_combine : &fake_cuda.fail_launch);
    if (failure == 700)
        fake_cuda.sticky = failure;
    if (failure)
        return failure;
    if ((int)shared > function->most_shared || function->module->device != current_device() || !grid[0] || !block[0] || !grid[1] ||
        !grid[2] || grid[1] > 65535 || grid[2] > 65535 || block[1] != 1 || block[2] != 1)
        return 1;
    struct fake_launch made = {.grid = grid[0],
                               .grid_y = grid[1],
                               .grid_z = grid[2],
                               .block = block[0],
                               .shared = shared,
                               .early = early,
                               .cluster = cluster,
                               .captured = stream && ((struct stream *)stream)->captures,
                               .stream = stream,
                               .device = current_device(),
                               .args = *(const attest_cuda_args *)parameters[0]};
    snprintf(made.function, sizeof made.function, "%s", function->name);
    pthread_mutex_lock(&lock);
    fake_cuda.launch[fake_cuda.launches++ % FAKE_LAUNCHES] = made;
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z,
                   unsigned shared, void *stream, void **parameters, void **extra);
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z,
                   unsigned shared, void *stream, void **parameters, void **extra)
{
    BEGIN;
    return extra ? 1
                 : launch(function, (unsigned[]){x, y, z}, (unsigned[]){block_x, block_y, block_z}, shared, stream, false, 0,
                          parameters);
}

int cuLaunchKernelEx(const struct config *config, void *function, void **parameters, void **extra);
int cuLaunchKernelEx(const struct config *config, void *function, void **parameters, void **extra)
{
    BEGIN;
    const struct attribute *attribute = config->attributes;
    if (extra || config->count != 1 || (attribute->id != 6 && attribute->id != 4))
        return 1;
    bool early = attribute->id == 6 && attribute->value.allowed == 1;
    unsigned cluster = attribute->id == 4 ? attribute->value.cluster[0] : 0;
    if (attribute->id == 4 && !can_be_cluster(function, config, attribute))
        return 1;
    return launch(function, config->grid, config->block, config->shared, config->stream, early, cluster, parameters);
}

/* A map is 128 bytes, of which the first are the number of what it was made of. */
static void map_write(void *map, const struct fake_map *made, int *count)
{
    memset(map, 0xab, 128);
    pthread_mutex_lock(&lock);
    int number = fake_cuda.maps + fake_cuda.moves;
    fake_cuda.map[number % FAKE_MAPS] = *made;
    ++*count;
    pthread_mutex_unlock(&lock);
    memcpy(map, &number, sizeof number);
}

int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *sizes, const uint64_t *strides,
                           const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill);
int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *sizes, const uint64_t *strides,
                           const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill)
{
    BEGIN; /* no word of it in the driver's manual, but without a context there are no maps */
    int failure = take(&fake_cuda.fail_map);
    struct fake_map made = {type, interleave, swizzle, promotion, fill, rank, address, {0}, {0}, {0}, {0}};
    if (failure)
        return failure;
    if ((uintptr_t)map % 64 || rank < 1 || rank > 5 || (uintptr_t)address % 16)
        return 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (!sizes[i] || sizes[i] > (uint64_t)1 << 32 || !box[i] || box[i] > 256 || steps[i] != 1 ||
            (i && (strides[i - 1] % 16 || strides[i - 1] >= (uint64_t)1 << 40)))
            return 1;
        made.sizes[i] = sizes[i];
        made.box[i] = box[i];
        made.steps[i] = steps[i];
        if (i)
            made.strides[i - 1] = strides[i - 1];
    }
    map_write(map, &made, &fake_cuda.maps);
    return 0;
}

int cuTensorMapReplaceAddress(void *map, void *address);
int cuTensorMapReplaceAddress(void *map, void *address)
{
    BEGIN;
    int failure = take(&fake_cuda.fail_map), number;
    if (failure)
        return failure;
    if ((uintptr_t)map % 64 || (uintptr_t)address % 16)
        return 1;
    memcpy(&number, map, sizeof number);
    pthread_mutex_lock(&lock);
    struct fake_map made = fake_cuda.map[number % FAKE_MAPS];
    pthread_mutex_unlock(&lock);
    made.address = address;
    map_write(map, &made, &fake_cuda.moves);
    return 0;
}
