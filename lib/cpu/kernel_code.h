/*
 * kernel_code.h - the end of every kernel file: what it offers to the scheduler. The includer defines CODE, its cpu_code.
 */
static void tile(const struct cpu_task *task, void *scratch)
{
    int64_t group = task->p->heads_q / task->p->heads_kv;
    if (task->seq.q_len * group <= DECODE_ROWS)
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

#ifdef TILE_MATRIX_UNIT
const struct cpu_code CODE = {tile, scratch_size, v_size, prepare_v, MICRO_ROWS, ROWS_WANTED};
#else
const struct cpu_code CODE = {tile, scratch_size, NULL, NULL, MICRO_ROWS, ROWS_WANTED};
#endif
