/*
 * test_cuda_build.c - the build gate of CUDA candidates, with the compiler: the template passes, and kernels with one thing wrong
 * fail with the sentence that says what. Skipped where there is no nvcc.
 */
#include <sys/stat.h>

#include "cuda_helpers.h"
#include "base/digest.h"
#include "cuda/cuda_index.h"
#include "build/cuda_product.h"

static bool have_compiler(void)
{
    char *nvcc = cuda_tool_find("nvcc"), *lister = cuda_tool_find("cuobjdump");
    free(nvcc);
    free(lister);
    if (!nvcc || !lister)
        tap_skip(nvcc ? "cuobjdump is not here; install the CUDA toolkit to run this"
                      : "nvcc is not here; install the CUDA toolkit to run this");
    return nvcc && lister;
}

/* Runs the gate on a source; the sentence must say something. */
static void gate_on(const char *name, const char *source, enum verdict verdict, const char *says)
{
    struct proof proof;
    struct gate_result result;
    if (!tap_case("%s", name))
        return;
    proof_make(&proof, &result, write_text(name, source));
    cuda_gate_build(&proof, &result);
    tap_check(result.verdict == verdict, "%s, not %s: %s", verdict_name(result.verdict), verdict_name(verdict), result.sentence);
    contains(result.sentence, says);
    proof_drop(&proof, &result);
}

/* The digest of one image in the index that the gate wrote. */
static void image_digest(const struct proof *proof, char digest[80])
{
    json_t *index = json_load_file(proof->candidate.image, 0, NULL), *images = json_object_get(index, "images");
    const char *text = json_string_value(json_object_get(json_object_get(images, "f16 d64 sm_80"), "sha256"));
    snprintf(digest, 80, "%s", text ? text : "");
    json_decref(index);
}

static void build_template(void)
{
    struct proof proof;
    struct gate_result result;
    if (!have_compiler())
        return;
    proof_make(&proof, &result, "lib/cuda/kernels/cuda_fwd_scalar.cu");
    cuda_gate_build(&proof, &result);
    tap_check(result.verdict == VERDICT_PASS, "%s", result.sentence);
    tap_note("%s", result.sentence);
    json_t *rows = json_object_get(result.details, "resources"), *row;
    size_t i;
    bool on_89 = false, on_87 = false;
    tap_check(json_array_size(rows) == 5 * 3 * 4, "%zu rows", json_array_size(rows)); /* sm_87 is not promised, and listed */
    json_array_foreach(rows, i, row)
    {
        const char *arch = json_string_value(json_object_get(row, "arch"));
        json_t *measured = json_object_get(row, "measured"), *predicted = json_object_get(row, "predicted");
        json_int_t shared = json_integer_value(json_object_get(measured, "shared"));
        tap_check(shared > 0 && shared == json_integer_value(json_object_get(predicted, "shared")),
                  "shared memory is not as predicted");
        tap_check(json_integer_value(json_object_get(measured, "spill_stores")) == 0, "it spills");
        on_89 = on_89 || (strcmp(arch, "sm_89") == 0 && json_integer_value(json_object_get(row, "limit_shared")) == 101376 &&
                          json_is_true(json_object_get(row, "promised")));
        on_87 = on_87 || (strcmp(arch, "sm_87") == 0 && json_is_false(json_object_get(row, "promised")));
    }
    tap_check(on_89 && on_87, "sm_89 with its 99 KB, or sm_87, is not in the table");
    tap_check(json_object_size(json_object_get(proof.candidate.facts, "sources")) == 3, "sources: the kernel and two headers");
    contains(json_string_value(json_object_get(proof.candidate.facts, "compiler")), "nvcc release");
    tap_check(strlen(json_string_value(json_object_get(proof.candidate.facts, "image"))) == 64, "no digest of the images");
    tap_check(proof.facts.dtypes == (1u << ATTEST_F32 | 1u << ATTEST_F16 | 1u << ATTEST_BF16), "dtypes");
    json_t *table = json_object_get(result.details, "table");
    for (i = 0; i < 4; i++)
        tap_note("%s", json_string_value(json_array_get(table, i)));

    /* The gate's image is the library's: the one that is proven is the one that is shipped. */
    const char *build = getenv("BUILD");
    char path[256], shipped[80] = "", proven[80];
    snprintf(path, sizeof path, "%s/cuda/cuda_fwd_scalar.f16.d64.sm_80.cubin", build ? build : "build");
    image_digest(&proof, proven);
    if (digest_of_file(path, shipped))
        tap_check(strcmp(shipped, proven) == 0, "the gate builds another image than the library: %s and %s", proven, shipped);
    else
        tap_note("this build has no CUDA kernels to compare with");

    /* The same bytes from another folder, with another comment. */
    char *text = read_text("lib/cuda/kernels/cuda_fwd_scalar.cu"),
         *fewer = replaced(text, "dims      = 64 128 256 512", "dims      = 64");
    char *other = replaced(fewer, "sm_80 sm_86 sm_89 sm_90", "sm_80"), first[80], second[80];
    image_digest(&proof, first);
    struct proof again;
    struct gate_result its;
    proof_make(&again, &its, write_text("cuda_fwd_scalar.cu", other));
    cuda_gate_build(&again, &its);
    image_digest(&again, second);
    tap_check(strlen(first) == 64 && strcmp(first, second) == 0, "the images depend on the folder or on comments");
    tap_check(strcmp(json_string_value(json_object_get(proof.candidate.facts, "closure")),
                     json_string_value(json_object_get(again.candidate.facts, "closure"))) != 0,
              "the closure does not notice a change");
    free(text);
    free(fewer);
    free(other);
    proof_drop(&again, &its);
    proof_drop(&proof, &result);
}

/* One small kernel, and what becomes of it with one thing wrong. */
static const char small_kernel[] = "/*\n"
                                   " * attest-cuda: archs = sm_80 sm_89\n"
                                   " * attest-cuda: dtypes = f16\n"
                                   " * attest-cuda: dims = 64\n"
                                   " * attest-cuda: tile_q = 16\n"
                                   " * attest-cuda: tile_kv = 32\n"
                                   " * attest-cuda: threads = 128\n"
                                   " * attest-cuda: shared = 4 * tile_q * dim + 512\n"
                                   " * attest-cuda: registers = 64\n"
                                   " * attest-cuda: launch = tile\n"
                                   " */\n"
                                   "#include <attest_kernel_cuda.h>\n"
                                   "struct Tiles { float Q[ATTEST_TILE_Q][ATTEST_DIM]; };\n"
                                   "ATTEST_CUDA_FACTS(sizeof(Tiles));\n"
                                   "/* here */\n"
                                   "extern \"C\" __global__ void __launch_bounds__(ATTEST_THREADS)\n"
                                   "attest_kernel(const __grid_constant__ attest_cuda_args args)\n"
                                   "{\n"
                                   "    extern __shared__ float dynamic[];\n"
                                   "    __shared__ float fixed[128];\n"
                                   "    fixed[threadIdx.x] = ((const float *)args.q)[threadIdx.x];\n"
                                   "    dynamic[threadIdx.x] = fixed[threadIdx.x ^ 1];\n"
                                   "    __syncthreads();\n"
                                   "    ((float *)args.o)[threadIdx.x] = dynamic[threadIdx.x ^ 3];\n"
                                   "}\n";

static void build_bad(void)
{
    static const struct {
        const char *name, *from, *to;
        enum verdict verdict;
        const char *says;
    } cases[] = {
        {"good.cu", "here", "there", VERDICT_PASS, "1 image for sm_80,sm_89 without a warning: nothing spilled"},
        {"warning.cu", "{\n    extern", "{\n    int unused;\n    extern", VERDICT_FAIL,
         "f16 d64 sm_80: it does not compile without warnings"},
        {"syntax.cu", "((float *)args.o)", "((flaot *)args.o)", VERDICT_FAIL, "identifier \"flaot\" is undefined"},
        {"predicted.cu", "dim + 512", "dim + 256", VERDICT_FAIL,
         "the manifest predicts 4352 bytes of shared memory, and the image has 4608 (512 static, 4096 dynamic)"},
        {"registers.cu", "registers = 64", "registers = 4", VERDICT_FAIL, "registers, and the manifest allows 4"},
        {"state.cu", "/* here */", "__device__ float memory[4];", VERDICT_FAIL, "it has 16 bytes of __device__ variables (memory)"},
        {"facts.cu", "ATTEST_CUDA_FACTS(sizeof(Tiles));", "", VERDICT_FAIL, "it does not say what it was compiled for"},
        {"entry.cu", "attest_kernel(const", "my_kernel(const", VERDICT_FAIL, "it has no function attest_kernel"},
        {"second.cu", "/* here */",
         "extern \"C\" __global__ void other(const __grid_constant__ attest_cuda_args args) { *args.lse = 0; }", VERDICT_FAIL,
         "it has a kernel other that nobody launches"},
        {"parameters.cu", "attest_cuda_args args)", "attest_cuda_args args, int more)", VERDICT_FAIL,
         "has 380 bytes of parameters, not 376"},
        {"print.cu", "    __syncthreads();", "    __syncthreads(); printf(\"PASS\\n\");", VERDICT_FAIL, "it calls vprintf"},
        {"promise.cu", "launch = tile", "launch = tile\n * attest-cuda: blocks_per_sm = 17", VERDICT_FAIL,
         "f16 d64 sm_80: 16 blocks fit on an SM, and the manifest promises 17"},
        {"condition.cu", "launch = tile", "launch = tile\n * attest-cuda: tile_q [sm_89] = 32", VERDICT_FAIL,
         "f16 d64 sm_89: tile_q is 32 here and 16 for sm_80, and both run one image"},
        {"name.cu", "launch = tile", "launch = tile\n * attest-cuda: name = other", VERDICT_FAIL,
         "the manifest names the kernel other, and the file is"},
        {"clock.cu", "    __syncthreads();", "    __syncthreads(); dynamic[0] += (float)clock64();", VERDICT_FAIL,
         "SR_CLOCKLO reads a clock (clock, clock64); a kernel is a function of its arguments"},
        {"launch_number.cu", "    __syncthreads();",
         "    __syncthreads(); unsigned long long n; asm volatile(\"mov.u64 %0, %%gridid;\" : \"=l\"(n)); dynamic[0] += (float)n;",
         VERDICT_FAIL, "reads the number of the launch (%gridid)"},
        {"local.cu", "    __syncthreads();",
         "    __syncthreads(); asm volatile(\"st.local.b32 [%0], %1;\" ::\"r\"(args.batch), \"r\"(args.dim) : \"memory\");",
         VERDICT_FAIL, "writes local memory"},
        {"policy.cu", "    __syncthreads();",
         "    __syncthreads(); asm volatile(\"{.reg .b64 p; .reg .f32 x; createpolicy.fractional.L2::evict_last.b64 p, 1.0; "
         "ld.global.L2::cache_hint.f32 x, [%0], p; st.shared.f32 [%1], x;}\" ::\"l\"(args.q), \"r\"(0) : \"memory\");",
         VERDICT_FAIL, "has a cache policy of its own"},
        {"assembler.cu", "    __syncthreads();",
         "    __syncthreads(); asm volatile(\"{.global .align 4 .b32 kept; .reg .b32 r; ld.global.b32 r, [kept]; add.u32 r, r, 1; "
         "st.global.b32 [kept], r;}\" ::: \"memory\");",
         VERDICT_FAIL, "text of an asm statement has .global"},
        {"pointer.cu", "    __syncthreads();", "    __syncthreads(); ((void (*)(void))args.k)();", VERDICT_FAIL,
         "calls through a pointer"},
        {"silenced.cu", "/* here */", "_Pragma(\"nv_diag_suppress 177\") static __device__ int nobody() { return 1; }",
         VERDICT_FAIL, "silenced.cu:15: #pragma nv_diag_suppress 177"},
        {"outside.cu", "/* here */", "#include \"/dev/null\"", VERDICT_FAIL, "it includes /dev/null"},
        {"capped.cu", "launch = tile", "launch = tile\n * attest-cuda: flags = -maxrregcount=32", VERDICT_FAIL,
         "write __launch_bounds__ in the source"},
        {"defined.cu", "launch = tile", "launch = tile\n * attest-cuda: flags = -DATTEST_DIM=32", VERDICT_FAIL,
         "defines a name that is not the kernel's"},
        {"pretends.cu", "ATTEST_CUDA_FACTS(sizeof(Tiles));",
         "extern \"C\" __constant__ attest_cuda_facts attest_facts = {ATTEST_CUDA_ABI, sizeof(attest_cuda_args), ATTEST_DTYPE, "
         "128, 16, 32, "
         "1, 128, sizeof(Tiles), 0};",
         VERDICT_FAIL, "the image was compiled for dim 128, and the manifest says 64"},
        {"bounds.cu", "__launch_bounds__(ATTEST_THREADS)", "__launch_bounds__(64)", VERDICT_FAIL,
         "attest_kernel was compiled for at most 64 threads (__launch_bounds__), and the manifest says 128"},
        {"key.cu", "tile_kv", "tile_kvs", VERDICT_FAIL, "key.cu:6: 'tile_kvs' is no key of a manifest; did you mean tile_kv?"},
    };
    if (!have_compiler())
        return;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        char *source = replaced(small_kernel, cases[i].from, cases[i].to);
        if (strcmp(cases[i].name, "print.cu") == 0) {
            char *with_header = replaced(source, "#include <attest", "#include <stdio.h>\n#include <attest");
            free(source);
            source = with_header;
        }
        gate_on(cases[i].name, source, cases[i].verdict, cases[i].says);
        free(source);
    }

    /* 120 KB of shared memory: sm_80 has them, sm_89 does not. */
    char *large = replaced(small_kernel, "float Q[ATTEST_TILE_Q][ATTEST_DIM]; };", "float Q[ATTEST_TILE_Q * 30][ATTEST_DIM]; };");
    char *both = replaced(large, "4 * tile_q * dim", "120 * tile_q * dim"), *one = replaced(both, "sm_80 sm_89", "sm_80");
    gate_on("large.cu", both, VERDICT_FAIL,
            "f16 d64 sm_89: a block needs 123392 bytes of shared memory, and sm_89 has 101376 (99 KB of the SM's 100 KB)");
    struct proof proof;
    struct gate_result result;
    proof_make(&proof, &result, write_text("large.cu", one));
    cuda_gate_build(&proof, &result);
    tap_check(result.verdict == VERDICT_PASS, "it fits where it is promised: %s", result.sentence);
    char *table = json_dumps(json_object_get(result.details, "table"), 0);
    contains(table, "refused there");
    free(table);
    proof_drop(&proof, &result);
    free(large);
    free(both);
    free(one);

    char *body = replaced(small_kernel, "__launch_bounds__(ATTEST_THREADS)", "__launch_bounds__(1024, 2)");
    char *spill =
        replaced(body, "    __syncthreads();\n",
                 "    float a[64];\n#pragma unroll\n    for (int i = 0; i < 64; i++)\n        a[i] = fixed[i ^ threadIdx.x];\n"
                 "    __syncthreads();\n#pragma unroll\n    for (int i = 0; i < 64; i++)\n#pragma unroll\n"
                 "        for (int j = 0; j < 64; j += 5)\n            a[i] += a[(i * 7 + j) % 64] * fixed[i + j];\n"
                 "#pragma unroll\n    for (int i = 0; i < 64; i++)\n        fixed[i ^ threadIdx.x] = a[i];\n");
    gate_on("spill.cu", spill, VERDICT_FAIL, "f16 d64 sm_80: attest_kernel spills registers:");
    free(body);
    free(spill);
}

/* A cubin and a ptx with a manifest beside them. */
static void build_images(void)
{
    static const char manifest_text[] = "archs = sm_80 sm_89\ndtypes = f16\ndims = 64\ntile_q = 16\ntile_kv = 32\nthreads = 128\n"
                                        "shared = 4 * tile_q * dim + 512\nregisters = 64\nlaunch = tile\n";
    struct cuda_manifest manifest;
    struct cuda_configuration configuration;
    struct proof proof;
    struct gate_result result;
    char why[600], image[160], log[4096], command[700], *nvcc = cuda_tool_find("nvcc");
    if (!have_compiler())
        return;
    tap_check(parse(manifest_text, &manifest, why, sizeof why), "%s", why);
    tap_check(cuda_configure(&manifest, cuda_arch_find("sm_80"), ATTEST_F16, 64, NULL, &configuration, why, sizeof why), "%s", why);
    cuda_manifest_free(&manifest);
    write_text("built.manifest", manifest_text);
    snprintf(image, sizeof image, "%s/built.cubin", folder);
    tap_check(cuda_compile(nvcc, write_text("built.cu", small_kernel), "", "include", &configuration, image, NULL, 60, log,
                           sizeof log) == 0,
              "%s", log);
    proof_make(&proof, &result, image);
    cuda_gate_build(&proof, &result);
    tap_check(result.verdict == VERDICT_PASS, "%s", result.sentence);
    proof_drop(&proof, &result);

    struct cuda_image read;
    tap_check(cuda_image_read(image, &read, why, sizeof why) && read.arch == 80 && read.entry_count == 1 && read.has_facts &&
                  read.facts.dynamic_shared == 4096 && read.entries[0].shared == 512 && read.entries[0].parameters == 376,
              "the image is read wrongly");

    snprintf(command, sizeof command,
             "%s -ptx -arch=compute_80 -Iinclude -DATTEST_DTYPE=2 -DATTEST_DIM=64 -DATTEST_TILE_Q=16 -DATTEST_TILE_KV=32 "
             "-DATTEST_STAGES=1 -DATTEST_THREADS=128 %s/built.cu -o %s/built.ptx",
             nvcc, folder, folder);
    tap_check(system(command) == 0, "%s", command);
    snprintf(image, sizeof image, "%s/built.ptx", folder);
    proof_make(&proof, &result, image);
    cuda_gate_build(&proof, &result);
    tap_check(result.verdict == VERDICT_PASS, "%s", result.sentence);
    proof_drop(&proof, &result);

    char *more = replaced(manifest_text, "dtypes = f16", "dtypes = f16 bf16");
    write_text("built.manifest", more);
    proof_make(&proof, &result, image);
    cuda_gate_build(&proof, &result);
    tap_check(result.verdict == VERDICT_FAIL, "%s", result.sentence);
    contains(result.sentence, "the manifest promises 2 images");
    proof_drop(&proof, &result);
    free(more);

    char *other = replaced(manifest_text, "tile_kv = 32", "tile_kv = 64");
    write_text("built.manifest", other);
    proof_make(&proof, &result, image);
    cuda_gate_build(&proof, &result);
    contains(result.sentence, "the image was compiled for tile_kv 32, and the manifest says 64");
    proof_drop(&proof, &result);
    free(other);

    /* An image for 8.0 that is said to be one for 9.0. */
    snprintf(image, sizeof image, "%s/built.cubin", folder);
    other = replaced(manifest_text, "archs = sm_80 sm_89", "archs = sm_90");
    write_text("built.manifest", other);
    proof_make(&proof, &result, image);
    cuda_gate_build(&proof, &result);
    tap_check(result.verdict == VERDICT_FAIL, "%s", result.sentence);
    contains(result.sentence, "the image was compiled for architecture 80, and the manifest says 90");
    proof_drop(&proof, &result);
    free(other);

    /* The same rules for PTX that was written elsewhere. */
    write_text("built.manifest", manifest_text);
    snprintf(image, sizeof image, "%s/built.ptx", folder);
    char *ptx = read_text(image),
         *timed = replaced(ptx, "ret;", "mov.u64 %rd1, %globaltimer;\n st.global.u64 [%rd1], %rd1;\n ret;");
    write_text("built.ptx", timed);
    proof_make(&proof, &result, image);
    cuda_gate_build(&proof, &result);
    tap_check(result.verdict == VERDICT_FAIL, "%s", result.sentence);
    contains(result.sentence, "reads a clock (globaltimer)");
    proof_drop(&proof, &result);
    free(ptx);
    free(timed);

    unlink(write_text("built.manifest", ""));
    proof_make(&proof, &result, image);
    cuda_gate_build(&proof, &result);
    tap_check(result.verdict == VERDICT_FAIL, "%s", result.sentence);
    contains(result.sentence, "built.manifest cannot be read");
    proof_drop(&proof, &result);
    free(nvcc);
}

/* Bytes that are no image, and images with bytes changed, are refused or read, and nothing else. */
static void image_random(void)
{
    char why[200], path[160], log[4096], *nvcc = cuda_tool_find("nvcc");
    struct cuda_image image;
    tap_check(!cuda_image_parse("ELF", 3, &image, why, sizeof why), "three bytes are no image");
    contains(why, "it is no cubin");
    tap_check(!cuda_image_read("/proc/self/exe", &image, why, sizeof why), "this program is no image");
    contains(why, "an ELF file for machine");
    if (nvcc) {
        struct cuda_configuration configuration = {.arch = cuda_arch_find("sm_90"), .dtype = ATTEST_F16, .dim = 64};
        configuration.numbers[CUDA_TILE_Q] = 16, configuration.numbers[CUDA_TILE_KV] = 32;
        configuration.numbers[CUDA_STAGES] = 1, configuration.numbers[CUDA_THREADS] = 128;
        snprintf(path, sizeof path, "%s/changed.cubin", folder);
        tap_check(cuda_compile(nvcc, write_text("changed.cu", small_kernel), "", "include", &configuration, path, NULL, 60, log,
                               sizeof log) == 0,
                  "%s", log);
        FILE *file = fopen(path, "rb");
        unsigned char *bytes = malloc(1 << 16), *changed = malloc(1 << 16);
        size_t size = file ? fread(bytes, 1, 1 << 16, file) : 0;
        struct drawing drawing = {0};
        tap_check(cuda_image_parse(bytes, size, &image, why, sizeof why) && image.entries[0].shared == 512,
                  "sm_90 is read wrongly");
        for (int n = 0; n < tap_amount(500, 5000, 200000); n++) {
            memcpy(changed, bytes, size);
            for (uint64_t changes = 1 + draw(&drawing) % 8; changes; changes--)
                changed[draw(&drawing) % size] = (unsigned char)draw(&drawing);
            cuda_image_parse(changed, draw(&drawing) % 4 ? size : draw(&drawing) % size, &image, why, sizeof why);
            tap_check(image.entry_count <= CUDA_MOST_ENTRIES, "too many entries");
        }
        if (file)
            fclose(file);
        free(bytes);
        free(changed);
    }
    free(nvcc);
}

/* Two pairs of tiles, which workers get as the build gate writes them down. */
static void build_tiles(void)
{
    struct proof proof;
    struct gate_result result;
    struct cuda_loaded loaded = {0};
    char why[600], *tiles = replaced(small_kernel, "tile_kv = 32\n", "tile_kv = 32\n * attest-cuda: tiles [d64] = 32x16\n"),
                   *text = replaced(tiles, "tile_kv = 32\n", "tile_kv = 32\n * attest-cuda: rate = 3 * tile_kv + 4\n");
    if (have_compiler()) {
        proof_make(&proof, &result, write_text("pairs.cu", text));
        cuda_gate_build(&proof, &result);
        tap_check(result.verdict == VERDICT_PASS, "%s", result.sentence);
        tap_check(cuda_index_load(proof.candidate.image, &loaded, why, sizeof why), "%s", why);
        tap_check(loaded.kernel.image_count == 2 && loaded.images[0].facts.tile_q == 16 && loaded.images[0].rate == 100 &&
                      loaded.images[1].facts.tile_q == 32 && loaded.images[1].facts.tile_kv == 16 && loaded.images[1].rate == 52,
                  "the pairs are loaded wrongly");
        cuda_index_free(&loaded);
        proof_drop(&proof, &result);
    }
    free(tiles);
    free(text);
}

/* No compiler, one that hangs, one that dies. */
static void build_without(void)
{
    struct proof proof;
    struct gate_result result;
    struct cuda_configuration configuration = {.arch = 0, .dtype = ATTEST_F16, .dim = 64};
    char log[256], tool[160];
    setenv("ATTEST_NVCC", "/no/such/nvcc", 1);
    proof_make(&proof, &result, write_text("good.cu", small_kernel));
    cuda_gate_build(&proof, &result);
    tap_check(result.verdict == VERDICT_INCONCLUSIVE, "%s", result.sentence);
    contains(result.sentence, "/no/such/nvcc could not be run; install the CUDA toolkit, or set ATTEST_NVCC");
    proof_drop(&proof, &result);

    snprintf(tool, sizeof tool, "%s", write_text("dying", "#!/bin/sh\nkill -SEGV $$\n"));
    chmod(tool, 0755);
    setenv("ATTEST_NVCC", tool, 1);
    proof_make(&proof, &result, write_text("good.cu", small_kernel));
    cuda_gate_build(&proof, &result);
    tap_check(result.verdict == VERDICT_FAIL, "%s", result.sentence);
    contains(result.sentence, "the compiler died of signal 11");
    proof_drop(&proof, &result);
    unsetenv("ATTEST_NVCC");

    snprintf(tool, sizeof tool, "%s", write_text("hanging", "#!/bin/sh\nsleep 60\n"));
    chmod(tool, 0755);
    tap_check(cuda_compile(tool, "x.cu", "", "include", &configuration, "x", NULL, 0.3, log, sizeof log) == 124,
              "a compiler that hangs is waited for");
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"build_template", build_template}, {"build_bad", build_bad},       {"build_images", build_images},
        {"build_tiles", build_tiles},       {"image_random", image_random}, {"build_without", build_without},
    };
    return make_folder() ? tap_main(argc, argv, tests, COUNT_OF(tests)) : 1;
}
