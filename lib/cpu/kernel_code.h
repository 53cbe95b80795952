/*
 * kernel_code.h - the end of every kernel file: its table. The includer defines KERNEL, which is also the stem of its file name,
 * and what the table says of it: DTYPES, REFUSES, NEEDS, SUMMARY, and if it prepares keys PREPARE and SHARED_SIZE. Compiled alone
 * with ATTEST_STANDALONE, the file is a kernel as anyone else would write one, and that is how it is proven.
 */
static void tile(const attest_task *task, void *scratch)
{
    int64_t group = task->problem->heads_q / task->problem->heads_kv;
    if (task->q_count * group <= DECODE_ROWS)
        decode_tile(task, scratch);
    else
        rows_tile(task, scratch);
}

static size_t scratch_size(const attest_problem *p, int64_t tile_rows)
{
    struct tile sizes;
    size_t rows = tile_carve(&sizes, p, tile_rows, NULL), decode = decode_scratch_size(p);
    return rows > decode ? rows : decode;
}

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

const attest_cpu_kernel KERNEL = {
    .abi = ATTEST_KERNEL_ABI,
    .dtypes = DTYPES,
    .refuses = REFUSES,
    .name = STRING(KERNEL),
    .needs = NEEDS,
    .summary = SUMMARY,
    .tile = tile,
    .scratch_size = scratch_size,
#ifdef PREPARE
    .shared_size = SHARED_SIZE,
    .prepare = PREPARE,
#endif
    .row_step = MICRO_ROWS,
    .rows_wanted = ROWS_WANTED,
};

#ifdef ATTEST_STANDALONE
const attest_cpu_kernel *attest_cpu_kernel_entry(void)
{
    return &KERNEL;
}
#endif
