/*
 * cuda_index.c - see cuda_index.h.
 */
#include "cuda_index.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_image.h"
#include "base/digest.h"
#include "base/report.h"

/* ---- writing ---------------------------------------------------------------------------------------------------------- */

json_t *cuda_index_head(const char *kernel, const struct cuda_manifest *manifest)
{
    char needs[64] = "";
    uint32_t options = (manifest->padding ? ATTEST_CUDA_PADS : 0u) | (manifest->packs ? ATTEST_CUDA_PACKS : 0u) |
                       (manifest->pdl ? ATTEST_CUDA_PDL : 0u) | (manifest->refuses_o32 ? ATTEST_CUDA_REFUSES_O32 : 0u) |
                       (manifest->refuses_dimv ? ATTEST_CUDA_REFUSES_DV : 0u);
    for (int arch = 0; arch < cuda_limits_count; arch++)
        if (manifest->archs >> arch & 1)
            snprintf(needs + strlen(needs), sizeof needs - strlen(needs), "%s%s", *needs ? "," : "", cuda_limits[arch].name);
    json_t *maps = json_array();
    for (int i = 0; i < manifest->map_count; i++)
        json_add(maps, json_pack("{s:s#, s:i}", "tensor", &manifest->maps[i].tensor, 1, "swizzle", manifest->maps[i].swizzle));
    return json_pack("{s:s, s:i, s:s, s:s, s:i, s:I, s:i, s:i, s:o}", "kernel", kernel, "abi", ATTEST_CUDA_ABI, "summary",
                     manifest->summary, "needs", needs, "dtypes", (int)manifest->dtypes, "refuses", (json_int_t)manifest->refuses,
                     "launch", (int)manifest->launch, "options", (int)options, "maps", maps);
}

json_t *cuda_index_image(const struct cuda_configuration *configuration, int order, const char *file, const char *sha256,
                         int64_t bytes)
{
    const struct cuda_limits *limits = &cuda_limits[configuration->arch];
    const int64_t *n = configuration->numbers;
    bool only = limits->name[strlen(limits->name) - 1] == 'a';
    json_t *rows = json_array(), *columns = json_array();
    for (int i = 0; i < ATTEST_CUDA_MAPS; i++) {
        json_add(rows, json_integer(configuration->map_rows[i]));
        json_add(columns, json_integer(configuration->map_columns[i]));
    }
    json_t *image = json_pack("{s:s, s:s, s:I, s:i, s:i, s:i}", "file", file, "sha256", sha256, "bytes", (json_int_t)bytes, "order",
                              order, "arch", limits->number, "kind", only ? ATTEST_CUBIN_ONLY : ATTEST_CUBIN);
    json_put(image, "split_keys", json_integer(n[CUDA_SPLIT_KEYS]));
    json_put(image, "partial", json_integer(n[CUDA_PARTIAL]));
    json_put(image, "align", json_integer(n[CUDA_ALIGN]));
    json_put(image, "rows_most", json_integer(n[CUDA_ROWS_MOST]));
    json_put(image, "tiles_most", json_integer(n[CUDA_TILES_MOST]));
    json_put(image, "cluster", json_integer(n[CUDA_CLUSTER]));
    if (n[CUDA_RATE])
        json_put(image, "rate", json_integer(n[CUDA_RATE]));
    json_put(image, "map_rows", rows);
    json_put(image, "map_columns", columns);
    return image;
}

/* ---- loading ---------------------------------------------------------------------------------------------------------- */

static uint32_t number(const json_t *object, const char *key)
{
    return (uint32_t)json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

/* The path of an image: beside the index, or where a store keeps what has its digest (see objects.c). To be freed. */
static char *image_path(const char *index, const json_t *image)
{
    const char *slash = strrchr(index, '/'), *digest = text(image, "sha256");
    int folder = slash ? (int)(slash - index) : 1;
    char *path = NULL;
    if (asprintf(&path, "%.*s/%s", folder, slash ? index : ".", text(image, "file")) >= 0 && access(path, R_OK) == 0)
        return path;
    free(path);
    if (strlen(digest) < 3 || asprintf(&path, "%.*s/../%.2s/%s", folder, slash ? index : ".", digest, digest + 2) < 0)
        return NULL;
    return path;
}

static void *read_all(const char *path, int64_t bytes)
{
    FILE *file = fopen(path, "rb");
    void *data = file && bytes > 0 ? malloc((size_t)bytes + 1) : NULL;
    bool read = data && fread(data, 1, (size_t)bytes + 1, file) == (size_t)bytes;
    if (file)
        fclose(file);
    if (!read) {
        free(data);
        data = NULL;
    }
    return data;
}

/* An image for the emulated device is a shared object, which is loaded here and has its facts in it; libattest gets its name. */
static bool load_emulated(const char *path, struct cuda_image *read, void **data, uint64_t *bytes, char *why, size_t why_size)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *facts = library ? dlsym(library, "attest_facts") : NULL;
    char *text = NULL;
    int length = facts ? asprintf(&text, "emulated image\n%s", path) : -1;
    if (length < 0) {
        snprintf(why, why_size, "%s", library ? "the image has no ATTEST_CUDA_FACTS" : dlerror());
        return false;
    }
    *read = (struct cuda_image){0};
    memcpy(&read->facts, facts, sizeof read->facts);
    *data = text;
    *bytes = (uint64_t)length + 1;
    return true;
}

static bool load_image(const char *index, const char *name, const json_t *entry, attest_cuda_image *image, char *why,
                       size_t why_size)
{
    char *path = image_path(index, entry), digest[DIGEST_TEXT] = "";
    struct cuda_image read;
    bool emulated = json_is_true(json_object_get(entry, "emulated"));
    uint64_t bytes = (uint64_t)json_integer_value(json_object_get(entry, "bytes"));
    void *data = NULL;
    if (emulated && !(path && load_emulated(path, &read, &data, &bytes, why, why_size))) {
        free(path);
        return false;
    }
    bool good = !emulated && path && digest_of_file(path, digest) && strcmp(digest, text(entry, "sha256")) == 0 &&
                cuda_image_read(path, &read, why, why_size);
    if (good)
        data = read_all(path, (int64_t)bytes);
    if (!data)
        snprintf(why, why_size, "the image %s is not there, or not what it was", name);
    free(path);
    if (!data)
        return false;
    *image = (attest_cuda_image){.arch = number(entry, "arch"),
                                 .kind = number(entry, "kind"),
                                 .facts = read.facts,
                                 .split_keys = number(entry, "split_keys"),
                                 .partial = number(entry, "partial"),
                                 .align = number(entry, "align"),
                                 .rows_most = number(entry, "rows_most"),
                                 .tiles_most = number(entry, "tiles_most"),
                                 .cluster = number(entry, "cluster"),
                                 .rate = number(entry, "rate"),
                                 .data = data,
                                 .bytes = bytes};
    for (size_t i = 0; i < ATTEST_CUDA_MAPS; i++) {
        image->map_rows[i] = (uint32_t)json_integer_value(json_array_get(json_object_get(entry, "map_rows"), i));
        image->map_columns[i] = (uint32_t)json_integer_value(json_array_get(json_object_get(entry, "map_columns"), i));
    }
    return true;
}

/* The entries of "images" by "order", with those that are for one GPU alone first. To be freed. */
static json_t **sort_images(const json_t *index, const char ***names)
{
    json_t *images = json_object_get(index, "images"), *entry;
    size_t count = json_object_size(images), used = 0;
    json_t **sorted = calloc(count + 1, sizeof *sorted);
    *names = calloc(count + 1, sizeof **names);
    for (int only = 1; only >= 0 && sorted && *names; only--)
        for (size_t order = 0; order < 4096 && used < count; order++) {
            const char *name;
            json_object_foreach(images, name, entry)
            {
                if (number(entry, "order") != order || (number(entry, "kind") == ATTEST_CUBIN_ONLY) != only)
                    continue;
                (*names)[used] = name;
                sorted[used++] = entry;
            }
        }
    return sorted;
}

bool cuda_index_load(const char *path, struct cuda_loaded *loaded, char *why, size_t why_size)
{
    json_error_t error;
    *loaded = (struct cuda_loaded){.index = json_load_file(path, 0, &error)};
    const json_t *index = loaded->index, *maps = json_object_get(index, "maps");
    size_t count = json_object_size(json_object_get(index, "images"));
    if (!index || !count) {
        snprintf(why, why_size, "%s is no index of CUDA images: %s", path, index ? "it names none" : error.text);
        cuda_index_free(loaded);
        return false;
    }
    const char **names = NULL;
    json_t **entries = sort_images(index, &names);
    loaded->images = calloc(count, sizeof *loaded->images);
    bool good = entries && names && loaded->images;
    if (!good)
        snprintf(why, why_size, "out of memory");
    for (size_t i = 0; i < count && good; i++) {
        good = entries[i] && load_image(path, names[i], entries[i], &loaded->images[i], why, why_size);
        loaded->kernel.image_count += good;
    }
    free(names);
    free(entries);
    snprintf(loaded->needs, sizeof loaded->needs, "%s", text(index, "needs"));
    loaded->kernel.abi = number(index, "abi");
    loaded->kernel.dtypes = number(index, "dtypes");
    loaded->kernel.refuses = (uint64_t)json_integer_value(json_object_get(index, "refuses"));
    loaded->kernel.name = text(index, "kernel");
    loaded->kernel.summary = text(index, "summary");
    loaded->kernel.launch = number(index, "launch");
    loaded->kernel.options = number(index, "options");
    loaded->kernel.images = loaded->images;
    for (size_t i = 0; i < json_array_size(maps) && i < ATTEST_CUDA_MAPS; i++) {
        loaded->kernel.map_tensor[i] = text(json_array_get(maps, i), "tensor")[0];
        loaded->kernel.map_swizzle[i] = number(json_array_get(maps, i), "swizzle");
        loaded->kernel.map_count++;
    }
    if (!good)
        cuda_index_free(loaded);
    return good;
}

void cuda_index_free(struct cuda_loaded *loaded)
{
    for (uint32_t i = 0; i < loaded->kernel.image_count; i++)
        free((void *)(uintptr_t)loaded->images[i].data);
    free(loaded->images);
    json_decref(loaded->index);
    *loaded = (struct cuda_loaded){0};
}
