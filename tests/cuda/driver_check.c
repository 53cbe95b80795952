/*
 * driver_check.c - lib/cuda/driver.h against NVIDIA's cuda.h: the numbers, the structs, and which version of a function a name stands
 * for. It is compiled where the toolkit is, and never run.
 */
#include <cuda.h>

#include "../../lib/cuda/driver.h"

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #ours " is not " #theirs)

SAME(CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(CU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(CU_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(CU_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CU_L2_CACHE, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(CU_COMPUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CU_COMPUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CU_SHARED_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(CU_FUNCTION_SHARED, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(CU_FUNCTION_MOST_DYNAMIC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CU_FUNCTION_WIDE_CLUSTERS, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
SAME(CU_STREAM_APART, CU_STREAM_NON_BLOCKING);
SAME(CU_CAPTURE_OF_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(CU_JIT_ERROR_TEXT, CU_JIT_ERROR_LOG_BUFFER);
SAME(CU_JIT_ERROR_TEXT_SIZE, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(CU_LAUNCH_EARLY, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME(CU_MAP_F16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
SAME(CU_MAP_F32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
SAME(CU_MAP_BF16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME(CU_MAP_PROMOTE_128, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
SAME(0, CU_TENSOR_MAP_INTERLEAVE_NONE);
SAME(0, CU_TENSOR_MAP_SWIZZLE_NONE);
SAME(1, CU_TENSOR_MAP_SWIZZLE_32B);
SAME(2, CU_TENSOR_MAP_SWIZZLE_64B);
SAME(3, CU_TENSOR_MAP_SWIZZLE_128B);
SAME(0, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
SAME(sizeof(struct cu_launch_attribute), sizeof(CUlaunchAttribute));
SAME(offsetof(struct cu_launch_attribute, value), offsetof(CUlaunchAttribute, value));
SAME(sizeof(struct cu_launch_config), sizeof(CUlaunchConfig));
SAME(offsetof(struct cu_launch_config, block), offsetof(CUlaunchConfig, blockDimX));
SAME(offsetof(struct cu_launch_config, shared), offsetof(CUlaunchConfig, sharedMemBytes));
SAME(offsetof(struct cu_launch_config, stream), offsetof(CUlaunchConfig, hStream));
SAME(offsetof(struct cu_launch_config, attributes), offsetof(CUlaunchConfig, attrs));
SAME(offsetof(struct cu_launch_config, attribute_count), offsetof(CUlaunchConfig, numAttrs));
SAME(sizeof(cu_pointer), sizeof(CUdeviceptr));
SAME(sizeof(cu_device), sizeof(CUdevice));
SAME(sizeof(cu_result), sizeof(CUresult));

/* The errors after which the library does not go on, as lib/cuda/device.c has them. */
SAME(4, CUDA_ERROR_DEINITIALIZED);
SAME(214, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(220, CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME(226, CUDA_ERROR_CONTAINED);
SAME(700, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(702, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(709, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME(710, CUDA_ERROR_ASSERT);
SAME(714, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(715, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME(716, CUDA_ERROR_MISALIGNED_ADDRESS);
SAME(717, CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME(718, CUDA_ERROR_INVALID_PC);
SAME(719, CUDA_ERROR_LAUNCH_FAILED);
SAME(721, CUDA_ERROR_TENSOR_MEMORY_LEAK);

/* Where cuda.h maps a name to a later version of the function, that is the one we look for. */
#define NAME_IS(symbol, theirs)      _Static_assert(__builtin_strcmp(symbol, theirs) == 0, symbol " is not what cuda.h calls " theirs)
#define TEXT_(x)                     #x
#define TEXT(x)                      TEXT_(x)
#define VERSION_OF(function, symbol) NAME_IS(symbol, TEXT(function))
VERSION_OF(cuDeviceTotalMem, "cuDeviceTotalMem_v2");
VERSION_OF(cuCtxPushCurrent, "cuCtxPushCurrent_v2");
VERSION_OF(cuCtxPopCurrent, "cuCtxPopCurrent_v2");
VERSION_OF(cuMemAlloc, "cuMemAlloc_v2");
VERSION_OF(cuMemFree, "cuMemFree_v2");
VERSION_OF(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
VERSION_OF(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
VERSION_OF(cuStreamDestroy, "cuStreamDestroy_v2");
VERSION_OF(cuStreamBeginCapture, "cuStreamBeginCapture_v2");
VERSION_OF(cuEventDestroy, "cuEventDestroy_v2");
VERSION_OF(cuGraphInstantiate, "cuGraphInstantiateWithFlags");

int main(void)
{
    return 0;
}
