/*
 * embedded.c - files of the repository as bytes of the program.
 */
#include "embedded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define EMBED(symbol, path)                                                                                                        \
    __asm__(".section .rodata\n"                                                                                                   \
            ".global embedded_" #symbol ", embedded_" #symbol "_end\n"                                                             \
            ".hidden embedded_" #symbol ", embedded_" #symbol "_end\n"                                                             \
            "embedded_" #symbol ":\n.incbin \"" path "\"\n"                                                                        \
            "embedded_" #symbol "_end:\n.byte 0\n.previous\n");                                                                    \
    extern const char embedded_##symbol[], embedded_##symbol##_end[]

EMBED(attest_h, "include/attest.h");
EMBED(attest_kernel_h, "include/attest_kernel.h");
EMBED(attest_kernel_cuda_h, "include/attest_kernel_cuda.h");
EMBED(ptx_cuh, "include/attest/ptx.cuh");
EMBED(ptx_sm90_cuh, "include/attest/ptx_sm90.cuh");
EMBED(mma_sm80_cuh, "include/attest/mma_sm80.cuh");
EMBED(bulk_sm90_cuh, "include/attest/bulk_sm90.cuh");
EMBED(simt_cuh, "include/attest/simt.cuh");
EMBED(emulated_device_h, "tool/emulation/device/emulated_device.h");
EMBED(cuda_fp16_h, "tool/emulation/device/cuda_fp16.h");
EMBED(cuda_bf16_h, "tool/emulation/device/cuda_bf16.h");
EMBED(cuda_runtime_h, "tool/emulation/device/cuda_runtime.h");
EMBED(mma_h, "tool/emulation/device/mma.h");
EMBED(emulated_cuda_so, EMULATED_DRIVER);
EMBED(prove_txt, "suites/prove.txt");
EMBED(speed_txt, "suites/speed.txt");
EMBED(speed_gpu_txt, "suites/speed_gpu.txt");
EMBED(report_css, "tool/report/report.css");
EMBED(kernel_cpu_c, "templates/kernel_cpu.c");
EMBED(kernel_cuda_sm80_cu, "templates/kernel_cuda_sm80.cu");
EMBED(kernel_cuda_sm90_cu, "templates/kernel_cuda_sm90.cu");
EMBED(cuda_fwd_scalar_cu, "lib/cuda/kernels/cuda_fwd_scalar.cu");

const struct embedded embedded_headers[] = {
    {"attest.h", embedded_attest_h, embedded_attest_h_end},
    {"attest_kernel.h", embedded_attest_kernel_h, embedded_attest_kernel_h_end},
    {"attest_kernel_cuda.h", embedded_attest_kernel_cuda_h, embedded_attest_kernel_cuda_h_end},
};
const struct embedded embedded_vocabulary[] = {
    {"attest/ptx.cuh", embedded_ptx_cuh, embedded_ptx_cuh_end},
    {"attest/ptx_sm90.cuh", embedded_ptx_sm90_cuh, embedded_ptx_sm90_cuh_end},
    {"attest/mma_sm80.cuh", embedded_mma_sm80_cuh, embedded_mma_sm80_cuh_end},
    {"attest/bulk_sm90.cuh", embedded_bulk_sm90_cuh, embedded_bulk_sm90_cuh_end},
    {"attest/simt.cuh", embedded_simt_cuh, embedded_simt_cuh_end},
};
const int embedded_vocabulary_count = sizeof embedded_vocabulary / sizeof *embedded_vocabulary;
const struct embedded embedded_device_headers[] = {
    {"emulated_device.h", embedded_emulated_device_h, embedded_emulated_device_h_end},
    {"cuda_fp16.h", embedded_cuda_fp16_h, embedded_cuda_fp16_h_end},
    {"cuda_bf16.h", embedded_cuda_bf16_h, embedded_cuda_bf16_h_end},
    {"cuda_runtime.h", embedded_cuda_runtime_h, embedded_cuda_runtime_h_end},
    {"mma.h", embedded_mma_h, embedded_mma_h_end},
};
const int embedded_device_header_count = sizeof embedded_device_headers / sizeof *embedded_device_headers;
const struct embedded embedded_emulated_driver = {"libcuda.so.1", embedded_emulated_cuda_so, embedded_emulated_cuda_so_end};
const int embedded_header_count = sizeof embedded_headers / sizeof *embedded_headers;
const struct embedded embedded_prove_suite = {"suites/prove.txt", embedded_prove_txt, embedded_prove_txt_end};
const struct embedded embedded_report_style = {"tool/report/report.css", embedded_report_css, embedded_report_css_end};
const struct embedded embedded_speed_suite = {"suites/speed.txt", embedded_speed_txt, embedded_speed_txt_end};
const struct embedded embedded_gpu_speed_suite = {"suites/speed_gpu.txt", embedded_speed_gpu_txt, embedded_speed_gpu_txt_end};
const struct embedded embedded_cpu_template = {"kernel_cpu", embedded_kernel_cpu_c, embedded_kernel_cpu_c_end};
const struct embedded embedded_cuda_scalar = {"cuda_fwd_scalar", embedded_cuda_fwd_scalar_cu, embedded_cuda_fwd_scalar_cu_end};
const struct embedded embedded_cuda_sm80 = {"kernel_cuda_sm80", embedded_kernel_cuda_sm80_cu, embedded_kernel_cuda_sm80_cu_end};
const struct embedded embedded_cuda_sm90 = {"kernel_cuda_sm90", embedded_kernel_cuda_sm90_cu, embedded_kernel_cuda_sm90_cu_end};

static bool write_file(const struct embedded *embedded, const char *folder)
{
    char *path = NULL, *slash = strrchr(embedded->name, '/');
    size_t size = (size_t)(embedded->end - embedded->data);
    if (slash && asprintf(&path, "%s/%.*s", folder, (int)(slash - embedded->name), embedded->name) > 0 && mkdir(path, 0700) != 0 &&
        errno != EEXIST) {
        free(path);
        return false;
    }
    free(path);
    FILE *file = asprintf(&path, "%s/%s", folder, embedded->name) < 0 ? NULL : fopen(path, "wb");
    bool written = file && fwrite(embedded->data, 1, size, file) == size;
    written = file && fclose(file) == 0 && written;
    free(path);
    return written;
}

bool embedded_write(const struct embedded *files, int count, const char *folder)
{
    for (int i = 0; i < count; i++)
        if (!write_file(&files[i], folder))
            return false;
    return true;
}
