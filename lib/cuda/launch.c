/*
 * launch.c - plans and runs on a GPU: how a problem is cut into tiles and pieces, what a kernel is told, and its launch.
 *
 * A run fills in the pointers and launches; nothing is allocated, nothing is waited for, and no call is made that a stream that is
 * being captured would not allow.
 */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cuda_plan {
    struct gpu *gpu;
    const attest_cuda_kernel *kernel;
    attest_cuda_image image;
    const struct loaded *loaded;
    attest_problem problem;
    attest_cuda_args args; /* all but the pointers */
    unsigned blocks;       /* of attest_kernel, */
    unsigned grid[3];      /* and how they stand */
    bool early;            /* attest_combine, or where there is none attest_kernel, waits by itself for the grid before it */
    bool mapped;           /* whether there are */
    attest_cuda_maps maps; /* tensor maps, with everything in them but the addresses */
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- plans ----------------------------------------------------------------------------------------------------------------- */

/* Pieces of the keys, `most` units of keys at most.
 *
 * With ATTEST_INVARIANT they are those of the manifest. Otherwise they are whole tiles, as many as may be with a block for each
 * multiprocessor: on an H200 more blocks were slower at every length from 8192 to 65536 keys; and at least LEAST_TILES of them, which
 * takes as long as joining one more piece. */
static int64_t pieces_apart(const attest_cuda_args *args, const attest_problem *p, int64_t most, int64_t multiprocessors)
{
    enum { LEAST_TILES = 2 };
    if (has(p, ATTEST_INVARIANT))
        return most;
    int64_t pieces = multiprocessors / (args->tiles > 0 ? args->tiles : 1);
    pieces = pieces > most / LEAST_TILES ? most / LEAST_TILES : pieces;
    return pieces < 1 ? 1 : pieces;
}

/* Pieces that a cluster joins are a power of two, and may be of one tile; as many as may be with all clusters at once. */
static int64_t pieces_joined(const attest_cuda_args *args, const attest_cuda_image *image, const struct loaded *loaded,
                             int64_t most)
{
    int64_t pieces = 1;
    for (int i = 1; 2 * pieces <= image->cluster && 2 * pieces <= most && args->tiles <= loaded->clusters[i]; i++)
        pieces *= 2;
    return pieces;
}

static void split(attest_cuda_args *args, const attest_problem *p, const attest_cuda_kernel *kernel, const attest_cuda_image *image,
                  const struct loaded *loaded, int64_t multiprocessors)
{
    bool joined = kernel->launch == ATTEST_LAUNCH_JOINED;
    int64_t unit = has(p, ATTEST_INVARIANT) ? image->split_keys : (int64_t)image->facts.tile_kv,
            most = p->seq_kv ? ceil_div(p->seq_kv, unit) : 1,
            pieces = joined ? pieces_joined(args, image, loaded, most) : pieces_apart(args, p, most, multiprocessors),
            units = ceil_div(most, pieces);
    args->split_keys = (int32_t)(units * unit < ATTEST_CUDA_UNBOUNDED ? units * unit : ATTEST_CUDA_UNBOUNDED / unit * unit);
    args->splits = joined ? (int32_t)pieces : (int32_t)(p->seq_kv ? ceil_div(p->seq_kv, args->split_keys) : 1);
    args->stride_partial = image->partial;
}

static int32_t window(const attest_problem *p, uint64_t flag, int64_t size)
{
    return has(p, flag) && size < ATTEST_CUDA_UNBOUNDED ? (int32_t)size : ATTEST_CUDA_UNBOUNDED;
}

int32_t cuda_window_left(const attest_problem *p)
{
    return window(p, ATTEST_WINDOW_LEFT, p->window_left);
}

int32_t cuda_window_right(const attest_problem *p)
{
    return has(p, ATTEST_CAUSAL) ? 0 : window(p, ATTEST_WINDOW_RIGHT, p->window_right);
}

int64_t cuda_pack(const attest_cuda_kernel *kernel, const attest_cuda_image *image, const attest_problem *p)
{
    int64_t group = kernel->options & ATTEST_CUDA_PACKS ? p->heads_q / p->heads_kv : 1;
    for (uint32_t i = 0; i < kernel->map_count; i++)
        if (strchr("qo", kernel->map_tensor[i]) && image->map_rows[i] % group)
            return 1;
    return group;
}

/* attest_cuda_args begins with the pointers of attest_tensors, and has the strides of attest_problem in one piece. What is appended to
 * those later is for kernels of another ATTEST_CUDA_ABI. */
#define POINTERS offsetof(attest_cuda_args, partial)
#define STRIDES  (offsetof(attest_cuda_args, stride_partial) - offsetof(attest_cuda_args, stride_q))
_Static_assert(POINTERS == offsetof(attest_tensors, page_table) + sizeof(void *) - offsetof(attest_tensors, q) &&
                   STRIDES == offsetof(attest_problem, stride_page_table) + sizeof(int64_t) - offsetof(attest_problem, stride_q),
               "the same pointers and strides");

static void args_fill(attest_cuda_args *args, const attest_problem *p, const attest_cuda_kernel *kernel,
                      const attest_cuda_image *image)
{
    *args = (attest_cuda_args){
        .flags = p->flags,
        .batch = (int32_t)p->batch,
        .heads_q = (int32_t)p->heads_q,
        .heads_kv = (int32_t)p->heads_kv,
        .seq_q = (int32_t)p->seq_q,
        /* No page can be looked up if there are none, whatever the lengths say. */
        .seq_kv = has(p, ATTEST_PAGED) && !p->page_count ? 0 : (int32_t)p->seq_kv,
        .dim = (int32_t)p->dim,
        .dim_v = (int32_t)p->dim_v,
        .total_q = (int32_t)p->total_q,
        .total_kv = (int32_t)p->total_kv,
        .page_size = (int32_t)p->page_size,
        .page_count = (int32_t)p->page_count,
        .window_left = cuda_window_left(p),
        .window_right = cuda_window_right(p),
        .dtype_o = p->dtype_o,
        .dtype_bias = p->dtype_bias,
        .scale = p->scale,
        .softcap = p->softcap,
        .pack = (int32_t)cuda_pack(kernel, image, p),
        .splits = 1,
    };
    memcpy((char *)args + offsetof(attest_cuda_args, stride_q), (const char *)p + offsetof(attest_problem, stride_q), STRIDES);
    args->slots = args->heads_q / args->pack;
    args->tiles_q = (int32_t)ceil_div(p->seq_q * args->pack, image->facts.tile_q);
    args->tiles = args->batch * args->slots * args->tiles_q;
}

/* ---- tensor maps ----------------------------------------------------------------------------------------------------------- */

/* One tensor as cuTensorMapEncodeTiled wants it: sizes and strides from the innermost dimension on. */
struct view {
    const void *data;
    uint32_t dtype, rank;
    uint64_t size[5], stride[5]; /* stride[i] is that of dimension i in bytes; [0] is not used */
    uint32_t box[5];
};

/* The tensor of the map: Q, K, V or O. */
static int map_tensor(const struct cuda_plan *plan, uint32_t index)
{
    int tensor = 0;
    while (tensor < TENSOR_o && tensor_rows[tensor].word[0] != plan->kernel->map_tensor[index])
        tensor++;
    return tensor;
}

static struct view view_get(const struct cuda_plan *plan, const void *data, uint32_t index)
{
    const attest_problem *p = &plan->problem;
    int tensor = map_tensor(plan, index);
    struct shape s = shape_get(p, tensor);
    bool of_rows = tensor_packed_by(tensor) == ATTEST_VARLEN_Q;
    int64_t pack = of_rows ? plan->args.pack : 1, box_rows = plan->image.map_rows[index] / pack;
    if (!of_rows && has(p, ATTEST_PAGED))
        box_rows = box_rows < s.size[2] ? box_rows : s.size[2];
    struct view view = {.data = data, .dtype = s.dtype};
    const struct {
        int64_t size, stride, box;
    } dimensions[] = {{s.size[3], s.stride[3], plan->image.map_columns[index]},
                      {pack, s.stride[1], pack},
                      {s.size[2], s.stride[2], box_rows},
                      {s.size[1] / pack, s.stride[1] * pack, 1},
                      {s.size[0], s.stride[0], 1}};
    bool packs = of_rows && plan->kernel->options & ATTEST_CUDA_PACKS;
    for (int i = 0; i < 5; i++) {
        if (i == 1 && !packs)
            continue;
        int64_t bytes = dimensions[i].stride * (int64_t)dtype_size(view.dtype);
        view.size[view.rank] = (uint64_t)(dimensions[i].size > 0 ? dimensions[i].size : 1);
        /* A stride that is never taken may be 0, which is no stride. */
        view.stride[view.rank] = (uint64_t)(bytes || (data && dimensions[i].size > 1) ? bytes : 16);
        view.box[view.rank++] = (uint32_t)dimensions[i].box;
    }
    return view;
}

static attest_status map_trouble(const struct cuda_plan *plan, uint32_t index, cu_result result, struct text why)
{
    char what[64];
    snprintf(what, sizeof what, "there is no tensor map of tensors.%c", plan->kernel->map_tensor[index]);
    return gpu_result(plan->gpu, result, what, why);
}

static attest_status maps_encode(const struct cuda_plan *plan, const attest_tensors *t, attest_cuda_maps *maps, struct text why)
{
    static const uint32_t steps[5] = {1, 1, 1, 1, 1};
    memset(maps, 0, sizeof *maps);
    for (uint32_t i = 0; i < plan->kernel->map_count; i++) {
        struct view view = view_get(plan, tensor_data(t, map_tensor(plan, i)), i);
        uint32_t swizzle = plan->kernel->map_swizzle[i];
        int type = view.dtype == ATTEST_F32 ? CU_MAP_F32 : view.dtype == ATTEST_F16 ? CU_MAP_F16 : CU_MAP_BF16;
        const void *data = view.data ? view.data : t->o; /* K and V without a key: nobody looks */
        cu_result result = plan->gpu->driver->map_encode(&maps->map[i], type, view.rank, (void *)(uintptr_t)data, view.size,
                                                         view.stride + 1, view.box, steps, 0,
                                                         swizzle == 128  ? 3
                                                         : swizzle == 64 ? 2
                                                         : swizzle == 32 ? 1
                                                                         : 0,
                                                         CU_MAP_PROMOTE_128, 0);
        if (result != 0)
            return map_trouble(plan, i, result, why);
    }
    return ATTEST_OK;
}

/* What a plan can know of its maps. It takes the driver several times as long to encode a map as to replace the address in one. Where that
 * cannot be done, or fails, maps are encoded in every run, which then says what is the matter. */
static bool maps_prepare(struct cuda_plan *plan)
{
    attest_tensors t = {.size = sizeof t};
    bool pushed, made;
    for (int i = 0; i < TENSORS; i++)
        tensor_set(&t, i, (void *)(uintptr_t)(1 << 20)); /* anywhere */
    if (!plan->kernel->map_count || !plan->gpu->driver->map_move || gpu_enter(plan->gpu, &pushed, (struct text){0}) != ATTEST_OK)
        return false;
    made = maps_encode(plan, &t, &plan->maps, (struct text){0}) == ATTEST_OK;
    gpu_leave(plan->gpu, pushed);
    return made;
}

static attest_status maps_get(const struct cuda_plan *plan, const attest_tensors *t, attest_cuda_maps *maps, struct text why)
{
    if (!plan->mapped || !t->k || !t->v)
        return maps_encode(plan, t, maps, why);
    *maps = plan->maps;
    for (uint32_t i = 0; i < plan->kernel->map_count; i++) {
        cu_result result = plan->gpu->driver->map_move(&maps->map[i], (void *)(uintptr_t)tensor_data(t, map_tensor(plan, i)));
        if (result != 0)
            return map_trouble(plan, i, result, why);
    }
    return ATTEST_OK;
}

/* ---- making one ------------------------------------------------------------------------------------------------------------ */

attest_status cuda_plan_create(struct gpu *gpu, const attest_cuda_kernel *kernel, const attest_cuda_image *image,
                               const attest_problem *p, struct cuda_plan **plan, size_t *workspace, struct text why)
{
    const struct loaded *loaded;
    *plan = NULL;
    *workspace = 0;
    TRY(image_load(gpu, kernel, image, &loaded, why));
    struct cuda_plan *made = aligned_alloc(_Alignof(struct cuda_plan), sizeof *made); /* the maps want it */
    if (!made)
        return fail(why, ATTEST_ERROR_MEMORY, "no memory for a plan");
    *made = (struct cuda_plan){.gpu = gpu, .kernel = kernel, .image = *image, .loaded = loaded, .problem = *p};
    attest_cuda_args *args = &made->args;
    args_fill(args, p, kernel, image);
    int64_t room = (int64_t)gpu->info.multiprocessors * loaded->blocks, blocks = args->tiles;
    if (kernel->launch == ATTEST_LAUNCH_PERSISTENT && blocks > room)
        blocks = room;
    if (kernel->launch == ATTEST_LAUNCH_SPLIT || kernel->launch == ATTEST_LAUNCH_JOINED) {
        split(args, p, kernel, image, loaded, gpu->info.multiprocessors);
        blocks *= args->splits;
        if (args->splits > 1 && kernel->launch == ATTEST_LAUNCH_SPLIT)
            *workspace = (size_t)blocks * image->facts.tile_q * image->partial * sizeof(float);
    }
    made->early = kernel->options & ATTEST_CUDA_PDL && gpu->info.compute >= 90 && gpu->driver->launch_with;
    made->blocks = made->grid[0] = (unsigned)blocks;
    made->grid[1] = made->grid[2] = 1;
    if (is_in_three_dimensions(kernel)) {
        int64_t cluster = image->cluster > 1 ? image->cluster : 1;
        made->grid[0] = (unsigned)(kernel->launch == ATTEST_LAUNCH_JOINED ? args->tiles_q * args->splits
                                                                          : ceil_div(args->tiles_q, cluster) * cluster);
        made->grid[1] = (unsigned)args->slots;
        made->grid[2] = (unsigned)args->batch;
    }
    made->mapped = maps_prepare(made);
    *plan = made;
    return ATTEST_OK;
}

void cuda_plan_destroy(struct cuda_plan *plan)
{
    free(plan);
}

struct gpu *cuda_plan_gpu(const struct cuda_plan *plan)
{
    return plan->gpu;
}

uint32_t cuda_plan_align(const struct cuda_plan *plan)
{
    return plan->image.align;
}

void cuda_plan_describe(const struct cuda_plan *plan, char *text, size_t size)
{
    const attest_cuda_args *args = &plan->args;
    char how[96] = "", why[64];
    if (plan->kernel->launch == ATTEST_LAUNCH_PERSISTENT)
        snprintf(how, sizeof how, " for %d tiles", args->tiles);
    if (args->splits > 1)
        snprintf(how, sizeof how, " for %d tiles in %d pieces of %d keys", args->tiles, args->splits, args->split_keys);
    cuda_tiles_explain(plan->gpu, plan->kernel, &plan->image, &plan->problem, why, sizeof why);
    snprintf(text, size, "tiles of %ux%u%s, %u block%s of %u threads%s", plan->image.facts.tile_q, plan->image.facts.tile_kv, why,
             plan->blocks, plan->blocks == 1 ? "" : "s", plan->image.facts.threads, how);
}

/* ---- alignment ------------------------------------------------------------------------------------------------------------- */

static bool is_aligned(const attest_problem *p, const attest_tensors *t, int tensor)
{
    enum { BYTES = 16 };
    const int64_t *stride = tensor_strides(p, tensor);
    uintptr_t strides = (uintptr_t)(stride[0] | stride[1] | stride[2]) * dtype_size(tensor_dtype(p, tensor));
    return !(((uintptr_t)tensor_data(t, tensor) | strides) % BYTES);
}

_Static_assert(ATTEST_ALIGNED_Q == 1 << TENSOR_q && ATTEST_ALIGNED_K == 1 << TENSOR_k && ATTEST_ALIGNED_V == 1 << TENSOR_v &&
                   ATTEST_ALIGNED_O == 1 << TENSOR_o,
               "a bit for each tensor with columns");

static uint32_t aligned_get(const attest_problem *p, const attest_tensors *t)
{
    uint32_t aligned = 0;
    for (int i = TENSOR_q; i <= TENSOR_o; i++)
        aligned |= is_aligned(p, t, i) ? 1u << i : 0;
    return aligned;
}

/* ---- runs ------------------------------------------------------------------------------------------------------------------ */

/* Blocks in a row, or as plan->grid says; with one attribute, or NULL. */
static cu_result launch(const struct cuda_plan *plan, cu_function function, const unsigned grid[3], unsigned shared,
                        cu_stream stream, struct cu_launch_attribute *attribute, void **parameters)
{
    const struct driver *driver = plan->gpu->driver;
    unsigned threads = plan->image.facts.threads;
    if (!attribute)
        return driver->launch(function, grid[0], grid[1], grid[2], threads, 1, 1, shared, stream, parameters, NULL);
    struct cu_launch_config config = {.grid = {grid[0], grid[1], grid[2]},
                                      .block = {threads, 1, 1},
                                      .shared = shared,
                                      .stream = stream,
                                      .attributes = attribute,
                                      .attribute_count = 1};
    return driver->launch_with(&config, function, parameters, NULL);
}

static cu_result launch_kernel(const struct cuda_plan *plan, cu_stream stream, void **parameters)
{
    struct cu_launch_attribute cluster = {.id = CU_LAUNCH_CLUSTER, .value.cluster = {(unsigned)plan->args.splits, 1, 1}},
                               early = {.id = CU_LAUNCH_EARLY, .value.allowed = 1};
    uint32_t how = plan->kernel->launch;
    return launch(plan, plan->loaded->kernel, plan->grid, plan->image.facts.dynamic_shared, stream,
                  how == ATTEST_LAUNCH_JOINED                 ? &cluster
                  : how != ATTEST_LAUNCH_SPLIT && plan->early ? &early
                                                              : NULL,
                  parameters);
}

static cu_result launch_combine(const struct cuda_plan *plan, cu_stream stream, void **parameters)
{
    const unsigned tiles[3] = {(unsigned)plan->args.tiles, 1, 1};
    struct cu_launch_attribute early = {.id = CU_LAUNCH_EARLY, .value.allowed = 1};
    return launch(plan, plan->loaded->combine, tiles, 0, stream, plan->early ? &early : NULL, parameters);
}

attest_status cuda_run(const struct cuda_plan *plan, const attest_tensors *t, void *workspace, void *stream, struct text why)
{
    attest_cuda_args args = plan->args;
    attest_cuda_maps maps;
    void *parameters[] = {&args, &maps};
    if (!plan->blocks)
        return ATTEST_OK;
    memcpy(&args, (const char *)t + offsetof(attest_tensors, q), POINTERS);
    args.partial = args.splits > 1 ? workspace : NULL;
    args.aligned = aligned_get(&plan->problem, t);
    bool pushed;
    TRY(gpu_enter(plan->gpu, &pushed, why));
    if (plan->kernel->map_count) {
        attest_status status = maps_get(plan, t, &maps, why);
        if (status != ATTEST_OK) {
            gpu_leave(plan->gpu, pushed);
            return status;
        }
    }
    cu_result result = launch_kernel(plan, stream, parameters);
    const char *what = "the kernel could not be launched";
    if (result == 0 && plan->kernel->launch == ATTEST_LAUNCH_SPLIT && plan->args.splits > 1) {
        result = launch_combine(plan, stream, parameters);
        what = "the kernel that joins the pieces could not be launched";
    }
    gpu_leave(plan->gpu, pushed);
    return gpu_result(plan->gpu, result, what, why);
}
