/*
 * attest_kernel_cuda.h - what a CUDA kernel is, in C11 and CUDA C. EXPERIMENTAL: this part of the interface may change with a minor
 * version.
 *
 * The kernels of the library and kernels from elsewhere are the same thing: device code with a manifest, never host code. The host
 * owns the launch. A kernel from elsewhere is
 *
 *     my_kernel.cu                            a source, with its manifest in the first comment, or
 *     my_kernel.cubin or my_kernel.ptx        an image, with my_kernel.manifest beside it,
 *
 * `attest new NAME --cuda` writes one that works, and `attest prove FILE` proves it. A source defines one function, and says what
 * it was compiled for with one macro at file scope:
 *
 *     #include <attest_kernel_cuda.h>
 *     extern "C" __global__ void __launch_bounds__(ATTEST_THREADS)
 *         attest_kernel(const __grid_constant__ attest_cuda_args args) { ... }
 *     ATTEST_CUDA_FACTS(sizeof(struct tiles));          the bytes of `extern __shared__` memory that it uses
 *
 * With tensor maps it has a second parameter, const __grid_constant__ attest_cuda_maps maps. With the launch `split` there is a
 * second function, attest_combine, with the parameters of the first.
 *
 * RULES FOR KERNELS
 * - One source is compiled once for every architecture, dtype and head dimension of its manifest, with these macros, all integers:
 *   ATTEST_DTYPE (attest_dtype), ATTEST_DIM, ATTEST_TILE_Q, ATTEST_TILE_KV, ATTEST_STAGES, ATTEST_THREADS. It compiles without a
 *   warning, spills nothing, and has no stack frame.
 * - A call is a function of its arguments alone: no __device__ variables, no device malloc, no printf, no launches of its own.
 *   Constants go into __constant__ memory. Workspace (`partial`) is full of rubbish at the start.
 * - What a kernel cannot do it declares in its manifest (`dtypes`, `dims`, `refuses`, `align`); it is then never asked. Tensors are
 *   aligned to their elements and, where the manifest says so, to `align` bytes, strides between rows, heads and batches too.
 * - Lengths, cumulative lengths and page tables lie on the device, where the host cannot check them. Kernels clamp them and never
 *   read outside of a tensor: attest_sequence_get and attest_key_offset below do.
 * - The same problem gives the same bits, always: no floating-point atomics, no order that depends on timing.
 *
 * THE MANIFEST is lines of the first comment (or of the .manifest file, there without the prefix):
 *
 *      * attest-cuda: archs = sm_80 sm_89 sm_90
 *      * attest-cuda: tile_kv [d256] = 32
 *
 * A condition in brackets restricts a line to architectures (sm_90), dtypes (f16) or dimensions (d256); several, separated by
 * blanks, must all hold; of the lines that apply, the last one counts (of `tiles` all do). Numbers marked # may be expressions of
 * integers, with + - * / % ( ) min(a, b) max(a, b) up(a, b), which is a rounded up to a multiple of b, and the names dim, bytes (of
 * an element), arch (80, 89, 90 ...) and tile_q, tile_kv, stages, threads, of which each may use those before it.
 *
 *     name             of the kernel; the file's stem unless given
 *     summary          one line on how it works
 *     archs            GPUs it is for: sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a sm_100 sm_120;
 *                      sm_86, sm_87 and sm_89 run the image of sm_80
 *     dtypes           f32 f16 bf16
 *     dims             values of ATTEST_DIM, rising
 *     padding          yes: problems of any smaller dim, or with a dim_v of their own, run on the next of `dims`;
 *                      no (default): dim and dim_v are equal and one of `dims`
 *     tile_q #         query rows of a tile
 *     tile_kv #        keys of a tile
 *     tiles            more pairs of them that images are made for, as 48x64; a condition can be on the dimension alone. The name
 *                      of a plan's kernel with @48x64 behind it asks for one; without, `rate` decides
 *     rate #           how fast whole tiles of this pair go, in percent of tile_q x tile_kv. Of the pairs that have a rate and take
 *                      the problem, the one runs whose tiles are done soonest, each with the blocks of tile_kv keys that its rows
 *                      see and one more to begin and end it. 0 unless given: such a pair runs if it is asked for, and tile_q x
 *                      tile_kv without a rate, or with `invariant`, always does
 *     stages #         buffers of a pipeline; 1 unless given
 *     threads #        of a block, a multiple of 32
 *     shared #         bytes of shared memory of a block, static and dynamic together: must be exactly what the image has
 *     registers #      of a thread, at most
 *     blocks_per_sm #  that fit on one multiprocessor, at least; 1 unless given
 *     launch           tile, grid, persistent, split or joined: see attest_cuda_launch
 *     packs            yes: the query heads of a KV head share tiles, see attest_tile; no (default)
 *     split_keys #     with launch = split: keys of a piece, a multiple of tile_kv
 *     partial #        with launch = split: floats that a row leaves for each piece of its keys
 *     pdl              yes: attest_combine waits with griddepcontrol.wait, and may be launched early where the GPU can; no (default)
 *     rows_most #      query rows of a slot (seq_q * pack) that it takes at most; any number unless given
 *     tiles_most #     tiles of a problem that it takes at most; any number unless given
 *     cluster #        2, 4 or 8; 1 unless given. With launch = grid: blocks of a cluster, which are tiles of one slot that follow
 *                      each other, as its __cluster_dims__ says. With launch = joined: pieces of the keys of a tile, at most; or 16
 *     map              q, k, v or o, then: rows N columns N swizzle N, which see attest_cuda_maps; up to four lines
 *     align #          bytes, a power of two; 0 unless given
 *     refuses          what it does not take, as words of a problem string: causal br wl wr softcap alibi bias sink lse varlenq
 *                      varlenkv lens page invariant; and o=f32 (O in another type than Q), dv (dim_v is not dim)
 *     tensor           none (default), hmma (mma.sync, wmma) or gmma (wgmma): the pipe its products run on
 *     mma_qk #         with a tensor pipe: multiply-adds that one instruction of a warp does in the product with K,
 *                      such as 16 * 8 * 16,
 *     mma_pv #         and in the product with V
 *     flags            for nvcc: -D... -use_fast_math -ftz= -fmad= -prec-div= -prec-sqrt= -std=
 *     space            what a search may try: tile_q 32 64 128; tile_kv 32 64; stages 1 2
 */
#ifndef ATTEST_KERNEL_CUDA_H
#define ATTEST_KERNEL_CUDA_H

#include <attest.h>

enum { ATTEST_CUDA_ABI = 1 };

/* The names of the functions and of the facts in an image. */
#define ATTEST_CUDA_KERNEL       "attest_kernel"
#define ATTEST_CUDA_COMBINE      "attest_combine"
#define ATTEST_CUDA_FACTS_SYMBOL "attest_facts"

/* ---------------------------------------------------------------------------------------------------------- launch -- */

/*
 * How the host launches a kernel: blocks of `threads` threads, gridDim.x of them but for ATTEST_LAUNCH_GRID.
 *
 * - ATTEST_LAUNCH_TILE: one block for each tile; block n computes tile n.
 *
 * - ATTEST_LAUNCH_GRID: one block for each tile, in three dimensions: tile blockIdx.x of slot blockIdx.y of sequence blockIdx.z;
 *   attest_tile_here finds it without a division. At most 65535 slots and sequences. With clusters, gridDim.x is rounded up to
 *   whole ones: blocks that have no tile (row_begin >= row_end) take part in what a cluster does together.
 *
 * - ATTEST_LAUNCH_PERSISTENT: at most as many blocks as the GPU holds at once; block n computes tiles n, n + gridDim.x ...
 *
 * - ATTEST_LAUNCH_SPLIT: tiles * splits blocks; block n computes piece n % splits of the keys of tile n / splits, which are keys
 *   piece * split_keys .. (piece + 1) * split_keys of the sequence, into `partial`. Then attest_combine, one block for each tile,
 *   without dynamic shared memory. With ATTEST_INVARIANT split_keys depends on nothing but the manifest. Where splits is 1,
 *   attest_kernel writes O and LSE by itself: there is no `partial`, and attest_combine is not launched.
 *
 * - ATTEST_LAUNCH_JOINED: splits blocks for each tile, with the pieces that ATTEST_LAUNCH_SPLIT has, but they are a cluster, of 1, 2,
 *   4, 8 or 16, and join what they have by themselves. In three dimensions, as ATTEST_LAUNCH_GRID: piece blockIdx.x % splits of tile
 *   blockIdx.x / splits. How many there are depends on the batch: such a kernel refuses `invariant`.
 */
typedef enum attest_cuda_launch {
    ATTEST_LAUNCH_TILE = 1,
    ATTEST_LAUNCH_PERSISTENT = 2,
    ATTEST_LAUNCH_SPLIT = 3,
    ATTEST_LAUNCH_GRID = 4,
    ATTEST_LAUNCH_JOINED = 5
} attest_cuda_launch;

/* Sizes that kernels see are below this, so that sums of two of them fit an int32_t. A window side that has no limit is the
 * largest. */
enum { ATTEST_CUDA_SIZES = 1 << 30, ATTEST_CUDA_UNBOUNDED = (1 << 30) - 1 };

/* What a kernel gets, by value. No padding; the host and the device agree on every offset. */
typedef struct attest_cuda_args {
    /* As in attest_tensors, on the device; NULL where the problem has none. */
    const void *q;
    const void *k;
    const void *v;
    void *o;
    float *lse;
    const void *bias;
    const float *alibi_slopes;
    const float *sinks;
    const int32_t *cu_seqlens_q;
    const int32_t *cu_seqlens_kv;
    const int32_t *kv_lengths;
    const int32_t *page_table;
    float *partial; /* [tiles, splits, tile_q, stride_partial], only with ATTEST_LAUNCH_SPLIT; the kernel's own in every way */

    /* In elements, as in attest_problem. */
    int64_t stride_q[3];
    int64_t stride_k[3];
    int64_t stride_v[3];
    int64_t stride_o[3];
    int64_t stride_lse[3];
    int64_t stride_bias[4];
    int64_t stride_page_table;
    int64_t stride_partial; /* `partial` of the manifest */

    uint64_t flags; /* of the problem: ATTEST_CAUSAL ... */
    int32_t batch;
    int32_t heads_q;
    int32_t heads_kv;
    int32_t seq_q;
    int32_t seq_kv;
    int32_t dim;
    int32_t dim_v;
    int32_t total_q;
    int32_t total_kv;
    int32_t page_size;
    int32_t page_count;

    /* The row at place r among the keys (SEMANTICS 3) sees keys r - window_left <= j <= r + window_right: the flags ATTEST_CAUSAL
     * and ATTEST_WINDOW_* are already in these two, as 0 and ATTEST_CUDA_UNBOUNDED. */
    int32_t window_left;
    int32_t window_right;

    uint32_t dtype_o;    /* attest_dtype */
    uint32_t dtype_bias; /* attest_dtype, or 0 */
    float scale;
    float softcap;

    /* How the host cut the problem: see attest_tile. */
    int32_t pack;       /* query heads that share the tiles of one slot: heads_q / heads_kv with `packs`, else 1 */
    int32_t slots;      /* heads_q / pack */
    int32_t tiles_q;    /* tiles of one slot: seq_q * pack / tile_q, rounded up */
    int32_t tiles;      /* batch * slots * tiles_q */
    int32_t splits;     /* pieces of the keys; 1 unless split */
    int32_t split_keys; /* keys of a piece, a multiple of tile_kv; 0 unless split */
    uint32_t aligned;   /* ATTEST_ALIGNED_*: the tensor and its strides are multiples of 16 bytes */
} attest_cuda_args;

enum { ATTEST_ALIGNED_Q = 1, ATTEST_ALIGNED_K = 2, ATTEST_ALIGNED_V = 4, ATTEST_ALIGNED_O = 8 };

/*
 * Tensor maps for bulk tensor copies, as cuTensorMapEncodeTiled makes them, in the order of the manifest's `map` lines. The host
 * encodes the tensor with the problem's own strides (which must then be multiples of 16 bytes: the manifest needs align = 16),
 * innermost dimension first:
 *
 *     Q, O   [dim, seq_q, heads_q, batch], with `packs` [dim, pack, seq_q, slots, batch]; packed: [.. total_q ..] and batch 1
 *     K, V   [dim, seq_kv, heads_kv, batch]; packed: [dim, total_kv, heads_kv, 1]; paged: [dim, page_size, heads_kv, page_count]
 *
 * The box is `columns` x `rows` (with `packs` columns x pack x rows / pack for Q and O) and 1 in the others; swizzle is 0, 32, 64
 * or 128 bytes; what lies outside of the tensor reads as 0.
 */
enum { ATTEST_CUDA_MAPS = 4 };

#if defined(__cplusplus)
#define ATTEST_ALIGNED(bytes) alignas(bytes)
#else
#define ATTEST_ALIGNED(bytes) _Alignas(bytes)
#endif

typedef struct attest_tensor_map {
    ATTEST_ALIGNED(64) uint64_t opaque[16];
} attest_tensor_map;

typedef struct attest_cuda_maps {
    attest_tensor_map map[ATTEST_CUDA_MAPS];
} attest_cuda_maps;

/* What an image says of itself, as a constant in it; the host reads it from the file. */
typedef struct attest_cuda_facts {
    uint32_t abi;       /* ATTEST_CUDA_ABI */
    uint32_t args_size; /* sizeof(attest_cuda_args) */
    uint32_t dtype, dim, tile_q, tile_kv, stages, threads;
    uint32_t dynamic_shared; /* bytes of extern __shared__ memory that a block is launched with */
    uint32_t reserved;       /* 0 */
} attest_cuda_facts;

#if defined(__cplusplus)
static_assert(sizeof(attest_cuda_args) == 376 && sizeof(attest_cuda_maps) == 512, "host and device must agree");
#else
_Static_assert(sizeof(attest_cuda_args) == 376 && sizeof(attest_cuda_maps) == 512, "host and device must agree");
#endif

/* ------------------------------------------------------------------------------------------------------------ host -- */

#if !defined(__CUDACC__)

#ifdef __cplusplus
extern "C" {
#endif

/* One image of a kernel: what it was compiled for, and the numbers of the manifest there. */
typedef struct attest_cuda_image {
    uint32_t arch; /* 80, 90 ...: runs on GPUs of the same major number from there on; as PTX on all from there on */
    uint32_t kind; /* ATTEST_CUBIN ... */
    attest_cuda_facts facts;
    uint32_t split_keys; /* 0 unless the launch is split */
    uint32_t partial;    /* likewise */
    uint32_t align;
    uint32_t rows_most;  /* 0: any number */
    uint32_t tiles_most; /* likewise */
    uint32_t cluster;    /* 1, or 0: blocks come alone */
    uint32_t rate;       /* 0: not chosen for its tiles */
    uint32_t map_rows[ATTEST_CUDA_MAPS], map_columns[ATTEST_CUDA_MAPS];
    const void *data; /* as a file of its kind, PTX with a zero byte behind it; or a fatbin with one such file in it */
    uint64_t bytes;
} attest_cuda_image;

/* ATTEST_CUBIN_ONLY runs on its architecture and no other, as sm_90a does. */
enum { ATTEST_CUBIN = 1, ATTEST_CUBIN_ONLY = 2, ATTEST_PTX = 3 };

/* Bits of attest_cuda_kernel.options. */
enum {
    ATTEST_CUDA_PADS = 1,        /* `padding` */
    ATTEST_CUDA_PACKS = 2,       /* `packs` */
    ATTEST_CUDA_PDL = 4,         /* `pdl` */
    ATTEST_CUDA_REFUSES_O32 = 8, /* `refuses` o=f32 */
    ATTEST_CUDA_REFUSES_DV = 16  /* `refuses` dv */
};

/* A kernel as the host sees it: its manifest, with every number worked out, and its images. Of several images that would do, the
 * first runs; if it has a rate, that or one that differs from it in its tiles, whichever is done sooner. */
typedef struct attest_cuda_kernel {
    uint32_t abi;        /* ATTEST_CUDA_ABI */
    uint32_t dtypes;     /* bits: 1 << attest_dtype */
    uint64_t refuses;    /* flags of problems that it does not take */
    const char *name;    /* letters, digits and _ */
    const char *summary; /* one line on how it works */
    uint32_t launch;     /* attest_cuda_launch */
    uint32_t options;    /* ATTEST_CUDA_PADS ... */
    uint32_t map_count;
    uint32_t image_count;
    char map_tensor[ATTEST_CUDA_MAPS]; /* 'q', 'k', 'v', 'o' */
    uint32_t map_swizzle[ATTEST_CUDA_MAPS];
    const attest_cuda_image *images;
} attest_cuda_kernel;

/* As attest_context_add_kernel of attest_kernel.h, for a context on a GPU. */
ATTEST_API attest_status attest_context_add_cuda_kernel(attest_context *context, const attest_cuda_kernel *kernel);

/* One call of attest_run that is to be timed. */
typedef struct attest_cuda_call {
    const attest_plan *plan;
    const attest_tensors *tensors;
    void *workspace;
    uint64_t workspace_size;
} attest_cuda_call;

/* Captures the calls, one after the other, into a CUDA graph, replays it once unseen, and then `replays` times between two events.
 * *seconds is the time of one call, in the mean. Waits until all is done. */
ATTEST_API attest_status attest_cuda_time(attest_context *context, const attest_cuda_call *calls, int count, int replays,
                                          double *seconds);

#ifdef __cplusplus
}
#endif
#endif

/* ---------------------------------------------------------------------------------------------------------- device -- */

#if defined(__CUDACC__)

#if !defined(ATTEST_DTYPE) || !defined(ATTEST_DIM) || !defined(ATTEST_TILE_Q) || !defined(ATTEST_TILE_KV) ||                       \
    !defined(ATTEST_STAGES) || !defined(ATTEST_THREADS)
#error "a kernel is compiled by attest prove, which defines ATTEST_DTYPE, ATTEST_DIM, ATTEST_TILE_Q ... from its manifest"
#endif

#define ATTEST_CUDA_FACTS(bytes_of_dynamic_shared)                                                                                 \
    extern "C" {                                                                                                                   \
    __constant__ attest_cuda_facts attest_facts = {ATTEST_CUDA_ABI,                                                                \
                                                   sizeof(attest_cuda_args),                                                       \
                                                   ATTEST_DTYPE,                                                                   \
                                                   ATTEST_DIM,                                                                     \
                                                   ATTEST_TILE_Q,                                                                  \
                                                   ATTEST_TILE_KV,                                                                 \
                                                   ATTEST_STAGES,                                                                  \
                                                   ATTEST_THREADS,                                                                 \
                                                   (bytes_of_dynamic_shared),                                                      \
                                                   0};                                                                             \
    }                                                                                                                              \
    static_assert((ATTEST_THREADS) % 32 == 0, "threads must be a multiple of 32")

__device__ inline bool attest_has(const attest_cuda_args &args, uint64_t flag)
{
    return (args.flags & flag) != 0;
}

__device__ inline int32_t attest_clamp(int32_t x, int32_t low, int32_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* a / b for 0 <= a and 0 < b. Shorter than the general division as long as a is below 2^22. */
__device__ inline int32_t attest_divide(int32_t a, int32_t b)
{
    if (a >= 1 << 22)
        return a / b;
    int32_t quotient = (int32_t)__fdividef((float)a, (float)b), rest = a - quotient * b;
    return quotient + (rest >= b) - (rest < 0);
}

/* x, which all lanes of the warp have alike: now the compiler knows, and keeps what follows from it once for the warp. For whole
 * warps. */
__device__ inline int32_t attest_uniform(int32_t x)
{
    return __shfl_sync(0xffffffffu, x, 0);
}

/* ---- sequences and tiles ---- */

/* One sequence of the batch. Whatever the lengths on the device say, its rows and keys lie inside of the tensors. */
typedef struct attest_sequence {
    int32_t q_first, q_count;   /* q_first is its first row in a packed Q, else 0 */
    int32_t kv_first, kv_count; /* kv_first is its first key in a packed K and V, else 0 */
} attest_sequence;

__device__ inline attest_sequence attest_sequence_get(const attest_cuda_args &args, int32_t batch)
{
    attest_sequence s = {0, args.seq_q, 0, args.seq_kv};
    if (attest_has(args, ATTEST_VARLEN_Q)) {
        s.q_first = attest_clamp(args.cu_seqlens_q[batch], 0, args.total_q);
        s.q_count = attest_clamp(attest_clamp(args.cu_seqlens_q[batch + 1], 0, args.total_q) - s.q_first, 0, args.seq_q);
    }
    if (attest_has(args, ATTEST_VARLEN_KV)) {
        s.kv_first = attest_clamp(args.cu_seqlens_kv[batch], 0, args.total_kv);
        s.kv_count = attest_clamp(attest_clamp(args.cu_seqlens_kv[batch + 1], 0, args.total_kv) - s.kv_first, 0, args.seq_kv);
    }
    if (attest_has(args, ATTEST_KV_LENGTHS))
        s.kv_count = attest_clamp(args.kv_lengths[batch], 0, s.kv_count);
    return s;
}

/*
 * One tile: ATTEST_TILE_Q rows of one slot of one sequence. A slot is `pack` query heads that share a KV head; "row" r of a slot is
 * query row r / pack of query head slot * pack + r % pack. The tiles of a slot follow each other, then the slots, then the
 * sequences; a kernel may take them in any order.
 */
typedef struct attest_tile {
    attest_sequence sequence;
    int32_t batch, slot, head_kv;
    int32_t row_begin, row_end; /* rows of the slot; row_begin >= row_end if the sequence ends before this tile */
} attest_tile;

__device__ inline attest_tile attest_tile_of(const attest_cuda_args &args, int32_t batch, int32_t slot, int32_t in_slot)
{
    attest_tile tile;
    tile.batch = batch;
    tile.slot = slot;
    tile.head_kv = args.slots == args.heads_kv ? slot : slot * args.pack / (args.heads_q / args.heads_kv);
    tile.sequence = attest_sequence_get(args, batch);
    tile.row_begin = in_slot * ATTEST_TILE_Q;
    tile.row_end = min(tile.row_begin + ATTEST_TILE_Q, tile.sequence.q_count * args.pack);
    return tile;
}

/* Tile `index` of all. Divisions are slow, and left out where there is nothing to divide. For whole warps. */
__device__ inline attest_tile attest_tile_get(const attest_cuda_args &args, int32_t index)
{
    int32_t slot = args.tiles_q == 1 ? index : attest_uniform(attest_divide(index, args.tiles_q));
    int32_t batch = args.batch == 1 ? 0 : attest_uniform(attest_divide(slot, args.slots));
    return attest_tile_of(args, batch, slot - batch * args.slots, index - slot * args.tiles_q);
}

/* With ATTEST_LAUNCH_GRID: the tile of this block. `reversed`: the last tiles of a slot come first, which see most keys if there is
 * a causal mask; the longest should begin first. */
__device__ inline attest_tile attest_tile_here(const attest_cuda_args &args, bool reversed)
{
    return attest_tile_of(args, blockIdx.z, blockIdx.y, reversed ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
}

/* SEMANTICS 3: the place of query row i among the keys. */
__device__ inline int32_t attest_row_place(const attest_cuda_args &args, const attest_sequence &s, int32_t i)
{
    return attest_has(args, ATTEST_BOTTOM_RIGHT) ? i + s.kv_count - s.q_count : i;
}

/* Keys begin <= j < end are those that masks by position leave to query row i; none if begin >= end. */
typedef struct attest_span {
    int32_t begin, end;
} attest_span;

__device__ inline attest_span attest_row_visible(const attest_cuda_args &args, const attest_sequence &s, int32_t i)
{
    int32_t place = attest_row_place(args, s, i);
    attest_span span = {max(0, place - args.window_left), min(s.kv_count, place + args.window_right + 1)};
    return span;
}

/* The keys that some row of the tile sees, which are all the keys it may load. */
__device__ inline attest_span attest_tile_visible(const attest_cuda_args &args, const attest_tile &tile)
{
    attest_span first = attest_row_visible(args, tile.sequence, tile.row_begin / args.pack);
    attest_span last = attest_row_visible(args, tile.sequence, (tile.row_end - 1) / args.pack);
    attest_span span = {first.begin, last.end};
    return span;
}

/* ---- where things lie: offsets in elements ---- */

/* Query row i of query head `head`, in a tensor with the layout of Q: Q, O and LSE. */
__device__ inline int64_t attest_row_offset(const attest_cuda_args &args, const int64_t *stride, const attest_tile &tile,
                                            int32_t head, int32_t i)
{
    int64_t batch = attest_has(args, ATTEST_VARLEN_Q) ? 0 : tile.batch;
    return batch * stride[0] + head * stride[1] + (int64_t)(tile.sequence.q_first + i) * stride[2];
}

/* Key j of the tile's sequence, in K or V. */
__device__ inline int64_t attest_key_offset(const attest_cuda_args &args, const int64_t *stride, const attest_tile &tile, int32_t j)
{
    int64_t head = tile.head_kv * stride[1];
    if (attest_has(args, ATTEST_PAGED)) {
        int32_t page = args.page_table[tile.batch * args.stride_page_table + j / args.page_size];
        return head + attest_clamp(page, 0, args.page_count - 1) * stride[0] + j % args.page_size * stride[2];
    }
    int64_t batch = attest_has(args, ATTEST_VARLEN_KV) ? 0 : tile.batch;
    return head + batch * stride[0] + (int64_t)(tile.sequence.kv_first + j) * stride[2];
}

/* The bias of query row i of head `head` and key 0; that of key j is stride_bias[3] * j further. */
__device__ inline int64_t attest_bias_offset(const attest_cuda_args &args, const attest_tile &tile, int32_t head, int32_t i)
{
    return tile.batch * args.stride_bias[0] + head * args.stride_bias[1] + i * args.stride_bias[2];
}

/* What row `row` of a tile (0 <= row < ATTEST_TILE_Q) leaves for piece `piece` of its keys. */
__device__ inline float *attest_partial_row(const attest_cuda_args &args, int32_t tile, int32_t piece, int32_t row)
{
    return args.partial + (((int64_t)tile * args.splits + piece) * ATTEST_TILE_Q + row) * args.stride_partial;
}

/* ---- elements: one instruction each ---- */

__device__ inline float attest_from_f16(uint16_t half)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}

__device__ inline uint16_t attest_to_f16(float value)
{
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}

__device__ inline float attest_from_bf16(uint16_t bits)
{
    return __uint_as_float((uint32_t)bits << 16);
}

__device__ inline uint16_t attest_to_bf16(float value)
{
    uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

/* Element `at` of a tensor as a float, and a float rounded once to an element. */
__device__ inline float attest_load(const void *data, uint32_t dtype, int64_t at)
{
    if (dtype == ATTEST_F32)
        return ((const float *)data)[at];
    uint16_t bits = ((const uint16_t *)data)[at];
    return dtype == ATTEST_F16 ? attest_from_f16(bits) : attest_from_bf16(bits);
}

__device__ inline void attest_store(void *data, uint32_t dtype, int64_t at, float value)
{
    if (dtype == ATTEST_F32)
        ((float *)data)[at] = value;
    else
        ((uint16_t *)data)[at] = dtype == ATTEST_F16 ? attest_to_f16(value) : attest_to_bf16(value);
}

/* ---- how a row ends ---- */

/* O is the row's unnormalised sum times `factor`. */
typedef struct attest_ending {
    float factor, lse;
} attest_ending;

/* `m` is the largest score in natural units and `l` the sum of exp(score - m), 0 for a row that sees no key. The sink joins here,
 * where it is just one more term of the sum. */
__device__ inline attest_ending attest_row_ending(const attest_cuda_args &args, float m, float l, int32_t head)
{
    attest_ending ending = {0, -__int_as_float(0x7f800000)};
    if (!attest_has(args, ATTEST_SINK)) {
        if (l != 0)
            ending.factor = 1 / l, ending.lse = m + logf(l);
        return ending;
    }
    float sink = args.sinks[head];
    if (l == 0) {
        ending.lse = sink;
        return ending;
    }
    float top = fmaxf(m, sink), share = expf(m - top), sum = l * share + expf(sink - top);
    ending.factor = share / sum;
    ending.lse = top + logf(sum);
    return ending;
}

#endif /* __CUDACC__ */
#endif
