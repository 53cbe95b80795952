/*
 * cuda_images.c - a program of the build: from the manifests of the library's CUDA kernels to their images, embedded.
 *
 *     cuda_images rules FOLDER SOURCE.cu ... > FOLDER/rules.mk     a rule of make for every image that the manifests promise
 *     cuda_images table FOLDER SOURCE.cu ... > FOLDER/images.c     the images, as bytes, and the table of each kernel
 *
 * Images are called FOLDER/cuda_fwd_sm80.f16.d64.sm_80.cubin, with .48x64 before the architecture where the manifest has more pairs
 * of tiles. Of sources for sm_80 there is also PTX (.compute_80.ptx), which the driver compiles for GPUs that are newer than the
 * images. What is embedded is each of them in a .fatbin, the toolkit's container: the driver takes it in their place, and it is a
 * fifth of the size.
 */
#include "build/cuda_flags.h"
#include "cuda/cuda_image.h"
#include "cuda/cuda_manifest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_IMAGES = 512 };

/* What the reader of manifests needs of the rest of the workbench. */
void json_put(json_t *object, const char *key, json_t *value);
void json_put(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* One source. */
struct source {
    const char *path;
    char stem[128]; /* cuda_fwd_sm80 */
    struct cuda_manifest manifest;
    struct cuda_configuration images[MOST_IMAGES];
    int count;
};

static void source_read(const char *path, struct source *source)
{
    char why[600];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    *source = (struct source){.path = path};
    snprintf(source->stem, sizeof source->stem, "%.*s", (int)strcspn(name, "."), name);
    if (!cuda_manifest_read(path, true, &source->manifest, why, sizeof why))
        die("%s", why);
    source->count = cuda_manifest_images(&source->manifest, 0, source->images, MOST_IMAGES, why, sizeof why);
    if (source->count < 0)
        die("%s", why);
}

static const char *arch_of(const struct cuda_configuration *image)
{
    return cuda_limits[image->arch].name;
}

/* PTX is made beside the images of sm_80, with the tiles that run when nobody asks. */
static bool has_ptx(const struct cuda_configuration *image)
{
    return strcmp(arch_of(image), "sm_80") == 0 && !image->tile;
}

static void image_path(const char *folder, const struct source *source, const struct cuda_configuration *image, bool ptx,
                       char *path, size_t size)
{
    char tile[32] = "";
    if (image->tile)
        snprintf(tile, sizeof tile, "%dx%d.", (int)image->numbers[CUDA_TILE_Q], (int)image->numbers[CUDA_TILE_KV]);
    snprintf(path, size, "%s/%s.%s.d%d.%s%s", folder, source->stem, cuda_dtype_name(image->dtype), image->dim, tile,
             ptx ? "compute_80.ptx" : arch_of(image));
    if (!ptx)
        snprintf(path + strlen(path), size - strlen(path), ".cubin");
}

/* ---- rules ----------------------------------------------------------------------------------------------------------------- */

/* The files that a source includes, and those that these include. One that is neither beside the file that includes it nor in
 * include/ is the toolkit's, and not listed. (The compiler can list them too, but reads each image's source twice to do so.) */
struct files {
    char paths[64][256];
    int count;
};

static void files_add(struct files *files, const char *path)
{
    const int most = sizeof files->paths / sizeof *files->paths;
    char line[1024], name[128];
    for (int i = 0; i < files->count; i++)
        if (strcmp(files->paths[i], path) == 0)
            return;
    if (files->count == most || strlen(path) >= sizeof files->paths[0])
        die("%s: a CUDA source may include %d files, with paths below %zu characters", path, most, sizeof files->paths[0]);
    strcpy(files->paths[files->count++], path);
    FILE *file = fopen(path, "r");
    if (!file)
        die("%s cannot be read", path);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, " # include %*1[<\"]%127[^>\"]", name) != 1)
            continue;
        const char *slash = strrchr(path, '/');
        char found[512];
        snprintf(found, sizeof found, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, name);
        if (access(found, R_OK) != 0)
            snprintf(found, sizeof found, "include/%s", name);
        if (access(found, R_OK) == 0)
            files_add(files, found);
    }
    fclose(file);
}

static void compile_write(const char *path, const struct files *from, const char *options, const char *kind)
{
    printf("%s:", path);
    for (int i = 0; i < from->count; i++)
        printf(" %s", from->paths[i]);
    printf(" tool/build/cuda_flags.h\n\t@echo \"  NVCC $(@F)\"\n"
           "\t$(Q)$(NVCC) %s -%s $< -o $@.part > $@.log 2>&1 || { cat $@.log; false; }\n\t$(Q)mv $@.part $@\n",
           options, kind);
}

static void fatbin_write(const char *path, const char *kind, const char *arch)
{
    printf("IMAGES += %s.fatbin\n%s.fatbin: %s\n\t$(Q)$(FATBINARY) -64 --compress-all --create=$@.part "
           "--image3=kind=%s,sm=%s,file=$< && mv $@.part $@\n\n",
           path, path, path, kind, arch);
}

/* Where there is to be PTX, the binary is made from it: that is what the compiler does on its way from source to binary. */
static void rule_write(const char *folder, const struct source *source, const struct cuda_configuration *image)
{
    const int64_t *n = image->numbers;
    const char *arch = arch_of(image) + strlen("sm_"), *flags = source->manifest.flags;
    char path[512], ptx[256], own[256], options[1024];
    image_path(folder, source, image, false, path, sizeof path);
    snprintf(own, sizeof own, CUDA_IMAGE_FLAGS, arch, arch, image->dtype, image->dim, (long long)n[CUDA_TILE_Q],
             (long long)n[CUDA_TILE_KV], (long long)n[CUDA_STAGES], (long long)n[CUDA_THREADS]);
    snprintf(options, sizeof options, "%s%s%s %s -I include", CUDA_COMMON_FLAGS, *flags ? " " : "", flags, own);
    struct files from = {.count = 0};
    files_add(&from, source->path);
    if (has_ptx(image)) {
        image_path(folder, source, image, true, ptx, sizeof ptx);
        compile_write(ptx, &from, options, "ptx");
        fatbin_write(ptx, "ptx", arch);
        from.count = 1;
        strcpy(from.paths[0], ptx);
    }
    compile_write(path, &from, options, "cubin");
    fatbin_write(path, "elf", arch);
}

static void rules(const char *folder, char **paths)
{
    static struct source source;
    puts("# Written by scripts/cuda_images.c from the manifests of the kernels.\nIMAGES :=\nimages:\n.PHONY: images\n"
         ".DELETE_ON_ERROR:");
    for (; *paths; paths++) {
        source_read(*paths, &source);
        for (int i = 0; i < source.count; i++)
            rule_write(folder, &source, &source.images[i]);
        cuda_manifest_free(&source.manifest);
    }
    puts("images: $(IMAGES)\n\t@:");
}

/* ---- table ----------------------------------------------------------------------------------------------------------------- */

/* So that the table is compiled again when an image changes. */
static unsigned long long digest_of_file(const char *path)
{
    unsigned long long digest = 0xcbf29ce484222325u;
    FILE *file = fopen(path, "rb");
    if (!file)
        die("%s is not there", path);
    for (int byte; (byte = getc(file)) != EOF;)
        digest = (digest ^ (unsigned char)byte) * 0x100000001b3u;
    fclose(file);
    return digest;
}

static void embed(const char *folder, const struct source *source, int index, bool ptx)
{
    char path[520];
    image_path(folder, source, &source->images[index], ptx, path, sizeof path);
    strcat(path, ".fatbin");
    printf("/* %016llx */\n__asm__(\".section .rodata\\n.balign 64\\n%s_%d%s:\\n.incbin \\\"%s\\\"\\n%s_%d%s_end:\\n.byte "
           "0\\n.previous\\n\");\n",
           digest_of_file(path), source->stem, index, ptx ? "p" : "", path, source->stem, index, ptx ? "p" : "");
    printf("extern const unsigned char %s_%d%s[] __attribute__((visibility(\"hidden\")));\n", source->stem, index, ptx ? "p" : "");
}

static long size_of_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        die("%s cannot be read", path);
    long size = ftell(file);
    fclose(file);
    return size;
}

static void image_write(const char *folder, const struct source *source, int index, bool ptx)
{
    const struct cuda_configuration *image = &source->images[index];
    const struct cuda_limits *limits = &cuda_limits[image->arch];
    const int64_t *n = image->numbers;
    char path[512], own[520], why[300];
    struct cuda_image read;
    image_path(folder, source, image, false, path, sizeof path);
    image_path(folder, source, image, ptx, own, 512);
    strcat(own, ".fatbin");
    if (!cuda_image_read(path, &read, why, sizeof why))
        die("%s: %s", path, why);
    const attest_cuda_facts *facts = &read.facts;
    if (!read.has_facts || facts->dim != (uint32_t)image->dim || facts->dtype != image->dtype)
        die("%s: the image does not say what it was compiled for; the source needs ATTEST_CUDA_FACTS", path);
    bool only = strchr(limits->name, 'a') != NULL;
    printf("    {%d, %s, {%u, %u, %u, %u, %u, %u, %u, %u, %u, 0}, %lld, %lld, %lld, %lld, %lld, %lld, %lld,\n     {",
           limits->number,
           ptx    ? "ATTEST_PTX"
           : only ? "ATTEST_CUBIN_ONLY"
                  : "ATTEST_CUBIN",
           facts->abi, facts->args_size, facts->dtype, facts->dim, facts->tile_q, facts->tile_kv, facts->stages, facts->threads,
           facts->dynamic_shared, (long long)n[CUDA_SPLIT_KEYS], (long long)n[CUDA_PARTIAL], (long long)n[CUDA_ALIGN],
           (long long)n[CUDA_ROWS_MOST], (long long)n[CUDA_TILES_MOST], (long long)n[CUDA_CLUSTER], (long long)n[CUDA_RATE]);
    for (int i = 0; i < ATTEST_CUDA_MAPS; i++)
        printf("%s%lld", i ? ", " : "", (long long)image->map_rows[i]);
    printf("}, {");
    for (int i = 0; i < ATTEST_CUDA_MAPS; i++)
        printf("%s%lld", i ? ", " : "", (long long)image->map_columns[i]);
    printf("}, %s_%d%s, %ld},\n", source->stem, index, ptx ? "p" : "", size_of_file(own));
}

static void string_write(const char *text)
{
    putchar('"');
    for (; *text; text++)
        printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    putchar('"');
}

static void kernel_write(const struct source *source)
{
    const struct cuda_manifest *m = &source->manifest;
    unsigned options = (m->padding ? ATTEST_CUDA_PADS : 0u) | (m->packs ? ATTEST_CUDA_PACKS : 0u) |
                       (m->pdl ? ATTEST_CUDA_PDL : 0u) | (m->refuses_o32 ? ATTEST_CUDA_REFUSES_O32 : 0u) |
                       (m->refuses_dimv ? ATTEST_CUDA_REFUSES_DV : 0u);
    printf("const attest_cuda_kernel %s = {%d, 0x%x, 0x%llx, \"%s\",\n    ", source->stem, ATTEST_CUDA_ABI, m->dtypes,
           (unsigned long long)m->refuses, source->stem);
    string_write(m->summary);
    printf(",\n    %d, %u, %d, sizeof %s_images / sizeof *%s_images, {", (int)m->launch, options, m->map_count, source->stem,
           source->stem);
    for (int i = 0; i < ATTEST_CUDA_MAPS; i++)
        printf("%s%d", i ? ", " : "", i < m->map_count ? m->maps[i].tensor : 0);
    printf("}, {");
    for (int i = 0; i < ATTEST_CUDA_MAPS; i++)
        printf("%s%d", i ? ", " : "", i < m->map_count ? m->maps[i].swizzle : 0);
    printf("}, %s_images};\nextern const char %s_needs[];\nconst char %s_needs[] = \"", source->stem, source->stem, source->stem);
    const char *comma = "";
    for (int arch = 0; arch < cuda_limits_count; arch++)
        if (m->archs >> arch & 1) {
            printf("%s%s", comma, cuda_limits[arch].name);
            comma = ",";
        }
    printf("\";\n\n");
}

/* Binaries come before PTX: the first image that does runs. */
static void table(const char *folder, char **paths)
{
    static struct source source;
    printf("/* Written by scripts/cuda_images.c: the images of the CUDA kernels and what their manifests say. */\n"
           "#include <attest_kernel_cuda.h>\n\n");
    for (; *paths; paths++) {
        source_read(*paths, &source);
        for (int pass = 0; pass < 2; pass++)
            for (int i = 0; i < source.count; i++)
                if (pass == 0 || has_ptx(&source.images[i]))
                    embed(folder, &source, i, pass == 1);
        printf("static const attest_cuda_image %s_images[] = {\n", source.stem);
        for (int pass = 0; pass < 2; pass++)
            for (int i = 0; i < source.count; i++)
                if (pass == 0 || has_ptx(&source.images[i]))
                    image_write(folder, &source, i, pass == 1);
        printf("};\nextern const attest_cuda_kernel %s;\n", source.stem);
        kernel_write(&source);
        cuda_manifest_free(&source.manifest);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4 || (strcmp(argv[1], "rules") != 0 && strcmp(argv[1], "table") != 0))
        die("usage: cuda_images rules|table FOLDER SOURCE.cu ...");
    (strcmp(argv[1], "rules") == 0 ? rules : table)(argv[2], argv + 3);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
