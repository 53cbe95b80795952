/*
 * Fuzzer of the API's arguments: a small problem is drawn from the input, some of its fields are overwritten with anything at
 * all, and its lengths and page tables are raw bytes. Whatever the library accepts it must run without touching a byte that is
 * not its own; whatever it refuses must come with a sentence and without a write.
 */
#include "fuzz_main.h"

#include <attest.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 1 << 15, MOST_WORK = 1 << 20, POISON = 0xA7 };

static void demand(int condition)
{
    if (!condition)
        abort();
}

struct reader {
    const uint8_t *at, *end;
};

static uint64_t take(struct reader *reader, size_t bytes)
{
    uint64_t value = 0;
    for (size_t n = 0; n < bytes; n++)
        value |= (uint64_t)(reader->at < reader->end ? *reader->at++ : 0) << (8 * n);
    return value;
}

/* Fills with input bytes, which repeat when they run out. */
static void fill(void *to, size_t size, struct reader *reader)
{
    size_t have = (size_t)(reader->end - reader->at);
    for (size_t n = 0; n < size; n++)
        ((uint8_t *)to)[n] = have ? reader->at[n % have] : (uint8_t)(n * 37);
}

static void draw_problem(attest_problem *p, struct reader *reader)
{
    uint32_t dtype = 1 + (uint32_t)take(reader, 1) % 3;
    int64_t batch = (int64_t)take(reader, 1) % 4, heads_kv = 1 + (int64_t)take(reader, 1) % 3;
    int64_t heads_q = heads_kv * (1 + (int64_t)take(reader, 1) % 4), seq_q = (int64_t)take(reader, 1) % 40;
    int64_t seq_kv = (int64_t)take(reader, 1) % 90, dim = 1 + (int64_t)take(reader, 1) % 80;
    attest_problem_init(p, (attest_dtype)dtype, batch, heads_q, heads_kv, seq_q, seq_kv, dim);
    p->dim_v = 1 + (int64_t)take(reader, 1) % 80;
    p->flags = take(reader, 2) & 0x3FFF;
    if (p->flags & ATTEST_BIAS)
        p->dtype_bias = take(reader, 1) % 2 ? dtype : ATTEST_F32;
    if (p->flags & ATTEST_SOFTCAP)
        p->softcap = (float)(1 + take(reader, 1));
    if (p->flags & ATTEST_WINDOW_LEFT)
        p->window_left = (int64_t)take(reader, 1);
    if (p->flags & ATTEST_WINDOW_RIGHT)
        p->window_right = (int64_t)take(reader, 1);
    if (p->flags & ATTEST_VARLEN_Q)
        p->total_q = (int64_t)take(reader, 1);
    if (p->flags & ATTEST_VARLEN_KV)
        p->total_kv = (int64_t)take(reader, 1);
    if (p->flags & ATTEST_PAGED) {
        p->page_size = 1 + (int64_t)take(reader, 1) % 20;
        p->page_count = (int64_t)take(reader, 1) % 100;
    }
    attest_problem_pack(p);
    for (uint64_t n = take(reader, 1) % 5; n > 0; n--) {
        size_t slot = 1 + take(reader, 1) % (sizeof *p / 8 - 1);
        static const uint64_t special[] = {0,  1, UINT64_MAX, UINT64_C(1) << 63, INT64_MAX, UINT64_C(1) << 31, UINT64_C(1) << 32,
                                           513};
        uint64_t kind = take(reader, 1), value = kind < 8 ? special[kind] : kind < 128 ? kind : take(reader, 8);
        memcpy((char *)p + 8 * slot, &value, sizeof value);
    }
}

/* The tensors in blocks of exactly the size the problem gives them. */
struct memory {
    void *blocks[12];
    int count;
    bool refused; /* too large for a fuzzer */
};

static void *block(struct memory *memory, int64_t first, int64_t count, size_t element, struct reader *reader)
{
    if (count > MOST_ELEMENTS || first < -MOST_ELEMENTS) {
        memory->refused = true;
        return NULL;
    }
    uint8_t *bytes = malloc(count ? (size_t)count * element : 1);
    demand(bytes != NULL);
    fill(bytes, (size_t)count * element, reader);
    memory->blocks[memory->count++] = bytes;
    return (void *)((uintptr_t)bytes - (uintptr_t)(first * (int64_t)element));
}

static void *tensor(struct memory *memory, const attest_problem *p, char letter, uint32_t dtype, struct reader *reader)
{
    int64_t first, count;
    demand(attest_problem_extent(p, letter, &first, &count) == ATTEST_OK);
    return block(memory, first, count, dtype == ATTEST_F32 ? 4 : 2, reader);
}

static void make_tensors(struct memory *m, const attest_problem *p, attest_tensors *t, struct reader *reader)
{
    memset(t, 0, sizeof *t);
    t->size = sizeof *t;
    t->q = tensor(m, p, 'q', p->dtype, reader);
    t->k = tensor(m, p, 'k', p->dtype, reader);
    t->v = tensor(m, p, 'v', p->dtype, reader);
    t->o = tensor(m, p, 'o', p->dtype_o, reader);
    if (p->flags & ATTEST_LSE)
        t->lse = tensor(m, p, 'l', ATTEST_F32, reader);
    if (p->flags & ATTEST_BIAS)
        t->bias = tensor(m, p, 'b', p->dtype_bias, reader);
    if (p->flags & ATTEST_ALIBI)
        t->alibi_slopes = block(m, 0, p->heads_q, 4, reader);
    if (p->flags & ATTEST_SINK)
        t->sinks = block(m, 0, p->heads_q, 4, reader);
    if (p->flags & ATTEST_VARLEN_Q)
        t->cu_seqlens_q = block(m, 0, p->batch + 1, 4, reader);
    if (p->flags & ATTEST_VARLEN_KV)
        t->cu_seqlens_kv = block(m, 0, p->batch + 1, 4, reader);
    if (p->flags & ATTEST_KV_LENGTHS)
        t->kv_lengths = block(m, 0, p->batch, 4, reader);
    if (p->flags & ATTEST_PAGED) {
        int64_t pages = (p->seq_kv + p->page_size - 1) / p->page_size;
        bool fits = p->batch <= 1 || p->stride_page_table <= MOST_ELEMENTS;
        t->page_table = block(m, 0,
                              !fits               ? MOST_ELEMENTS + 1
                              : p->batch && pages ? (p->batch - 1) * p->stride_page_table + pages
                                                  : 0,
                              4, reader);
    }
}

/* Lengths that are mostly valid: raw bytes are folded into range unless the input's first byte says otherwise. */
static void tame(const attest_problem *p, attest_tensors *t)
{
    int32_t *cu_q = (int32_t *)(uintptr_t)t->cu_seqlens_q, *cu_kv = (int32_t *)(uintptr_t)t->cu_seqlens_kv;
    int32_t *lengths = (int32_t *)(uintptr_t)t->kv_lengths, *pages = (int32_t *)(uintptr_t)t->page_table;
    for (int64_t b = 0; b <= p->batch; b++) {
        if (cu_q)
            cu_q[b] = b ? cu_q[b - 1] + (int32_t)((uint32_t)cu_q[b] % (uint64_t)(p->seq_q + 1)) : 0;
        if (cu_kv)
            cu_kv[b] = b ? cu_kv[b - 1] + (int32_t)((uint32_t)cu_kv[b] % (uint64_t)(p->seq_kv + 1)) : 0;
        if (lengths && b < p->batch)
            lengths[b] = (int32_t)((uint32_t)lengths[b] % (uint64_t)(p->seq_kv + 1));
        for (int64_t n = 0; pages && p->page_count && b < p->batch && n * p->page_size < p->seq_kv; n++) {
            int32_t *page = &pages[b * p->stride_page_table + n];
            *page = (int32_t)((uint32_t)*page % (uint64_t)p->page_count);
        }
    }
}

static void run_all(attest_context *context, const attest_problem *p, const attest_tensors *t)
{
    int64_t first, count;
    demand(attest_problem_extent(p, 'o', &first, &count) == ATTEST_OK);
    size_t bytes = (size_t)count * (p->dtype_o == ATTEST_F32 ? 4 : 2);
    uint8_t *o = (uint8_t *)t->o + first * (p->dtype_o == ATTEST_F32 ? 4 : 2);
    for (size_t k = 0; k < attest_kernel_count(); k++) {
        attest_kernel_info info = {.size = sizeof info};
        attest_plan *plan = NULL;
        demand(attest_kernel_get(k, &info) == ATTEST_OK);
        if (attest_plan_create(context, p, info.name, &plan) != ATTEST_OK) {
            demand(attest_context_detail(context)[0] != '\0');
            continue;
        }
        size_t size = attest_plan_workspace_size(plan);
        void *workspace = aligned_alloc(64, (size + 127) / 64 * 64);
        demand(workspace != NULL);
        memset(workspace, 0xFF, size);
        memset(o, POISON, bytes);
        attest_status status = attest_run(context, plan, t, workspace, size, NULL);
        if (status != ATTEST_OK) {
            demand(attest_context_detail(context)[0] != '\0');
            for (size_t n = 0; n < bytes; n++)
                demand(o[n] == POISON);
        }
        free(workspace);
        attest_plan_destroy(plan);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader reader = {data, data + size};
    attest_problem p;
    char why[300] = "", text[ATTEST_PROBLEM_TEXT];
    bool wild = take(&reader, 1) % 4 == 0;
    attest_context *context = NULL;
    demand(attest_context_create(&context) == ATTEST_OK);
    attest_context_set_threads(context, 1 + (int)(take(&reader, 1) % 3));
    draw_problem(&p, &reader);
    attest_status status = attest_problem_check(&p, why, sizeof why);
    demand((status == ATTEST_OK) == (why[0] == '\0'));
    demand(status == attest_problem_print(&p, text, sizeof text));
    if (status == ATTEST_OK) {
        attest_problem again;
        demand(attest_problem_parse(text, &again, NULL, 0) == ATTEST_OK && !memcmp(&p, &again, sizeof p));
        struct memory memory = {0};
        attest_tensors t;
        make_tensors(&memory, &p, &t, &reader);
        double work = (double)p.batch * (double)p.heads_q * (double)p.seq_q * (double)p.seq_kv * (double)(p.dim + p.dim_v);
        if (!memory.refused && work <= MOST_WORK) {
            if (!wild)
                tame(&p, &t);
            run_all(context, &p, &t);
        }
        for (int n = 0; n < memory.count; n++)
            free(memory.blocks[n]);
    } else {
        attest_plan *plan = NULL;
        demand(attest_plan_create(context, &p, NULL, &plan) == status && !plan);
    }
    attest_context_destroy(context);
    return 0;
}
