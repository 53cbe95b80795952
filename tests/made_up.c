/*
 * made_up.c - see made_up.h.
 */
#include "made_up.h"

#include <dlfcn.h>

struct fake_cuda *fake;
char arena[1 << 16] __attribute__((aligned(512)));
const char made_up_code[4][64] = {"image of sm_80", "image of sm_90", "image of sm_90a", "image, PTX"};

/* An image of one dtype and dim; the numbers that matter little are the same for all. */
static attest_cuda_image image_make(uint32_t arch, uint32_t kind, uint32_t dtype, uint32_t dim, uint32_t tile_q, uint32_t tile_kv)
{
    const char *data = kind == ATTEST_PTX          ? made_up_code[3]
                       : kind == ATTEST_CUBIN_ONLY ? made_up_code[2]
                       : arch >= 90                ? made_up_code[1]
                                                   : made_up_code[0];
    return (attest_cuda_image){
        .arch = arch,
        .kind = kind,
        .facts = {ATTEST_CUDA_ABI, sizeof(attest_cuda_args), dtype, dim, tile_q, tile_kv, 2, 128, 1000 * (tile_q + tile_kv), 0},
        .data = data,
        .bytes = sizeof made_up_code[0],
    };
}

struct made *kernel_make(uint32_t launch, uint32_t options)
{
    struct made *made = calloc(1, sizeof *made);
    static const struct {
        uint32_t arch, kind;
    } targets[] = {{80, ATTEST_CUBIN}, {90, ATTEST_CUBIN}, {80, ATTEST_PTX}};
    uint32_t count = 0;
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
        for (uint32_t dim = 64; dim <= 128; dim *= 2) {
            made->images[count++] = image_make(targets[t].arch, targets[t].kind, ATTEST_F16, dim, 32, 64);
            if (targets[t].kind == ATTEST_CUBIN)
                made->images[count++] = image_make(targets[t].arch, targets[t].kind, ATTEST_F16, dim, 48, 64);
        }
    made->kernel = (attest_cuda_kernel){.abi = ATTEST_CUDA_ABI,
                                        .dtypes = 1u << ATTEST_F16,
                                        .name = "made_up",
                                        .summary = "does nothing",
                                        .launch = launch,
                                        .options = options,
                                        .image_count = count,
                                        .images = made->images};
    for (uint32_t i = 0; i < count && launch == ATTEST_LAUNCH_SPLIT; i++) {
        made->images[i].split_keys = 256;
        made->images[i].partial = made->images[i].facts.dim + 4;
    }
    for (uint32_t i = 0; i < count && launch == ATTEST_LAUNCH_JOINED; i++)
        made->images[i].cluster = 16;
    made->kernel.refuses = launch == ATTEST_LAUNCH_JOINED ? ATTEST_INVARIANT : 0;
    return made;
}

attest_context *context_on(const char *device, const attest_cuda_kernel *kernel)
{
    attest_context *context = NULL;
    tap_check(attest_context_create_on(device, &context) == ATTEST_OK, "%s: %s", device, attest_context_detail(context));
    if (kernel)
        tap_check(attest_context_add_cuda_kernel(context, kernel) == ATTEST_OK, "%s", attest_context_detail(context));
    return context;
}

attest_problem problem_of(const char *line)
{
    attest_problem p = {0};
    char why[256] = "";
    tap_check(attest_problem_parse(line, &p, why, sizeof why) == ATTEST_OK, "%s: %s", line, why);
    return p;
}

attest_tensors tensors_of(void)
{
    attest_tensors t = {.size = sizeof t, .q = arena, .k = arena + 512, .v = arena + 1024};
    t.o = arena + (1 << 15);
    return t;
}

const struct fake_launch *launch_back(int n)
{
    return &fake->launch[(fake->launches - 1 - n) % FAKE_LAUNCHES];
}

void says(attest_context *context, const char *part)
{
    tap_check(strstr(attest_context_detail(context), part) != NULL, "'%s' does not say '%s'", attest_context_detail(context), part);
}

bool has_kernels(bool proven)
{
    attest_kernel_info info = {.size = sizeof info};
    for (size_t k = 0; k < attest_kernel_count(); k++)
        if (attest_kernel_get(k, &info) == ATTEST_OK && strcmp(info.backend, "cuda") == 0 && !(proven && info.candidate))
            return true;
    return false;
}

int made_up_main(int argc, char **argv, const struct tap_test *tests, size_t count)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    fake = driver ? dlsym(driver, "fake_cuda") : NULL;
    if (!fake) {
        printf("1..0 # SKIP the driver that is made up is not here: sh tests/cuda_backend.t brings it\n");
        return 0;
    }
    return tap_main(argc, argv, tests, count);
}
