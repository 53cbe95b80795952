/*
 * misbehave.c - a plain kernel that is right, and with MISBEHAVE set to a name of the list below does one thing that it must not
 * do. For tests/tool/test_executor.c.
 */
#include <attest_kernel.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum misdeed {
#define MISDEED(name, what) name,
#include "misdeeds.def"
#undef MISDEED
};

static enum misdeed misdeed; /* found when the image is loaded */

/* ---- the kernel ----------------------------------------------------------------------------------------------------- */

static float score(const attest_task *task, const attest_row *row, const void *key, int64_t j)
{
    const attest_problem *p = task->problem;
    float sum = 0;
    for (int64_t d = 0; d < p->dim; d++)
        sum += attest_load(row->q, p->dtype, d) * attest_load(key, p->dtype, d);
    sum *= p->scale;
    if (attest_has(p, ATTEST_SOFTCAP))
        sum = p->softcap * tanhf(sum / p->softcap);
    if (attest_has(p, ATTEST_ALIBI)) {
        int64_t distance = (int64_t)row->place - j;
        sum -= row->slope * (float)(distance < 0 ? -distance : distance);
    }
    if (row->bias)
        sum += attest_load(row->bias, p->dtype_bias, j * p->stride_bias[3]);
    return sum;
}

static void compute_row(const attest_task *task, int64_t r, float *o)
{
    const attest_problem *p = task->problem;
    attest_row row = attest_row_get(task, r);
    float m = -INFINITY, l = 0;
    for (int64_t d = 0; d < p->dim_v; d++)
        o[d] = 0;
    for (int64_t j = row.lo; j < row.hi; j++) {
        const void *key, *value;
        attest_key_pointers(task, false, j, 1, &key);
        attest_key_pointers(task, true, j, 1, &value);
        float s = score(task, &row, key, j);
        if (s == -INFINITY)
            continue;
        float top = s > m ? s : m, old = l == 0 ? 0 : expf(m - top), weight = expf(s - top);
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] = o[d] * old + weight * attest_load(value, p->dtype, d);
        l = l * old + weight;
        m = top;
    }
    if (task->partial) {
        float *part = task->partial + (r - task->row_begin) * (p->dim_v + ATTEST_PARTIAL_EXTRA);
        memcpy(part, o, (size_t)p->dim_v * sizeof *o);
        part[p->dim_v] = m;
        part[p->dim_v + 1] = l;
        return;
    }
    attest_ending ending = attest_row_ending(p, m, l, row.sink);
    for (int64_t d = 0; d < p->dim_v; d++)
        attest_store(row.o, p->dtype_o, d, l == 0 ? 0 : o[d] * ending.factor);
    if (row.lse)
        *row.lse = ending.lse;
}

/* ---- misdeeds ------------------------------------------------------------------------------------------------------- */

static volatile int calls;
static volatile float sink_of_reads;
static char *volatile leak;

/* The end of a tensor without gaps. */
static void *end_of(const void *at, int64_t rows, int64_t heads, const attest_problem *p, int64_t bytes)
{
    return (char *)(uintptr_t)at + p->batch * heads * rows * bytes;
}

static volatile int hole;
static int deep(int n)
{
    volatile char room[4096];
    room[n % 4096] = (char)n;
    return n > 1 << 30 ? 0 : deep(n + 1) + room[n % 4096];
}

static void take_and_give_back(size_t size)
{
    volatile char *block = malloc(size);
    for (size_t i = 0; block && i < size; i += 4096)
        block[i] = 1;
    free((void *)(uintptr_t)block);
}

static void *work_later(void *data)
{
    return data;
}

static void ignore_fault(int number)
{
    (void)number;
    _exit(0);
}

static void misbehave(const attest_task *task, char *scratch, int64_t scratch_bytes)
{
    const attest_problem *p = task->problem;
    int64_t size = p->dtype == ATTEST_F32 ? 4 : 2, size_o = p->dtype_o == ATTEST_F32 ? 4 : 2;
    (void)size, (void)size_o, (void)scratch, (void)scratch_bytes;
    switch (misdeed) {
    case CRASH_NULL:
        *(volatile int *)(uintptr_t)(uint64_t)hole = 1;
        break;
    case CRASH_DIVIDE:
        hole = 7 / hole;
        break;
    case CRASH_ABORT:
        abort();
    case CRASH_STACK:
        hole = deep(0);
        break;
    case HANG:
        while (!hole)
            ;
        break;
    case SLEEP:
        for (;;)
            pause();
    case NAP:
        usleep(5000000);
        break;
    case EXIT_ZERO:
        exit(0);
    case EXIT_ZERO_AT_ONCE:
        printf("ok 1 - all tests pass\n");
        fflush(stdout);
        _exit(0);
    case PRINT_PASS:
        printf("verdict: PASS\n");
        fflush(stdout);
        break;
    case PRINT_FLOOD:
        for (int i = 0; i < 20000; i++)
            if (write(1, "PASS PASS PASS PASS PASS PASS PASS PASS PASS PASS PASS PASS PASS\n", 65) < 0)
                break;
        break;
    case FORK:
        fork();
        break;
    case THREAD: {
        pthread_t thread;
        pthread_create(&thread, NULL, work_later, NULL);
        break;
    }
    case EXECUTE:
        execl("/bin/true", "true", NULL);
        break;
    case SOCKET:
        socket(AF_INET, SOCK_STREAM, 0);
        break;
    case SIGNAL_PARENT:
        kill(getppid(), SIGKILL);
        break;
    case SIGNAL_ALL:
        kill(-1, SIGKILL);
        break;
    case TRACE_PARENT:
        syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0);
        break;
    case WRITE_FILE: {
        const char *path = getenv("MISBEHAVE_FILE");
        int file = path ? open(path, O_WRONLY | O_CREAT, 0600) : -1;
        if (file >= 0) {
            ssize_t written = write(file, "wrote", 5);
            (void)written;
            close(file);
        } else {
            printf("open: %s\n", strerror(errno));
            fflush(stdout);
        }
        break;
    }
    case REMOVE_FILE:
        unlink("/tmp/attest_no_such_file");
        break;
    case READ_FILE:
        hole = open("/usr/lib/os-release", O_RDONLY);
        break;
    case PROTECT_INPUT:
        if (mprotect((void *)((uintptr_t)task->tensors->q & ~UINT64_C(4095)), 4096, PROT_READ | PROT_WRITE) != 0)
            printf("mprotect failed\n");
        fflush(stdout);
        break;
    case WRITE_INPUT:
        *(volatile char *)(uintptr_t)task->tensors->k = 1;
        break;
    case READ_BEHIND_K:
        sink_of_reads = *(volatile char *)end_of(task->tensors->k, p->seq_kv, p->heads_kv, p, p->dim * size);
        break;
    case READ_BEFORE_K:
        sink_of_reads = *((volatile const char *)task->tensors->k - 1);
        break;
    case WRITE_BEHIND_O:
        *(volatile char *)end_of(task->tensors->o, p->seq_q, p->heads_q, p, p->dim_v * size_o) = 1;
        break;
    case WRITE_BEFORE_O:
        *((volatile char *)task->tensors->o - 1) = 1;
        break;
    case WRITE_GAP: /* the element behind the last of a row: of problems with gaps between rows */
        attest_store(task->tensors->o, p->dtype_o, p->dim_v, 1);
        break;
    case WRITE_BEHIND_SCRATCH:
        scratch[scratch_bytes] = 1;
        break;
    case WRITE_FAR_BEHIND_SCRATCH:
        scratch[scratch_bytes + 64] = 1;
        break;
    case LEAK_MEMORY:
        leak = malloc(20000);
        if (leak)
            memset(leak, 1, 20000);
        break;
    case LEAK_FILES:
        if (dup(2) < 0)
            break;
        break;
    case HUGE_MEMORY:
        for (int i = 0; i < 64; i++) {
            char *block = malloc(100 << 20);
            if (block)
                memset(block, 1, 100 << 20);
        }
        break;
    case HUGE_MEMORY_SHORTLY:
        take_and_give_back(400 << 20);
        break;
    case HUGE_MEMORY_ABORT:
        take_and_give_back(400 << 20);
        abort();
    case HUGE_SHARED_MEMORY:
        for (int i = 0; i < 30; i++) {
            char *block = mmap(NULL, 100 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
            if (block != MAP_FAILED)
                memset(block, 1, 100 << 20);
        }
        break;
    case CLOSE_CONTROL:
        close(3);
        break;
    case WRITE_CONTROL:
        if (write(3, "PASS", 4) < 0)
            break;
        break;
    case ANSWER_DONE: {
        uint64_t done[142] = {7, 12345}; /* as long as struct ready of protocol.h */
        if (write(3, done, sizeof done) < 0)
            break;
        break;
    }
    case CATCH_FAULTS:
        signal(SIGSEGV, ignore_fault);
        *(volatile int *)(uintptr_t)(uint64_t)hole = 1;
        break;
    default:
        break;
    }
}

static size_t scratch_size(const attest_problem *problem, int64_t tile_rows)
{
    (void)tile_rows;
    if (misdeed == HUGE_WORKSPACE)
        return (size_t)1 << 44;
    return (size_t)problem->dim_v * sizeof(float) + 4;
}

static void tile(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    float *o = scratch, spare = o[p->dim_v];
    calls++;
    if (task->batch == 0 && task->head_kv == 0 && task->row_begin == 0)
        misbehave(task, scratch, (int64_t)scratch_size(p, 1));
    for (int64_t r = task->row_begin; r < task->row_end; r++)
        compute_row(task, r, o);
    if (task->partial || task->row_begin > 0)
        return;
    void *first = attest_row_get(task, 0).o;
    float change = misdeed == UNSTABLE             ? (float)(calls % 7)
                   : misdeed == DEPENDS_ON_SCRATCH ? (float)(attest_float_bits(spare) & 3)
                   : misdeed == DEPENDS_ON_ADDRESS ? (float)((uintptr_t)task->tensors->q >> 12 & 3)
                   : misdeed == DEPENDS_ON_BATCH   ? (float)p->batch
                                                   : 0.0f;
    if (change != 0)
        attest_store(first, p->dtype_o, 0, attest_load(first, p->dtype_o, 0) * (1 + 0.01f * change));
}

static attest_cpu_kernel kernel = {
    .abi = ATTEST_KERNEL_ABI,
    .dtypes = ATTEST_TAKES_F32 | ATTEST_TAKES_F16 | ATTEST_TAKES_BF16,
    .refuses = ATTEST_SINK,
    .name = "misbehave",
    .needs = "",
    .summary = "plain C, one row at a time",
    .tile = tile,
    .scratch_size = scratch_size,
    .row_step = 1,
    .rows_wanted = 64,
};

#ifndef NO_ENTRY
const attest_cpu_kernel *attest_cpu_kernel_entry(void)
{
    if (misdeed == ENTRY_CRASH)
        abort();
    if (misdeed == WRONG_ABI)
        kernel.abi = 99;
    if (misdeed == WRONG_NAME)
        kernel.name = "a name";
    if (misdeed == NEEDS_UNKNOWN)
        kernel.needs = "quantum";
    if (misdeed == BAD_TABLE)
        kernel.scratch_size = NULL;
    return misdeed == ENTRY_NULL ? NULL : &kernel;
}
#endif

__attribute__((constructor)) static void construct(void)
{
    static const char *const names[] = {
#define MISDEED(name, what) #name,
#include "misdeeds.def"
#undef MISDEED
    };
    const char *wanted = getenv("MISBEHAVE");
    for (size_t i = 0; wanted && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], wanted) == 0)
            misdeed = (enum misdeed)i;
    if (misdeed == CONSTRUCTOR_SOCKET)
        socket(AF_INET, SOCK_STREAM, 0);
    if (misdeed == CONSTRUCTOR_EXIT)
        exit(0);
}
