/*
 * worker.c - the process that a kernel runs in (see executor.h and protocol.h).
 *
 * The kernel shares this process. So nothing here is a judgement: expected values, verdict and clock are in the supervisor, and this
 * code maps tensors, calls libattest, and answers. What a kernel could change in here to hide something from these lines is either in
 * memory that it cannot write (text, constants, and tables that are made read-only before it is called) or is looked at from outside
 * (state.c).
 *
 * The order at the start matters. Features of the processor are asked for first; files are closed off; the threads are started, so
 * that they are closed off too; then clocks and system calls, for all threads, after which no thread can be started; then the words
 * that say what this process is are overwritten. Now the supervisor takes down what state the process is in, and only then is the image
 * loaded, and its constructors, if it has any, run under all filters. Once it is loaded, the last filter leaves only what it takes to
 * run a kernel (sandbox.c).
 */
#include "worker.h"

#include <attest_kernel.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <omp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "far_strides.h"
#include "protocol.h"
#include "cuda/cuda_index.h"
#include "kernel_table.h"
#include "worker_surroundings.h"
#include "registers.h"
#include "base/rubbish.h"
#include "sandbox.h"
#include "scratch.h"
#include "worker_device.h"

extern char **environ;

enum { ALTERNATE_STACK = 1 << 16 }; /* bytes; a frame with AVX-512 and AMX state takes about 12 KiB */

struct mapping {
    unsigned char *base; /* of everything that was reserved */
    size_t size;
};

struct worker_slot {
    struct mapping mapping;
    struct device_slot device; /* on a GPU, instead of the mapping */
    attest_plan *plan;
    attest_tensors tensors;
};

static struct worker {
    struct hello hello;
    attest_context *context;
    struct board *board;
    const char *kernel; /* name to make plans with; NULL: the library's choice */
    bool on_device;
    struct cuda_loaded loaded; /* the candidate on a GPU */
    struct device_workspace device_workspace;
    struct kernel_facts facts;
    struct worker_slot slots[EXECUTOR_SLOTS];
    struct mapping room; /* of the workspace */
    unsigned char *workspace;
    size_t workspace_size;
    bool filtered; /* system calls are */
    enum sandbox_level level;
    void (*poison)(void const volatile *, size_t), (*unpoison)(void const volatile *, size_t); /* of AddressSanitizer, or NULL */
} worker;

/* ---- answers -------------------------------------------------------------------------------------------------------- */

static struct ready answer;

/* Notes why a request cannot be served. Returns false, so that a function can end with it. */
static bool refuse(enum execution_end end, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(enum execution_end end, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(answer.sentence, sizeof answer.sentence, format, arguments);
    va_end(arguments);
    answer.head.end = end;
    return false;
}

static void say(const void *message, size_t size)
{
    while (send(CONTROL_FILE, message, size, MSG_NOSIGNAL) < 0)
        if (errno != EINTR)
            _exit(EXIT_LOST);
}

static void say_answer(enum message_kind kind, uint64_t number, bool good)
{
    answer.head.kind = kind;
    answer.head.number = number;
    if (good)
        answer.head.end = EXECUTION_DONE;
    say(&answer, sizeof answer);
}

static void say_ready(uint64_t number, bool good)
{
    say_answer(MESSAGE_READY, number, good);
}

/* A message with the files that came along. */
static ssize_t hear(void *message, size_t size, int *files, int most_files)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    struct iovec vector = {message, size};
    struct msghdr envelope = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t got;
    while ((got = recvmsg(CONTROL_FILE, &envelope, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    for (int i = 0; i < most_files; i++)
        files[i] = -1;
    const struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&envelope) : NULL;
    if (head && head->cmsg_type == SCM_RIGHTS) {
        size_t bytes = head->cmsg_len - CMSG_LEN(0);
        if (bytes <= (size_t)most_files * sizeof *files)
            memcpy(files, CMSG_DATA(head), bytes);
    }
    return got;
}

/* ---- crashes -------------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* What kind of instruction was refused by the processor, which has read it: its bytes can be read. */
static enum faulting find_faulting(const siginfo_t *info, const unsigned char *at)
{
    if (info->si_code != SI_KERNEL || at[0] != 0x0f)
        return FAULTING_OTHER;
    bool counter = at[1] == 0x31 || (at[1] == 0x01 && (at[2] == 0xf9 || at[2] == 0xfd)); /* rdtsc, rdtscp, rdpru */
    return counter ? FAULTING_COUNTER : at[1] == 0xa2 ? FAULTING_CPUID : FAULTING_OTHER;
}
#endif

/* Notes what happened on the board. The default action is in place again (SA_RESETHAND), so the signal comes back and ends the
 * process. */
static void note_crash(int number, siginfo_t *info, void *context)
{
    struct board *board = worker.board;
    board->written = -1;
    board->address = (uint64_t)(uintptr_t)info->si_addr;
#if defined(__x86_64__)
    const ucontext_t *state = context;
    if (number == SIGSEGV) {
        board->written = (state->uc_mcontext.gregs[REG_ERR] & 2) != 0;
        board->faulting = (int32_t)find_faulting(info, (const unsigned char *)state->uc_mcontext.gregs[REG_RIP]);
    }
    board->stack = (uint64_t)state->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    const ucontext_t *state = context;
    board->stack = state->uc_mcontext.sp;
#else
    (void)context;
#endif
    scratch_range(&board->scratch_begin, &board->scratch_end);
    if (number == SIGSYS) {
        board->call = info->si_syscall;
        board->foreign = info->si_errno == SANDBOX_FOREIGN;
    }
    board->signal = number;
    if (number == SIGSYS) /* the call would return and not be made again */
        raise(SIGSYS);
}

/* A stack to handle a signal on, for this thread. */
static void make_alternate_stack(void)
{
    stack_t stack = {.ss_size = ALTERNATE_STACK};
    stack.ss_sp = mmap(NULL, ALTERNATE_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp != MAP_FAILED)
        sigaltstack(&stack, NULL);
}

static void watch_for_crashes(void)
{
    static const int fatal[] = {SIGSYS, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    int count = worker.poison ? 1 : COUNT_OF(fatal); /* a sanitizer has its own handlers for the others */
    for (int i = 0; i < count; i++) {
        struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | (int)SA_RESETHAND};
        action.sa_sigaction = note_crash;
        sigaction(fatal[i], &action, NULL);
    }
}

/* ---- loading the kernel --------------------------------------------------------------------------------------------- */

/* What the library's own kernels take is found by asking for plans. */
static void probe_facts(struct kernel_facts *facts)
{
    static const attest_dtype dtypes[] = {ATTEST_F32, ATTEST_F16, ATTEST_BF16};
    attest_problem problem;
    attest_plan *plan;
    attest_dtype taken = ATTEST_F32;
    for (int i = 0; i < COUNT_OF(dtypes); i++) {
        attest_problem_init(&problem, dtypes[i], 1, 1, 1, 1, 1, 1);
        if (attest_plan_create(worker.context, &problem, worker.kernel, &plan) == ATTEST_ERROR_UNSUPPORTED)
            continue;
        attest_plan_destroy(plan);
        facts->dtypes |= 1u << dtypes[i];
        taken = dtypes[i];
    }
    for (int bit = 0; bit < 14; bit++) {
        uint64_t flag = UINT64_C(1) << bit;
        attest_problem_init(&problem, taken, 1, 1, 1, 1, 1, 1);
        problem.flags |= flag;
        problem.softcap = flag == ATTEST_SOFTCAP ? 1 : 0;
        problem.dtype_bias = flag == ATTEST_BIAS ? taken : 0;
        problem.total_q = flag == ATTEST_VARLEN_Q;
        problem.total_kv = flag == ATTEST_VARLEN_KV;
        problem.page_size = problem.page_count = flag == ATTEST_PAGED;
        attest_problem_pack(&problem);
        if (attest_plan_create(worker.context, &problem, worker.kernel, &plan) == ATTEST_ERROR_UNSUPPORTED)
            facts->refuses |= flag;
        attest_plan_destroy(plan);
    }
}

/* A kernel of the library for GPUs: its name says the type. What else it does not take it says problem by problem. */
static void guess_facts(struct kernel_facts *facts)
{
    facts->dtypes = (strstr(facts->name, "_f32_") ? ATTEST_TAKES_F32 : 0u) |
                    (strstr(facts->name, "_f16_") ? ATTEST_TAKES_F16 : 0u) |
                    (strstr(facts->name, "_bf16_") ? ATTEST_TAKES_BF16 : 0u);
}

/* The kernel of that name; or, without a name, whatever the library chooses for each problem. */
static bool find_library_kernel(void)
{
    attest_kernel_info info = {.size = sizeof info};
    if (!worker.hello.name[0]) {
        snprintf(worker.facts.name, sizeof worker.facts.name, "library");
        worker.facts.dtypes = ATTEST_TAKES_F32 | ATTEST_TAKES_F16 | ATTEST_TAKES_BF16;
        return true;
    }
    for (size_t i = 0; i < attest_kernel_count(); i++) {
        if (attest_kernel_get(i, &info) != ATTEST_OK || strcmp(info.name, worker.hello.name) != 0)
            continue;
        worker.kernel = info.name;
        snprintf(worker.facts.name, sizeof worker.facts.name, "%s", info.name);
        snprintf(worker.facts.needs, sizeof worker.facts.needs, "%s", info.needs);
        snprintf(worker.facts.summary, sizeof worker.facts.summary, "%s", info.summary);
        if (worker.on_device)
            guess_facts(&worker.facts);
        else
            probe_facts(&worker.facts);
        return true;
    }
    return refuse(EXECUTION_INVALID, "no kernel of this build is called %.100s; 'attest list' names them", worker.hello.name);
}

static bool load_image(void)
{
    void *image = dlopen(worker.hello.name, RTLD_NOW | RTLD_LOCAL);
    if (!image)
        return refuse(EXECUTION_INVALID, "it cannot be loaded: %.500s", dlerror());
    const attest_cpu_kernel *(*entry)(void) = NULL;
    void *symbol = dlsym(image, ATTEST_CPU_KERNEL_ENTRY);
    memcpy(&entry, &symbol, sizeof entry);
    if (!entry)
        return refuse(EXECUTION_INVALID, "it does not export " ATTEST_CPU_KERNEL_ENTRY "; see attest_kernel.h");
    registers_before(true);
    const attest_cpu_kernel *kernel = entry();
    registers_after(FUNCTION_ENTRY, true);
    if (!kernel)
        return refuse(EXECUTION_INVALID, ATTEST_CPU_KERNEL_ENTRY " returned NULL");
    /* The table is checked by libattest, which is given the one of kernel_table.c if it could be one. */
    if (kernel->abi == ATTEST_KERNEL_ABI && kernel->tile && kernel->scratch_size)
        kernel = kernel_table_make(kernel, (enum guard)worker.hello.guard, worker.hello.lifted, worker.board);
    if (attest_context_add_kernel(worker.context, kernel) != ATTEST_OK)
        return refuse(EXECUTION_INVALID, "libattest does not take its table: %.500s", attest_context_detail(worker.context));
    snprintf(worker.facts.name, sizeof worker.facts.name, "%s", kernel->name);
    snprintf(worker.facts.needs, sizeof worker.facts.needs, "%s", kernel->needs);
    snprintf(worker.facts.summary, sizeof worker.facts.summary, "%s", kernel->summary ? kernel->summary : "");
    worker.facts.dtypes = kernel->dtypes;
    worker.facts.refuses = kernel->refuses;
    worker.kernel = worker.facts.name;
    return true;
}

/* The images of a candidate for GPUs. */
static bool load_index(void)
{
    char why[512];
    if (!cuda_index_load(worker.hello.name, &worker.loaded, why, sizeof why))
        return refuse(EXECUTION_INVALID, "it cannot be loaded: %.500s", why);
    const attest_cuda_kernel *kernel = &worker.loaded.kernel;
    attest_status status = attest_context_add_cuda_kernel(worker.context, kernel);
    if (status != ATTEST_OK)
        return refuse(status == ATTEST_ERROR_UNAVAILABLE ? EXECUTION_LACKING : EXECUTION_INVALID,
                      "libattest does not take its table: %.500s", attest_context_detail(worker.context));
    snprintf(worker.facts.name, sizeof worker.facts.name, "%s", kernel->name);
    snprintf(worker.facts.needs, sizeof worker.facts.needs, "%s", worker.loaded.needs);
    snprintf(worker.facts.summary, sizeof worker.facts.summary, "%s", kernel->summary);
    worker.facts.dtypes = kernel->dtypes;
    worker.facts.refuses = kernel->refuses;
    worker.kernel = worker.facts.name;
    return true;
}

/* A worker that runs no code of the kernel's own: it needs the driver, and no sandbox. */
static bool set_up_device(void)
{
    attest_status status = attest_context_create_on(worker.hello.device, &worker.context);
    if (status != ATTEST_OK)
        return refuse(EXECUTION_LACKING, "%.600s", worker.context ? attest_context_detail(worker.context) : "out of memory");
    watch_for_crashes();
    return true;
}

/* Notes where the GOT of an object is. */
static int note_table(struct dl_phdr_info *object, size_t size, void *data)
{
    struct state_places *places = data;
    const ElfW(Dyn) *entry = NULL;
    uint64_t begin = 0, bytes = 0;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_PLTGOT)
            begin = entry->d_un.d_ptr;
        if (entry->d_tag == DT_PLTRELSZ) /* one address for each, behind three of the loader's */
            bytes = (entry->d_un.d_val / sizeof(ElfW(Rela)) + 3) * sizeof(void *);
    }
    if (begin > object->dlpi_addr && bytes && places->count < STATE_TABLES) {
        places->tables[places->count].begin = begin;
        places->tables[places->count++].size = bytes;
    }
    return 0;
}

/* An emulated device runs the kernel's code in this process, and is closed off as the worker of a CPU kernel is. */
static bool set_up_emulated(void)
{
    attest_status status = attest_context_create_on(worker.hello.device, &worker.context);
    if (status != ATTEST_OK)
        return refuse(EXECUTION_LACKING, "%.600s", worker.context ? attest_context_detail(worker.context) : "out of memory");
    watch_for_crashes();
    make_alternate_stack();
    answer.landlock = sandbox_files(worker.hello.name, "", false);
    return sandbox_calls(SANDBOX_LOADING) ||
           refuse(EXECUTION_LACKING,
                  "this system does not let a process give up system calls (seccomp), and a kernel is not emulated "
                  "without");
}

/* Everything that comes before a byte of the kernel. */
static bool set_up(void)
{
    const struct hello *hello = &worker.hello;
    void *symbol = dlsym(RTLD_DEFAULT, "__asan_poison_memory_region");
    memcpy(&worker.poison, &symbol, sizeof worker.poison);
    symbol = dlsym(RTLD_DEFAULT, "__asan_unpoison_memory_region");
    memcpy(&worker.unpoison, &symbol, sizeof worker.unpoison);
    mallopt(M_ARENA_MAX, 1); /* further ones change protections when they grow */
    attest_status status = attest_context_create_on("cpu", &worker.context);
    if (status == ATTEST_OK && hello->threads > 0)
        status = attest_context_set_threads(worker.context, hello->threads);
    if (status != ATTEST_OK)
        return refuse(EXECUTION_LACKING, "no context: %.500s", attest_context_detail(worker.context));
    watch_for_crashes();
    registers_begin(worker.board, strstr(attest_context_features(worker.context), "amx") != NULL);
    answer.landlock = sandbox_files(hello->is_image ? hello->name : NULL, hello->scratch, hello->relaxed);
    bool no_cpuid = false, no_counter = !hello->relaxed && sandbox_processor(&no_cpuid);
    /* The team of threads that libattest will use, of exactly this size. */
#pragma omp parallel num_threads(attest_context_threads(worker.context))
    make_alternate_stack();
    worker.level = hello->relaxed ? SANDBOX_RELAXED : answer.landlock && *hello->scratch ? SANDBOX_SCRATCH : SANDBOX_LOADING;
    worker.filtered = sandbox_calls(worker.level);
    answer.own_code = !hello->relaxed && sandbox_own_code();
    answer.no_counter = no_counter;
    answer.no_cpuid = no_cpuid;
    answer.places.variable = (uint64_t)(uintptr_t)&environ;
    dl_iterate_phdr(note_table, &answer.places);
    neutral_words(hello->seed);
    if (hello->is_image && !worker.filtered && !hello->relaxed)
        return refuse(EXECUTION_LACKING, "this system does not let a process give up system calls (seccomp), and a kernel from "
                                         "elsewhere is not run without");
    return true;
}

static bool load_kernel(void)
{
    if (worker.hello.emulated)
        return load_index() && sandbox_calls(SANDBOX_RUNNING);
    if (worker.on_device)
        return worker.hello.is_image ? load_index() : find_library_kernel();
    if (!(worker.hello.is_image ? load_image() : find_library_kernel()))
        return false;
    if (worker.level == SANDBOX_LOADING)
        sandbox_calls(SANDBOX_RUNNING);
    return true;
}

/* Looks at the registers of all threads that may have run a kernel, and at its table. */
static void look_at_threads(void)
{
    if (worker.on_device)
        return;
#pragma omp parallel num_threads(attest_context_threads(worker.context))
    registers_after(FUNCTION_ANY, true);
    kernel_table_compare();
}

/* ---- memory --------------------------------------------------------------------------------------------------------- */

static void unmap(struct mapping *mapping)
{
    if (mapping->size && worker.unpoison)
        worker.unpoison(mapping->base, mapping->size);
    if (mapping->size)
        munmap(mapping->base, mapping->size);
    *mapping = (struct mapping){0};
}

/* Addresses that cannot be touched. */
static bool reserve(struct mapping *mapping, size_t size)
{
    void *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return refuse(EXECUTION_LACKING, "no addresses for %zu bytes: %s", size, strerror(errno));
    *mapping = (struct mapping){base, size};
    return true;
}

/* Memory, with so many bytes before and behind that cannot be touched. (Not the other way round: memory that replaces what was reserved
 * does not count towards the limit.) */
static bool allot(struct mapping *mapping, size_t before, size_t size, size_t behind)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS;
    unsigned char *base = mmap(NULL, before + size + behind, PROT_READ | PROT_WRITE, how, -1, 0);
    if (base == MAP_FAILED)
        return false;
    *mapping = (struct mapping){base, before + size + behind};
    return mmap(base, before, PROT_NONE, how | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED &&
           mmap(base + before + size, behind, PROT_NONE, how | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* The problem as the kernel sees it, and how its tensors are spread. */
static attest_problem problem_of(const struct load *load, struct far_spread spreads[PLACE_COUNT])
{
    if (worker.hello.guard == GUARD_FAR)
        return far_strides(&load->problem, spreads);
    memset(spreads, 0, PLACE_COUNT * sizeof *spreads);
    return load->problem;
}

/* Maps a piece, in runs that lie apart where it is spread. */
static bool map_piece(unsigned char *at, const struct piece *piece, struct far_spread spread, bool output, int file)
{
    size_t size = (size_t)piece->size, run = spread.run ? spread.run : size;
    for (size_t offset = 0; offset < size; offset += run, at += spread.step)
        if (mmap(at, run < size - offset ? run : size - offset, output ? PROT_READ | PROT_WRITE : PROT_READ,
                 MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, (off_t)(piece->offset + offset)) == MAP_FAILED)
            return refuse(EXECUTION_LACKING, "a tensor could not be mapped: %s", strerror(errno));
    return true;
}

/* Maps the pieces one after the other, with a page between them that cannot be touched. */
static bool map_pieces(const struct load *load, const int files[2], struct worker_slot *slot)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = ((size_t)load->shift + 1) * page;
    struct far_spread spreads[PLACE_COUNT];
    problem_of(load, spreads);
    for (int i = 0; i < PLACE_COUNT; i++)
        size += load->pieces[i].size ? far_reach(&load->pieces[i], spreads[i]) + page : 0;
    if (!reserve(&slot->mapping, size))
        return false;
    void *pointers[PLACE_COUNT] = {0};
    unsigned char *at = slot->mapping.base + ((size_t)load->shift + 1) * page;
    for (int i = 0; i < PLACE_COUNT; i++) {
        const struct piece *piece = &load->pieces[i];
        bool output = i >= PLACE_O;
        worker.board->bases[load->slot][i] = 0;
        if (!piece->size)
            continue;
        int same = 0; /* tensors that share their memory have the same piece */
        while (same < i &&
               (load->pieces[same].size == 0 || (same >= PLACE_O) != output || load->pieces[same].offset != piece->offset))
            same++;
        if (same < i) {
            worker.board->bases[load->slot][i] = worker.board->bases[load->slot][same];
            pointers[i] = pointers[same];
            continue;
        }
        if (!map_piece(at, piece, spreads[i], output, files[output]))
            return false;
        worker.board->bases[load->slot][i] = (uint64_t)(uintptr_t)at;
        pointers[i] = at + piece->at;
        if (worker.poison) {
            worker.poison(at, (size_t)piece->start);
            worker.poison(at + piece->start + piece->bytes, (size_t)(piece->size - piece->start - piece->bytes));
        }
        at += far_reach(piece, spreads[i]) + page;
    }
    slot->tensors = (attest_tensors){.size = sizeof slot->tensors,
                                     .q = pointers[PLACE_Q],
                                     .k = pointers[PLACE_K],
                                     .v = pointers[PLACE_V],
                                     .o = pointers[PLACE_O],
                                     .lse = pointers[PLACE_LSE],
                                     .bias = pointers[PLACE_BIAS],
                                     .alibi_slopes = pointers[PLACE_SLOPES],
                                     .sinks = pointers[PLACE_SINKS],
                                     .cu_seqlens_q = pointers[PLACE_CU_Q],
                                     .cu_seqlens_kv = pointers[PLACE_CU_KV],
                                     .kv_lengths = pointers[PLACE_LENGTHS],
                                     .page_table = pointers[PLACE_PAGES]};
    return true;
}

/* The workspace for the largest plan, at new addresses, between pages that cannot be touched. */
static bool make_workspace(uint32_t shift)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), most = 0;
    for (int i = 0; i < EXECUTOR_SLOTS; i++)
        if (worker.slots[i].plan && attest_plan_workspace_size(worker.slots[i].plan) > most)
            most = attest_plan_workspace_size(worker.slots[i].plan);
    unmap(&worker.room);
    worker.workspace = NULL;
    worker.workspace_size = most;
    size_t used = (most + 63) / 64 * 64, pages = (used + page - 1) / page * page;
    if (most > SIZE_MAX / 4 || !allot(&worker.room, (shift + 1) * page, pages, page))
        return refuse(EXECUTION_GREEDY, "it asks for a workspace of %zu bytes, which is not to be had", most);
    worker.workspace = worker.room.base + (shift + 1) * page + (worker.hello.guard == GUARD_END ? pages - used : 0);
    return true;
}

/* The tensors and the workspace on a GPU. */
static bool load_on_device(const struct load *load, const int files[2], struct worker_slot *slot)
{
    enum execution_end end = EXECUTION_LACKING;
    char why[512];
    size_t most = 0;
    if (!device_slot_make(&slot->device, worker.context, load, files, worker.hello.guard == GUARD_FAR, &end, why, sizeof why))
        return refuse(end, "%s", why);
    slot->tensors = slot->device.tensors;
    for (int i = 0; i < EXECUTOR_SLOTS; i++)
        if (worker.slots[i].plan && attest_plan_workspace_size(worker.slots[i].plan) > most)
            most = attest_plan_workspace_size(worker.slots[i].plan);
    attest_status status = device_workspace_make(&worker.device_workspace, worker.context, most);
    worker.workspace_size = most;
    if (status != ATTEST_OK) {
        device_slot_free(&slot->device);
        return refuse(status == ATTEST_ERROR_DEVICE ? EXECUTION_CRASHED : EXECUTION_GREEDY, "its workspace of %zu bytes: %.400s",
                      most, attest_context_detail(worker.context));
    }
    worker.workspace = device_workspace_at(&worker.device_workspace);
    return true;
}

static bool load_slot(const struct load *load, const int files[2])
{
    if (load->slot < 0 || load->slot >= EXECUTOR_SLOTS)
        return refuse(EXECUTION_INVALID, "there is no such slot");
    if (files[0] < 0 || files[1] < 0)
        return refuse(EXECUTION_GREEDY, "it has opened so many files that the worker can open none");
    struct worker_slot *slot = &worker.slots[load->slot];
    attest_plan_destroy(slot->plan);
    slot->plan = NULL;
    unmap(&slot->mapping);
    device_slot_free(&slot->device);
    struct far_spread spreads[PLACE_COUNT];
    attest_problem problem = problem_of(load, spreads);
    attest_status status = attest_plan_create(worker.context, &problem, worker.kernel, &slot->plan);
    if (status != ATTEST_OK)
        return refuse(status == ATTEST_ERROR_UNSUPPORTED ? EXECUTION_REFUSED
                      : status == ATTEST_ERROR_DEVICE    ? EXECUTION_CRASHED
                                                         : EXECUTION_LACKING,
                      "%.600s", attest_context_detail(worker.context));
    if (worker.on_device ? load_on_device(load, files, slot) : map_pieces(load, files, slot) && make_workspace(load->shift))
        return true;
    attest_plan_destroy(slot->plan);
    slot->plan = NULL;
    return false;
}

/* ---- running -------------------------------------------------------------------------------------------------------- */

static bool may_run(const struct run *run)
{
    if (run->count < 0 || run->count > EXECUTOR_SLOTS)
        return refuse(EXECUTION_INVALID, "there are not so many slots");
    for (int i = 0; i < run->count; i++)
        if (run->slots[i] < 0 || run->slots[i] >= EXECUTOR_SLOTS || !worker.slots[run->slots[i]].plan)
            return refuse(EXECUTION_INVALID, "slot %d is empty", run->slots[i]);
    return true;
}

/* What the GPU complains of ends its work for this process. */
static bool device_failed(attest_status status)
{
    return refuse(status == ATTEST_ERROR_DEVICE   ? EXECUTION_CRASHED
                  : status == ATTEST_ERROR_MEMORY ? EXECUTION_LACKING
                                                  : EXECUTION_INVALID,
                  "%s%.600s", status == ATTEST_ERROR_DEVICE ? "" : "libattest did not take the tensors: ",
                  attest_context_detail(worker.context));
}

/* Puts the tensors of the slots where the kernel will see them, and rubbish into the workspace. */
static bool prepare(const struct run *run)
{
    attest_status status = ATTEST_OK;
    if (!may_run(run))
        return false;
    if (!worker.on_device) {
        if (run->rubbish >= 0)
            memset(worker.workspace, run->rubbish, worker.workspace_size);
        else if (run->rubbish == EXECUTOR_DRAWN)
            rubbish_fill(worker.workspace, worker.workspace_size, run->seed);
        return true;
    }
    for (int i = 0; i < run->count && i < run->moved && status == ATTEST_OK; i++)
        status = device_slot_put(&worker.slots[run->slots[i]].device);
    if (status == ATTEST_OK && run->rubbish >= 0)
        status = attest_memory_set(worker.context, worker.workspace, run->rubbish, worker.workspace_size, NULL);
    for (int i = 0; i < run->count && worker.hello.emulated; i++)
        device_slot_extents(&worker.slots[run->slots[i]].device, &worker.device_workspace);
    if (status == ATTEST_OK)
        status = attest_synchronize(worker.context, NULL);
    return status == ATTEST_OK || device_failed(status);
}

/* Runs the slots, or times them by the clock of the GPU. */
static attest_status compute(const struct run *run)
{
    attest_cuda_call calls[EXECUTOR_SLOTS];
    attest_status status = ATTEST_OK;
    if (run->replays > 0 && worker.on_device) {
        for (int i = 0; i < run->count; i++) {
            const struct worker_slot *slot = &worker.slots[run->slots[i]];
            calls[i] = (attest_cuda_call){slot->plan, &slot->tensors, worker.workspace, worker.workspace_size};
        }
        return attest_cuda_time(worker.context, calls, run->count, run->replays, &answer.seconds);
    }
    for (int i = 0; i < run->count; i++) {
        const struct worker_slot *slot = &worker.slots[run->slots[i]];
        attest_status this = attest_run(worker.context, slot->plan, &slot->tensors, worker.workspace, worker.workspace_size, NULL);
        status = status == ATTEST_OK ? this : status;
    }
    return status;
}

/* Brings the outputs back from a GPU, and looks at what should not have changed there. */
static bool collect(const struct run *run)
{
    enum execution_end end = EXECUTION_INVALID;
    char why[512];
    attest_status status = attest_synchronize(worker.context, NULL);
    if (status != ATTEST_OK)
        return device_failed(status);
    for (int i = 0; i < run->count && i < run->moved; i++)
        if (!device_slot_get(&worker.slots[run->slots[i]].device, &end, why, sizeof why))
            return refuse(end, "%s", why);
    return device_workspace_intact(&worker.device_workspace, why, sizeof why) || refuse(EXECUTION_INVALID, "%s", why);
}

static void run_slots(const struct run *run)
{
    bool good = prepare(run);
    if (good) {
        kernel_table_choose(run->rubbish != EXECUTOR_LEFT);
        attest_status status = compute(run);
        if (status != ATTEST_OK && worker.on_device)
            good = device_failed(status);
        else if (status != ATTEST_OK)
            good = refuse(EXECUTION_INVALID, "libattest did not take the tensors: something in the worker was overwritten");
        else if (worker.on_device)
            good = collect(run);
    }
    say_answer(MESSAGE_DONE, run->head.number, good);
}

/* ---- the conversation ----------------------------------------------------------------------------------------------- */

static bool begin(void)
{
    int files[2];
    if (hear(&worker.hello, sizeof worker.hello, files, 2) != (ssize_t)sizeof worker.hello ||
        worker.hello.head.kind != MESSAGE_HELLO)
        return false;
    worker.board = mmap(NULL, sizeof *worker.board, PROT_READ | PROT_WRITE, MAP_SHARED, files[0], 0);
    close(files[0]);
    if (worker.board == MAP_FAILED)
        return false;
    worker.on_device = strcmp(worker.hello.device, "cpu") != 0;
    bool good = worker.hello.emulated ? set_up_emulated() : worker.on_device ? set_up_device() : set_up();
    say_ready(worker.hello.head.number, good);
    return good;
}

static union request {
    struct message_head head;
    struct load load;
    struct run run;
} request;

int worker_main(void)
{
    int files[2];
    if (!begin())
        return EXIT_LOST;
    for (;;) {
        ssize_t got = hear(&request, sizeof request, files, 2);
        uint32_t kind = got >= (ssize_t)sizeof request.head ? request.head.kind : 0;
        bool good = false;
        kernel_table_choose(true);
        if (kind == MESSAGE_KERNEL && got == (ssize_t)sizeof request.head && !worker.facts.name[0]) {
            good = load_kernel();
            answer.facts = worker.facts;
        } else if (kind == MESSAGE_LOAD && got == (ssize_t)sizeof request.load) {
            good = load_slot(&request.load, files);
        } else if (kind == MESSAGE_CHECK && got == (ssize_t)sizeof request.head) {
            look_at_threads();
            good = true;
        } else if (kind == MESSAGE_RUN && got == (ssize_t)sizeof request.run) {
            run_slots(&request.run);
        } else {
            return kind == MESSAGE_END && got == (ssize_t)sizeof request.head ? 0 : EXIT_LOST;
        }
        for (int i = 0; i < 2; i++)
            if (files[i] >= 0)
                close(files[i]);
        if (kind != MESSAGE_RUN)
            say_ready(request.head.number, good);
    }
}
