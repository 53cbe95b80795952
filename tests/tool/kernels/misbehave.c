/*
 * misbehave.c - a plain kernel that is right, and does one thing that it must not do if its file is called after it: NAME.so, with a
 * name of misdeeds.def. (There is no environment to read it from.) For tests/tool/test_executor.c.
 */
#include <attest_kernel.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum misdeed {
#define MISDEED(name, what) name,
#include "misdeeds.def"
#undef MISDEED
};

static enum misdeed misdeed; /* found when the image is loaded */
static char file_to_write[4096];
static attest_cpu_kernel kernel;

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

enum { ANSWER_WORDS = 193 }; /* struct ready of protocol.h is as long */

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

#if defined(__x86_64__)
static void change_mxcsr(uint32_t set, uint32_t clear)
{
    uint32_t value;
    __asm__ volatile("stmxcsr %0" : "=m"(value));
    value = (value | set) & ~clear;
    __asm__ volatile("ldmxcsr %0" : : "m"(value));
}

static void set_control(uint16_t value)
{
    __asm__ volatile("fldcw %0" : : "m"(value));
}

/* Registers, which no system call is needed for. */
static void disturb_registers(void)
{
    volatile long double wide = 1.0L;
    uint32_t low, high;
    long result;
    switch (misdeed) {
    case LEAVE_FLUSH:
        change_mxcsr(1 << 15, 0);
        break;
    case LEAVE_DENORMALS:
        change_mxcsr(1 << 6, 0);
        break;
    case LEAVE_ROUNDING:
        fesetround(FE_UPWARD);
        break;
    case LEAVE_UNMASKED:
        change_mxcsr(0, 1 << 9);
        break;
    case LEAVE_PRECISION:
        set_control(0x27f);
        break;
    case LEAVE_X87:
        __asm__ volatile("fld1");
        break;
    case LEAVE_MMX:
        __asm__ volatile("pxor %mm0, %mm0");
        break;
    case LEAVE_DIRECTION:
        __asm__ volatile("std");
        break;
    case LEAVE_ALIGNMENT:
        __asm__ volatile("subq $128, %%rsp; pushfq; orl $0x40000, (%%rsp); popfq; addq $128, %%rsp" : : : "cc", "memory");
        break;
    case KEEP_STATE:
        change_mxcsr(1 << 15 | 1 << 6, 0);
        change_mxcsr(0, 1 << 15 | 1 << 6);
        set_control(0x27f);
        wide = wide / 3;
        set_control(0x37f);
        feraiseexcept(FE_INEXACT | FE_UNDERFLOW);
        break;
    case READ_COUNTER:
        __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
        break;
    case OWN_CALL:
        __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_getpid) : "rcx", "r11", "memory");
        break;
    default:
        break;
    }
}
#else
static void disturb_registers(void) {}
#endif

static void do_nothing(int number)
{
    (void)number;
}

/* A page of the constants of the C library. */
static char *constants_of_libc(void)
{
    Dl_info info;
    return dladdr((void *)(uintptr_t)&fclose, &info) ? info.dli_fbase : NULL;
}

/* Puts another address into the table of addresses (GOT) of a library: the last one, which is not used in a run. */
static int patch_table(struct dl_phdr_info *object, size_t size, void *data)
{
    const ElfW(Dyn) *entry = NULL;
    void **table = NULL;
    size_t count = 0;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum && strstr(object->dlpi_name, "libgomp"); i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_PLTGOT)
            table = (void **)entry->d_un.d_ptr;
        if (entry->d_tag == DT_PLTRELSZ)
            count = entry->d_un.d_val / sizeof(ElfW(Rela));
    }
    if (table)
        table[count + 2] = data;
    return table != NULL;
}

/* State of the process. */
static void disturb_process(void)
{
    struct sigaction action = {.sa_handler = do_nothing};
    struct rlimit few = {100, 100};
    sigset_t set;
    cpu_set_t processors;
    timer_t timer;
    char *page;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    switch (misdeed) {
    case LEAVE_HANDLER:
        sigaction(SIGCONT, &action, NULL);
        break;
    case LEAVE_BLOCKED:
        sigprocmask(SIG_BLOCK, &set, NULL);
        break;
    case LEAVE_PENDING:
        raise(SIGCHLD);
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGUSR1);
        break;
    case LEAVE_LIMIT:
        setrlimit(RLIMIT_NOFILE, &few);
        break;
    case LEAVE_ENVIRONMENT:
        setenv("ATTEST_SEEN", "1", 1);
        break;
    case LEAVE_VARIABLE:
        for (char **variable = environ; *variable; variable++)
            (*variable)[0] ^= 1;
        break;
    case LEAVE_FOLDER:
        hole = chdir("/usr");
        hole = 0;
        break;
    case LEAVE_UMASK:
        umask(0123);
        break;
    case LEAVE_AFFINITY:
        CPU_ZERO(&processors);
        CPU_SET(0, &processors);
        sched_setaffinity(0, sizeof processors, &processors);
        break;
    case LEAVE_NICE:
        setpriority(PRIO_PROCESS, 0, 7);
        break;
    case LEAVE_TIMER:
        timer_create(CLOCK_MONOTONIC, NULL, &timer);
        break;
    case LEAVE_MAPPING:
        mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        break;
    case LEAVE_UNMAPPED:
        if ((page = constants_of_libc()))
            munmap(page + 4096, 4096);
        break;
    case PATCH_CONSTANTS:
        if ((page = constants_of_libc())) {
            static char copy[4096];
            memcpy(copy, page + 4096, sizeof copy);
            mmap(page + 4096, sizeof copy, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
            memcpy(page + 4096, copy, sizeof copy);
        }
        break;
    case PATCH_TABLE:
        dl_iterate_phdr(patch_table, &action);
        break;
    case PATCH_CODE:
        mprotect((void *)((uintptr_t)&do_nothing & ~UINT64_C(4095)), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
        break;
    case MAKE_CODE:
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        break;
    case SWAP_FILES:
        dup2(2, 3);
        break;
    case SWAP_TABLE:
        kernel.tile = NULL;
        break;
    case READ_CLOCK: {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        break;
    }
    default:
        break;
    }
}

/* Looks for the request in the writable memory of the program, and answers it. */
static int answer_request(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size, (void)data;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W))
            continue;
        const char *begin = (const char *)object->dlpi_addr + segment->p_vaddr;
        for (size_t at = 0; at + 16 <= segment->p_memsz; at += 16) {
            struct {
                uint32_t kind, end;
                uint64_t number;
            } head;
            memcpy(&head, begin + at, sizeof head);
            if (head.kind != 4 || head.end != 0 || head.number < UINT64_C(1) << 32) /* MESSAGE_RUN of protocol.h */
                continue;
            uint64_t done[ANSWER_WORDS] = {8, head.number}; /* MESSAGE_DONE */
            send(3, done, sizeof done, 0);
        }
    }
    return 1; /* the program itself is the first object */
}

/* State that a kernel could keep where nothing is looked at: its results depend on what an earlier call has left there. */
static __attribute__((noinline)) int count_in_stack(void)
{
    volatile uint64_t room[256];
    int seen = room[100] == UINT64_C(0x1234567890abcdef);
    room[100] = UINT64_C(0x1234567890abcdef);
    return seen;
}

static __attribute__((noinline)) int count_in_registers(void)
{
#if defined(__x86_64__)
    const uint64_t mark = UINT64_C(0x1234567890abcdef);
    uint64_t found;
    __asm__ volatile("movq %%xmm15, %0\n\tmovq %1, %%xmm15" : "=&r"(found) : "r"(mark));
    return found == mark;
#else
    return 0;
#endif
}

static void misbehave(const attest_task *task, char *scratch, int64_t scratch_bytes)
{
    const attest_problem *p = task->problem;
    int64_t size = p->dtype == ATTEST_F32 ? 4 : 2, size_o = p->dtype_o == ATTEST_F32 ? 4 : 2;
    (void)size, (void)size_o, (void)scratch, (void)scratch_bytes;
    disturb_process();
    disturb_registers();
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
        const char *path = file_to_write;
        int file = *path ? open(path, O_WRONLY | O_CREAT, 0600) : -1;
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
        if (send(3, "PASS", 4, 0) < 0)
            break;
        break;
    case ANSWER_DONE: {
        uint64_t done[ANSWER_WORDS] = {8, 12345};
        if (send(3, done, sizeof done, 0) < 0)
            break;
        break;
    }
    case ANSWER_RIGHTLY:
        dl_iterate_phdr(answer_request, NULL);
        break;
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
    if (misdeed == SIZES_ROUNDING)
        fesetround(FE_UPWARD);
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
                   : misdeed == COUNT_IN_STACK     ? (float)count_in_stack()
                   : misdeed == COUNT_IN_REGISTERS ? (float)count_in_registers()
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
#if defined(__x86_64__)
    if (misdeed == ENTRY_FLUSH)
        change_mxcsr(1 << 15, 0);
#endif
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
    char path[4200], *name, *end;
    Dl_info info;
    if (!dladdr(names, &info) || snprintf(path, sizeof path, "%s", info.dli_fname) >= (int)sizeof path ||
        !(name = strrchr(path, '/')))
        return;
    if ((end = strchr(name, '.')))
        *end = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name + 1) == 0)
            misdeed = (enum misdeed)i;
    strcpy(name, "/misdeed.txt");
    int file = misdeed == WRITE_FILE ? open(path, O_RDONLY) : -1;
    if (file >= 0 && read(file, file_to_write, sizeof file_to_write - 1) < 0)
        file_to_write[0] = '\0';
    if (file >= 0)
        close(file);
#if defined(__x86_64__)
    long result;
    if (misdeed == OWN_CALL_LOADING)
        __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_getpid) : "rcx", "r11", "memory");
#endif
    if (misdeed == CONSTRUCTOR_SOCKET)
        socket(AF_INET, SOCK_STREAM, 0);
    if (misdeed == CONSTRUCTOR_EXIT)
        exit(0);
}
