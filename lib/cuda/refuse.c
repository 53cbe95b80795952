/*
 * refuse.c - whether a CUDA kernel takes a problem on a GPU, and with which of its images; and whether its table is one at all.
 */
#include "device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- tables ---------------------------------------------------------------------------------------------------------------- */

static bool is_fatbin(const attest_cuda_image *image)
{
    uint32_t magic = 0;
    memcpy(&magic, image->data, image->bytes < sizeof magic ? (size_t)image->bytes : sizeof magic);
    return magic == 0xba55ed50u;
}

static const char *image_fault(const attest_cuda_kernel *kernel, const attest_cuda_image *image)
{
    const attest_cuda_facts *facts = &image->facts;
    bool split = kernel->launch == ATTEST_LAUNCH_SPLIT;
    if (!image->data || !image->bytes || image->kind < ATTEST_CUBIN || image->kind > ATTEST_PTX)
        return "has no data, or is of no known kind";
    if (image->kind == ATTEST_PTX && !is_fatbin(image) && ((const char *)image->data)[image->bytes - 1])
        return "is PTX that does not end in a zero byte";
    if (facts->abi != ATTEST_CUDA_ABI || facts->args_size != sizeof(attest_cuda_args))
        return "was compiled for another version of attest_kernel_cuda.h";
    if (facts->dtype < ATTEST_F32 || facts->dtype > ATTEST_BF16 || !(kernel->dtypes >> facts->dtype & 1))
        return "is for a dtype that the kernel does not take";
    if (!facts->dim || facts->dim > DIM_MAX || !facts->tile_q || !facts->tile_kv || facts->tile_q > 1024 || facts->tile_kv > 1024)
        return "has a dim or tiles that cannot be";
    if (!facts->threads || facts->threads % 32 || facts->threads > 1024 || facts->dynamic_shared > 1 << 20)
        return "has a number of threads or of bytes of shared memory that cannot be";
    if (split ? !image->split_keys || image->split_keys % facts->tile_kv || image->split_keys >= ATTEST_CUDA_SIZES ||
                    !image->partial || image->partial > 1 << 16
              : image->split_keys || image->partial)
        return "has split_keys and partial that do not go with the kernel's launch";
    if (image->align & (image->align - 1) || image->align > 128 || (kernel->map_count && image->align < 16))
        return "has an align that cannot be";
    if (image->cluster & (image->cluster - 1) ||
        image->cluster > (kernel->launch == ATTEST_LAUNCH_JOINED ? CLUSTER_MOST : CLUSTER_PORTABLE) ||
        (image->cluster > 1 && !is_in_three_dimensions(kernel)))
        return "has a cluster that cannot be";
    for (uint32_t i = 0; i < kernel->map_count; i++)
        if (!image->map_rows[i] || image->map_rows[i] > 256 || !image->map_columns[i] || image->map_columns[i] > 256)
            return "has a map of more than 256 rows or columns, or of none";
    return NULL;
}

attest_status cuda_kernel_check(const attest_cuda_kernel *kernel, struct text why)
{
    if (kernel->launch < ATTEST_LAUNCH_TILE || kernel->launch > ATTEST_LAUNCH_JOINED)
        return fail(why, ATTEST_ERROR_ARGUMENT,
                    "kernel.launch is %u; it must be ATTEST_LAUNCH_TILE, _PERSISTENT, _SPLIT, _GRID or _JOINED", kernel->launch);
    if (kernel->launch == ATTEST_LAUNCH_JOINED && !(kernel->refuses & ATTEST_INVARIANT))
        return fail(why, ATTEST_ERROR_ARGUMENT,
                    "kernel.refuses must have ATTEST_INVARIANT: with ATTEST_LAUNCH_JOINED bits depend on the batch");
    if (kernel->map_count > ATTEST_CUDA_MAPS)
        return fail(why, ATTEST_ERROR_ARGUMENT, "kernel.map_count is %u; it must be 0 to %d", kernel->map_count, ATTEST_CUDA_MAPS);
    for (uint32_t i = 0; i < kernel->map_count; i++) {
        uint32_t swizzle = kernel->map_swizzle[i];
        if (!kernel->map_tensor[i] || !strchr("qkvo", kernel->map_tensor[i]) || (swizzle & (swizzle - 1)) || swizzle > 128 ||
            (swizzle && swizzle < 32))
            return fail(why, ATTEST_ERROR_ARGUMENT, "kernel.map_tensor must be q, k, v or o, and map_swizzle 0, 32, 64 or 128");
    }
    if (!kernel->image_count || !kernel->images)
        return fail(why, ATTEST_ERROR_ARGUMENT, "kernel.images is empty");
    for (uint32_t i = 0; i < kernel->image_count; i++) {
        const char *fault = image_fault(kernel, &kernel->images[i]);
        if (fault)
            return fail(why, ATTEST_ERROR_ARGUMENT, "kernel.images[%u] %s", i, fault);
    }
    return ATTEST_OK;
}

/* ---- images ---------------------------------------------------------------------------------------------------------------- */

/* A binary runs on later GPUs of its major version, PTX on all later ones. */
static bool runs_on(const attest_cuda_image *image, uint32_t compute)
{
    if (image->kind == ATTEST_CUBIN_ONLY)
        return image->arch == compute;
    return image->arch <= compute && (image->kind == ATTEST_PTX || image->arch / 10 == compute / 10);
}

int gpu_usable(void)
{
    attest_device_info info;
    for (int index = 0; gpu_info(index, &info, (struct text){0}) == ATTEST_OK; index++)
        for (int k = 0; k < cuda_kernel_count; k++)
            for (uint32_t i = 0; i < cuda_kernels[k].cuda->image_count && !cuda_kernels[k].candidate; i++)
                if (runs_on(&cuda_kernels[k].cuda->images[i], info.compute))
                    return index;
    return -1;
}

static bool of_dim(const attest_cuda_kernel *kernel, const attest_cuda_image *image, const attest_problem *p)
{
    int64_t wanted = p->dim > p->dim_v ? p->dim : p->dim_v;
    return kernel->options & ATTEST_CUDA_PADS ? image->facts.dim >= wanted : image->facts.dim == wanted;
}

static bool of_tile(const attest_cuda_image *image, struct tile_wish wish)
{
    return !wish.q || (image->facts.tile_q == wish.q && image->facts.tile_kv == wish.kv);
}

/* Why none of the images does: the first of its conditions that no image meets. */
static attest_status no_image(const struct gpu *gpu, const attest_cuda_kernel *kernel, struct tile_wish wish,
                              const attest_problem *p, struct text why)
{
    bool here = false, of_this_dim = false, of_this_tile = false;
    uint32_t first_arch = 0, shared = 0;
    char dims[96] = "", tiles[160] = "";
    for (uint32_t i = 0; i < kernel->image_count; i++) {
        const attest_cuda_image *image = &kernel->images[i];
        char word[32];
        if (image->facts.dtype != p->dtype)
            continue;
        first_arch = !first_arch || image->arch < first_arch ? image->arch : first_arch;
        if (!runs_on(image, gpu->info.compute))
            continue;
        here = true;
        snprintf(word, sizeof word, " %u", image->facts.dim);
        if (!strstr(dims, word) && strlen(dims) + strlen(word) < sizeof dims)
            strcat(dims, word);
        if (!of_dim(kernel, image, p))
            continue;
        of_this_dim = true;
        snprintf(word, sizeof word, " %ux%u", image->facts.tile_q, image->facts.tile_kv);
        if (!strstr(tiles, word) && strlen(tiles) + strlen(word) < sizeof tiles)
            strcat(tiles, word);
        if (!of_tile(image, wish))
            continue;
        of_this_tile = true;
        shared = image->facts.dynamic_shared;
    }
    if (!here)
        return fail(why, ATTEST_ERROR_UNAVAILABLE, "it has no image for compute capability %u.%u of %s; the first is for %u.%u",
                    gpu->info.compute / 10, gpu->info.compute % 10, gpu->info.model, first_arch / 10, first_arch % 10);
    if (!of_this_dim && kernel->options & ATTEST_CUDA_PADS)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "dim %lld is beyond%s", (long long)(p->dim > p->dim_v ? p->dim : p->dim_v),
                    strrchr(dims, ' '));
    if (!of_this_dim)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "dim %lld is none of%s", (long long)p->dim, dims);
    if (!of_this_tile)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it has no tiles of %ux%u here; it has%s", wish.q, wish.kv, tiles);
    return fail(why, ATTEST_ERROR_UNAVAILABLE, "a block needs %u bytes of shared memory, and %s has %u", shared, gpu->info.model,
                gpu->info.shared_block);
}

/* The first image of the smallest dim that does: it has the tiles that were asked for, or else tile_q x tile_kv. */
static const attest_cuda_image *choose_image(const struct gpu *gpu, const attest_cuda_kernel *kernel, struct tile_wish wish,
                                             const attest_problem *p)
{
    const attest_cuda_image *best = NULL;
    for (uint32_t i = 0; i < kernel->image_count; i++) {
        const attest_cuda_image *image = &kernel->images[i];
        if (image->facts.dtype == p->dtype && runs_on(image, gpu->info.compute) && of_dim(kernel, image, p) &&
            of_tile(image, wish) && image->facts.dynamic_shared <= gpu->info.shared_block &&
            (!best || image->facts.dim < best->facts.dim))
            best = image;
    }
    return best;
}

/* ---- problems -------------------------------------------------------------------------------------------------------------- */

/* Version 1 of the interface has no row offsets, first keys, row counts, masks and slopes of each sequence. */
static attest_status flags_refusal(uint64_t refuses, const attest_problem *p, struct text why)
{
    const uint64_t unknown = ATTEST_ROW_OFFSETS | ATTEST_KV_STARTS | ATTEST_Q_LENGTHS | ATTEST_MASK,
                   refused = p->flags & (refuses | unknown);
    if (refused)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it does not take %s", flag_title(refused));
    if (p->stride_alibi_slopes)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it does not take slopes of each sequence (stride_alibi_slopes is not 0)");
    return ATTEST_OK;
}

/* Blocks in the second and third dimension of a grid. */
enum { GRID_MOST = 65535 };

static attest_status check_sizes(const attest_cuda_kernel *kernel, const attest_problem *p, int64_t pack,
                                 const attest_cuda_image *image, struct text why)
{
    const struct {
        const char *name;
        int64_t size;
    } sizes[] = {
        {"batch", p->batch},         {"heads_q", p->heads_q},       {"seq_q", p->seq_q},
        {"seq_kv", p->seq_kv},       {"total_q", p->total_q},       {"total_kv", p->total_kv},
        {"page_size", p->page_size}, {"page_count", p->page_count}, {"seq_q times the query heads of a KV head", p->seq_q * pack}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].size >= ATTEST_CUDA_SIZES)
            return fail(why, ATTEST_ERROR_UNSUPPORTED, "sizes must be below 2^30, and %s is %lld", sizes[i].name,
                        (long long)sizes[i].size);
    int64_t tiles = (p->seq_q * pack + image->facts.tile_q - 1) / image->facts.tile_q, blocks;
    int64_t pieces = image->split_keys && has(p, ATTEST_INVARIANT) ? p->seq_kv / image->split_keys + 1 : 1;
    if (__builtin_mul_overflow(p->batch * (p->heads_q / pack), tiles * pieces, &blocks) || blocks > INT32_MAX)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it would have more than 2^31 blocks");
    if (is_in_three_dimensions(kernel) && (p->batch > GRID_MOST || p->heads_q / pack > GRID_MOST))
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it takes at most %d sequences and heads", GRID_MOST);
    if (image->tiles_most && has(p, ATTEST_INVARIANT))
        return fail(why, ATTEST_ERROR_UNSUPPORTED,
                    "it takes problems by their number of tiles, which depends on the batch, and bits must not");
    if (image->tiles_most && blocks > image->tiles_most)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it is for at most %u tiles, and there are %lld", image->tiles_most,
                    (long long)blocks);
    return ATTEST_OK;
}

/* Strides that are multiples of `align` bytes, and that tensor maps can have, where the kernel uses them. */
static attest_status check_strides(const attest_cuda_kernel *kernel, const attest_problem *p, uint32_t align, struct text why)
{
    for (int t = 0; t < TENSORS; t++) {
        if (!tensor_has_columns(t))
            continue;
        char letter = tensor_rows[t].word[0], name = (char)(letter - 'a' + 'A');
        bool mapped = memchr(kernel->map_tensor, letter, kernel->map_count) != NULL;
        for (int i = 0; i < tensor_rows[t].stride_count; i++) {
            int64_t bytes = tensor_strides(p, t)[i] * (int64_t)dtype_size(tensor_dtype(p, t));
            if (align && bytes % align)
                return fail(why, ATTEST_ERROR_UNSUPPORTED, "the strides of %c must be multiples of %u bytes", name, align);
            if (mapped && (bytes < 0 || bytes >= INT64_C(1) << 40))
                return fail(why, ATTEST_ERROR_UNSUPPORTED, "the strides of %c must be from 0 to 2^40 bytes", name);
        }
    }
    return ATTEST_OK;
}

/* Blocks of keys come in boxes that lie in one page each, and whose rows are whole repeats of the swizzle. */
static attest_status check_maps(const struct gpu *gpu, const attest_cuda_kernel *kernel, const attest_cuda_image *image,
                                const attest_problem *p, struct text why)
{
    enum { SWIZZLE_ROWS = 8 };
    if (kernel->map_count && !gpu->driver->map_encode)
        return fail(why, ATTEST_ERROR_UNAVAILABLE, "it needs tensor maps, and the NVIDIA driver is too old to make them");
    if (kernel->launch == ATTEST_LAUNCH_JOINED && (!gpu->driver->launch_with || !gpu->driver->clusters_at_once))
        return fail(why, ATTEST_ERROR_UNAVAILABLE, "it needs clusters, and the NVIDIA driver is too old to launch them");
    for (uint32_t i = 0; i < kernel->map_count && has(p, ATTEST_PAGED); i++) {
        int64_t rows = image->map_rows[i], page = p->page_size;
        if (strchr("kv", kernel->map_tensor[i]) && ((page % rows && rows % page) || page % SWIZZLE_ROWS))
            return fail(why, ATTEST_ERROR_UNSUPPORTED,
                        "its blocks of %lld keys do not go with pages of %lld: one must be a multiple of the other, and of %d",
                        (long long)rows, (long long)page, SWIZZLE_ROWS);
    }
    return ATTEST_OK;
}

/* Whether an image that the GPU can run takes the problem. */
static attest_status check_image(const struct gpu *gpu, const attest_cuda_kernel *kernel, const attest_cuda_image *image,
                                 const attest_problem *p, struct text why)
{
    int64_t pack = cuda_pack(kernel, image, p);
    TRY(check_sizes(kernel, p, pack, image, why));
    if (image->rows_most && p->seq_q * pack > image->rows_most)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it is for at most %u rows of %s, and there are %lld", image->rows_most,
                    pack > 1 ? "a KV head" : "a head", (long long)(p->seq_q * pack));
    TRY(check_strides(kernel, p, image->align, why));
    return check_maps(gpu, kernel, image, p, why);
}

/* ---- the choice of tiles ----------------------------------------------------------------------------------------------------- */

/* How a slot is cut: rows of its query heads, which see keys from `left` before their place to `right` behind it. The numbers are
 * those of a problem that check_sizes has seen, and so small that sums of two of them are numbers too. */
struct slot {
    int32_t pack, rows, tile_q, tile_kv, seq_kv, left, right;
    int32_t first_place; /* that of query row 0 */
};

/* Blocks of keys that some row of the tile sees, as attest_tile_visible has them; at least 1. */
static int32_t tile_blocks(const struct slot *slot, int32_t tile)
{
    int32_t first = tile * slot->tile_q, last = first + slot->tile_q < slot->rows ? first + slot->tile_q - 1 : slot->rows - 1;
    int32_t begin = slot->first_place + first / slot->pack - slot->left,
            end = slot->first_place + last / slot->pack + slot->right + 1;
    begin = begin > 0 ? begin : 0;
    end = end < slot->seq_kv ? end : slot->seq_kv;
    return begin < end ? (end - 1) / slot->tile_kv - begin / slot->tile_kv + 1 : 1;
}

/* How long the tiles of a sequence take with an image that takes the problem and has a rate, in no unit. Every tile has one block
 * more than it sees, for its beginning and its end. Of lengths that lie on the device the most is known, and is what counts. The batch
 * does not matter but for persistent blocks, which go through all tiles in rounds: the last round is as long as the others. */
static double tiles_cost(const struct gpu *gpu, const attest_cuda_kernel *kernel, const attest_cuda_image *image,
                         const attest_problem *p)
{
    enum { LOOKED_AT = 256 };
    int64_t pack = cuda_pack(kernel, image, p);
    struct slot slot = {.pack = (int32_t)pack,
                        .rows = (int32_t)(p->seq_q * pack),
                        .tile_q = (int32_t)image->facts.tile_q,
                        .tile_kv = (int32_t)image->facts.tile_kv,
                        .seq_kv = (int32_t)p->seq_kv,
                        .left = cuda_window_left(p),
                        .right = cuda_window_right(p),
                        .first_place = has(p, ATTEST_BOTTOM_RIGHT) ? (int32_t)(p->seq_kv - p->seq_q) : 0};
    int64_t tiles = (slot.rows + slot.tile_q - 1) / slot.tile_q, blocks = 0;
    bool alike = slot.left == ATTEST_CUDA_UNBOUNDED && slot.right == ATTEST_CUDA_UNBOUNDED;
    int64_t most = alike ? 1 : LOOKED_AT, looked_at = tiles < most ? tiles : most;
    for (int64_t i = 0; i < looked_at; i++)
        blocks += tile_blocks(&slot, (int32_t)(looked_at < tiles ? (2 * i + 1) * tiles / (2 * LOOKED_AT) : i)) + 1;
    if (!looked_at)
        return 0;
    double slots = (double)(p->heads_q / pack), all = (double)blocks * (double)tiles / (double)looked_at * slots;
    if (kernel->launch == ATTEST_LAUNCH_PERSISTENT && p->batch > 0) {
        double rounds = (double)p->batch * slots * (double)tiles / gpu->info.multiprocessors;
        all *= ceil(rounds) / rounds;
    }
    return all * (double)(slot.tile_q * slot.tile_kv) / image->rate;
}

/* Of the images that differ from the first that does in their tiles alone, and that take the problem, the one that is done soonest;
 * the first if none is, or if none takes it. */
static const attest_cuda_image *choose_tiles(const struct gpu *gpu, const attest_cuda_kernel *kernel,
                                             const attest_cuda_image *first, const attest_problem *p)
{
    const attest_cuda_image *best = NULL;
    double least = 0;
    for (uint32_t i = 0; i < kernel->image_count; i++) {
        const attest_cuda_image *image = &kernel->images[i];
        if (image->arch != first->arch || image->kind != first->kind || image->facts.dtype != first->facts.dtype ||
            image->facts.dim != first->facts.dim || image->facts.dynamic_shared > gpu->info.shared_block || !image->rate ||
            check_image(gpu, kernel, image, p, (struct text){0}) != ATTEST_OK)
            continue;
        double cost = tiles_cost(gpu, kernel, image, p);
        if (!best || cost < least) {
            best = image;
            least = cost;
        }
    }
    return best ? best : first;
}

void cuda_tiles_explain(const struct gpu *gpu, const attest_cuda_kernel *kernel, const attest_cuda_image *image,
                        const attest_problem *p, char *text, size_t size)
{
    const attest_cuda_image *first = choose_image(gpu, kernel, (struct tile_wish){0}, p);
    const attest_cuda_facts *facts = &first->facts;
    text[0] = 0;
    if (facts->tile_q == image->facts.tile_q && facts->tile_kv == image->facts.tile_kv)
        return;
    if (check_image(gpu, kernel, first, p, (struct text){0}) != ATTEST_OK)
        snprintf(text, size, " (%ux%u does not take it)", facts->tile_q, facts->tile_kv);
    else
        snprintf(text, size, " (%ux%u would take %.1f %% longer)", facts->tile_q, facts->tile_kv,
                 100 * (tiles_cost(gpu, kernel, first, p) / tiles_cost(gpu, kernel, image, p) - 1));
}

/* ---- all of it --------------------------------------------------------------------------------------------------------------- */

attest_status cuda_refusal(const struct gpu *gpu, const attest_cuda_kernel *kernel, struct tile_wish wish, const attest_problem *p,
                           const attest_cuda_image **image, struct text why)
{
    *image = NULL;
    if (!gpu)
        return fail(why, ATTEST_ERROR_UNAVAILABLE, "it needs an NVIDIA GPU, and this context is on the CPU");
    if (!(kernel->dtypes >> p->dtype & 1))
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it does not take %s", dtype_name(p->dtype));
    TRY(flags_refusal(kernel->refuses, p, why));
    if (kernel->options & ATTEST_CUDA_REFUSES_O32 && p->dtype_o != p->dtype)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it does not take an O of another type than Q");
    if (p->dim_v != p->dim && (kernel->options & ATTEST_CUDA_REFUSES_DV || !(kernel->options & ATTEST_CUDA_PADS)))
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it does not take a dim_v that differs from dim");
    const attest_cuda_image *found = choose_image(gpu, kernel, wish, p);
    if (!found)
        return no_image(gpu, kernel, wish, p, why);
    /* The bits depend on the tiles, and tiles that are chosen on the longest sequence and the pages. */
    if (!wish.q && found->rate && !has(p, ATTEST_INVARIANT))
        found = choose_tiles(gpu, kernel, found, p);
    TRY(check_image(gpu, kernel, found, p, why));
    *image = found;
    return ATTEST_OK;
}
