/*
 * driver.h - the part of the CUDA driver's interface that the library uses, in our own words, so that it builds where no CUDA is.
 * tests/cuda/driver_check.c compares all of it with NVIDIA's cuda.h.
 */
#ifndef ATTEST_DRIVER_H
#define ATTEST_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int cu_result;
typedef int cu_device;
typedef uint64_t cu_pointer;
typedef struct cu_context_ *cu_context;
typedef struct cu_module_ *cu_module;
typedef struct cu_function_ *cu_function;
typedef struct cu_stream_ *cu_stream;
typedef struct cu_event_ *cu_event;
typedef struct cu_graph_ *cu_graph;
typedef struct cu_graph_exec_ *cu_graph_exec;

/* Results that mean something to us, beside 0. */
enum { CU_INVALID_VALUE = 1, CU_OUT_OF_MEMORY = 2, CU_NO_DEVICE = 100, CU_INVALID_DEVICE = 101, CU_NOT_FOUND = 500 };

/* Attributes of a device and of a function; what we ask of streams, graphs and the compiler of PTX. */
enum {
    CU_MULTIPROCESSORS = 16,
    CU_L2_CACHE = 38,
    CU_COMPUTE_MAJOR = 75,
    CU_COMPUTE_MINOR = 76,
    CU_SHARED_BLOCK = 97,
    CU_FUNCTION_SHARED = 1,
    CU_FUNCTION_MOST_DYNAMIC_SHARED = 8,
    CU_FUNCTION_WIDE_CLUSTERS = 14, /* of more than 8 blocks, which not every GPU with clusters has to have */
    CU_STREAM_APART = 1,
    CU_CAPTURE_OF_THREAD = 1,
    CU_CAPTURE_RELAXED = 2,
    CU_JIT_ERROR_TEXT = 5,
    CU_JIT_ERROR_TEXT_SIZE = 6,
    CU_LAUNCH_CLUSTER = 4, /* how many blocks a cluster has */
    CU_LAUNCH_EARLY = 6    /* programmatic stream serialization */
};

enum {
    CU_MAP_F16 = 6,
    CU_MAP_F32 = 7,
    CU_MAP_BF16 = 9,
    CU_MAP_PROMOTE_128 = 2,
};

struct cu_launch_attribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        int allowed;
        unsigned cluster[3];
        uint64_t align;
    } value;
};

struct cu_launch_config {
    unsigned grid[3], block[3], shared;
    cu_stream stream;
    struct cu_launch_attribute *attributes;
    unsigned attribute_count;
};

/* Function(name of ours, name in libcuda.so.1, parameters); OPTIONAL ones are NULL with drivers that are too old for them. */
#define CU_FUNCTIONS(FUNCTION, OPTIONAL)                                                                                           \
    FUNCTION(init, "cuInit", (unsigned flags))                                                                                     \
    FUNCTION(driver_version, "cuDriverGetVersion", (int *version))                                                                 \
    FUNCTION(error_name, "cuGetErrorName", (cu_result result, const char **text))                                                  \
    FUNCTION(error_string, "cuGetErrorString", (cu_result result, const char **text))                                              \
    FUNCTION(device_count, "cuDeviceGetCount", (int *count))                                                                       \
    FUNCTION(device_get, "cuDeviceGet", (cu_device * device, int index))                                                           \
    FUNCTION(device_name, "cuDeviceGetName", (char *name, int size, cu_device device))                                             \
    FUNCTION(device_memory, "cuDeviceTotalMem_v2", (size_t * bytes, cu_device device))                                             \
    FUNCTION(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, cu_device device))                              \
    FUNCTION(primary_retain, "cuDevicePrimaryCtxRetain", (cu_context * context, cu_device device))                                 \
    FUNCTION(context_current, "cuCtxGetCurrent", (cu_context * context))                                                           \
    FUNCTION(context_push, "cuCtxPushCurrent_v2", (cu_context context))                                                            \
    FUNCTION(context_pop, "cuCtxPopCurrent_v2", (cu_context * context))                                                            \
    FUNCTION(memory_alloc, "cuMemAlloc_v2", (cu_pointer * memory, size_t bytes))                                                   \
    FUNCTION(memory_free, "cuMemFree_v2", (cu_pointer memory))                                                                     \
    FUNCTION(copy_in, "cuMemcpyHtoDAsync_v2", (cu_pointer to, const void *from, size_t bytes, cu_stream stream))                   \
    FUNCTION(copy_out, "cuMemcpyDtoHAsync_v2", (void *to, cu_pointer from, size_t bytes, cu_stream stream))                        \
    FUNCTION(fill, "cuMemsetD8Async", (cu_pointer to, unsigned char byte, size_t bytes, cu_stream stream))                         \
    FUNCTION(stream_wait, "cuStreamSynchronize", (cu_stream stream))                                                               \
    FUNCTION(stream_create, "cuStreamCreate", (cu_stream * stream, unsigned flags))                                                \
    FUNCTION(stream_destroy, "cuStreamDestroy_v2", (cu_stream stream))                                                             \
    FUNCTION(capture_begin, "cuStreamBeginCapture_v2", (cu_stream stream, int mode))                                               \
    FUNCTION(capture_end, "cuStreamEndCapture", (cu_stream stream, cu_graph * graph))                                              \
    FUNCTION(capture_mode, "cuThreadExchangeStreamCaptureMode", (int *mode))                                                       \
    FUNCTION(graph_instantiate, "cuGraphInstantiateWithFlags", (cu_graph_exec * exec, cu_graph graph, unsigned long long flags))   \
    FUNCTION(graph_launch, "cuGraphLaunch", (cu_graph_exec exec, cu_stream stream))                                                \
    FUNCTION(graph_destroy, "cuGraphDestroy", (cu_graph graph))                                                                    \
    FUNCTION(graph_exec_destroy, "cuGraphExecDestroy", (cu_graph_exec exec))                                                       \
    FUNCTION(event_create, "cuEventCreate", (cu_event * event, unsigned flags))                                                    \
    FUNCTION(event_destroy, "cuEventDestroy_v2", (cu_event event))                                                                 \
    FUNCTION(event_record, "cuEventRecord", (cu_event event, cu_stream stream))                                                    \
    FUNCTION(event_elapsed, "cuEventElapsedTime", (float *milliseconds, cu_event from, cu_event to))                               \
    FUNCTION(module_load, "cuModuleLoadDataEx",                                                                                    \
             (cu_module * module, const void *image, unsigned count, int *options, void **values))                                 \
    FUNCTION(module_unload, "cuModuleUnload", (cu_module module))                                                                  \
    FUNCTION(module_function, "cuModuleGetFunction", (cu_function * function, cu_module module, const char *name))                 \
    FUNCTION(function_get, "cuFuncGetAttribute", (int *value, int attribute, cu_function function))                                \
    FUNCTION(function_set, "cuFuncSetAttribute", (cu_function function, int attribute, int value))                                 \
    FUNCTION(blocks_per_sm, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                                         \
             (int *blocks, cu_function function, int threads, size_t shared))                                                      \
    FUNCTION(launch, "cuLaunchKernel",                                                                                             \
             (cu_function function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z,      \
              unsigned shared, cu_stream stream, void **parameters, void **extra))                                                 \
    OPTIONAL(launch_with, "cuLaunchKernelEx",                                                                                      \
             (const struct cu_launch_config *config, cu_function function, void **parameters, void **extra))                       \
    OPTIONAL(clusters_at_once, "cuOccupancyMaxActiveClusters",                                                                     \
             (int *clusters, cu_function function, const struct cu_launch_config *config))                                         \
    OPTIONAL(map_encode, "cuTensorMapEncodeTiled",                                                                                 \
             (void *map, int type, uint32_t rank, void *address, const uint64_t *sizes, const uint64_t *strides,                   \
              const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill))                   \
    OPTIONAL(map_move, "cuTensorMapReplaceAddress", (void *map, void *address))

struct driver {
#define CU_POINTER(ours, theirs, parameters) cu_result(*ours) parameters;
    CU_FUNCTIONS(CU_POINTER, CU_POINTER)
#undef CU_POINTER
    int version; /* 13000 is 13.0 */
    int devices; /* 0 if there is something the matter */
};

#endif
