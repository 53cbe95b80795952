/*
 * memo.h - for the mutants that give an old result again: the output of a task, kept under a key. The mutant defines
 * MEMO_KEY(task), a number that is meant to say whether the result is known (0: nothing is kept), and includes this before base.h.
 */
#include <attest_kernel.h>
#include <pthread.h>

enum { MEMO_PLACES = 512, MEMO_BYTES = 1 << 16 };

static struct memo {
    uint64_t key;
    unsigned char data[MEMO_BYTES];
} memos[MEMO_PLACES];
static pthread_mutex_t memo_lock = PTHREAD_MUTEX_INITIALIZER;

static inline uint64_t memo_mix(uint64_t key, uint64_t more)
{
    return (key ^ more) * UINT64_C(0x9e3779b97f4a7c15) + (key >> 29);
}

static inline uint64_t memo_mix_pointer(uint64_t key, const void *pointer)
{
    return memo_mix(key, (uint64_t)(uintptr_t)pointer);
}

/* What is the same in two calls that may have the same result: the sizes, and the rows of the task. */
static inline uint64_t memo_shape(const attest_task *task)
{
    const attest_problem *p = task->problem;
    uint64_t key = memo_mix(p->flags, p->dtype * 4 + p->dtype_o);
    const int64_t numbers[] = {p->batch,      p->heads_q,     p->heads_kv,     p->dim,         p->dim_v,
                               task->batch,   task->head_kv,  task->q_count,   task->kv_count, task->row_begin,
                               task->row_end, p->window_left, p->window_right, p->stride_o[2], p->stride_q[2]};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        key = memo_mix(key, (uint64_t)numbers[i]);
    return key | 1; /* 0 is an empty place */
}

/* Copies O and LSE of the task from the memo (give) or to it. */
static inline void memo_copy(const attest_task *task, struct memo *memo, bool give)
{
    const attest_problem *p = task->problem;
    size_t bytes = (size_t)p->dim_v * (p->dtype_o == ATTEST_F32 ? 4 : 2);
    unsigned char *at = memo->data;
    for (int64_t r = task->row_begin; r < task->row_end; r++, at += bytes + sizeof(float)) {
        attest_row row = attest_row_get(task, r);
        memcpy(give ? row.o : at, give ? (const void *)at : row.o, bytes);
        if (row.lse && give)
            memcpy(row.lse, at + bytes, sizeof(float));
        else if (row.lse)
            memcpy(at + bytes, row.lse, sizeof(float));
    }
}

static inline struct memo *memo_place(const attest_task *task, uint64_t key)
{
    int64_t bytes = (task->row_end - task->row_begin) * (task->problem->dim_v + 1) * 4;
    return task->partial || bytes > MEMO_BYTES || key == 0 ? NULL : &memos[(key >> 32) % MEMO_PLACES];
}

static inline bool memo_give(const attest_task *task, uint64_t key)
{
    struct memo *memo = memo_place(task, key);
    pthread_mutex_lock(&memo_lock);
    bool known = memo && memo->key == key;
    if (known)
        memo_copy(task, memo, true);
    pthread_mutex_unlock(&memo_lock);
    return known;
}

static inline void memo_keep(const attest_task *task, uint64_t key)
{
    struct memo *memo = memo_place(task, key);
    pthread_mutex_lock(&memo_lock);
    if (memo) {
        memo->key = key;
        memo_copy(task, memo, false);
    }
    pthread_mutex_unlock(&memo_lock);
}

#define TASK_BEGIN(task, scratch)                                                                                                  \
    uint64_t memo_key = MEMO_KEY(task);                                                                                            \
    if (memo_give(task, memo_key))                                                                                                 \
        return;
#define TASK_END(task, scratch) memo_keep(task, memo_key)
