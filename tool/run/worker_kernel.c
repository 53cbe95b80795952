/*
 * worker_kernel.c - the worker before the first request: it is closed off, then the kernel is loaded (see worker.c for the order, and
 * why it matters).
 */
#include "worker_parts.h"

#include <attest_kernel.h>
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel_table.h"
#include "registers.h"
#include "scratch.h"
#include "worker_surroundings.h"

extern char **environ;

enum { ALTERNATE_STACK = 1 << 16 }; /* bytes; a frame with AVX-512 and AMX state takes about 12 KiB */

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
    return worker_refuse(EXECUTION_INVALID, "no kernel of this build is called %.100s; 'attest list' names them",
                         worker.hello.name);
}

static bool load_image(void)
{
    void *image = dlopen(worker.hello.name, RTLD_NOW | RTLD_LOCAL);
    if (!image)
        return worker_refuse(EXECUTION_INVALID, "it cannot be loaded: %.500s", dlerror());
    const attest_cpu_kernel *(*entry)(void) = NULL;
    void *symbol = dlsym(image, ATTEST_CPU_KERNEL_ENTRY);
    memcpy(&entry, &symbol, sizeof entry);
    if (!entry)
        return worker_refuse(EXECUTION_INVALID, "it does not export " ATTEST_CPU_KERNEL_ENTRY "; see attest_kernel.h");
    registers_before(true);
    const attest_cpu_kernel *kernel = entry();
    registers_after(FUNCTION_ENTRY, true);
    if (!kernel)
        return worker_refuse(EXECUTION_INVALID, ATTEST_CPU_KERNEL_ENTRY " returned NULL");
    /* The table is checked by libattest, which is given the one of kernel_table.c if it could be one. */
    if (kernel->abi == ATTEST_KERNEL_ABI && kernel->tile && kernel->scratch_size)
        kernel = kernel_table_make(kernel, (enum guard)worker.hello.guard, worker.hello.lifted, worker.board);
    if (attest_context_add_kernel(worker.context, kernel) != ATTEST_OK)
        return worker_refuse(EXECUTION_INVALID, "libattest does not take its table: %.500s", attest_context_detail(worker.context));
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
        return worker_refuse(EXECUTION_INVALID, "it cannot be loaded: %.500s", why);
    const attest_cuda_kernel *kernel = &worker.loaded.kernel;
    attest_status status = attest_context_add_cuda_kernel(worker.context, kernel);
    if (status != ATTEST_OK)
        return worker_refuse(status == ATTEST_ERROR_UNAVAILABLE ? EXECUTION_LACKING : EXECUTION_INVALID,
                             "libattest does not take its table: %.500s", attest_context_detail(worker.context));
    snprintf(worker.facts.name, sizeof worker.facts.name, "%s", kernel->name);
    snprintf(worker.facts.needs, sizeof worker.facts.needs, "%s", worker.loaded.needs);
    snprintf(worker.facts.summary, sizeof worker.facts.summary, "%s", kernel->summary);
    worker.facts.dtypes = kernel->dtypes;
    worker.facts.refuses = kernel->refuses;
    worker.kernel = worker.facts.name;
    return true;
}

bool worker_set_up_device(void)
{
    attest_status status = attest_context_create_on(worker.hello.device, &worker.context);
    if (status != ATTEST_OK)
        return worker_refuse(EXECUTION_LACKING, "%.600s", worker.context ? attest_context_detail(worker.context) : "out of memory");
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

bool worker_set_up_emulated(void)
{
    attest_status status = attest_context_create_on(worker.hello.device, &worker.context);
    if (status != ATTEST_OK)
        return worker_refuse(EXECUTION_LACKING, "%.600s", worker.context ? attest_context_detail(worker.context) : "out of memory");
    watch_for_crashes();
    make_alternate_stack();
    worker_answer.landlock = sandbox_files(worker.hello.name, "", false);
    return sandbox_calls(SANDBOX_LOADING) ||
           worker_refuse(EXECUTION_LACKING,
                         "this system does not let a process give up system calls (seccomp), and a kernel is not emulated "
                         "without");
}

bool worker_set_up(void)
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
        return worker_refuse(EXECUTION_LACKING, "no context: %.500s", attest_context_detail(worker.context));
    watch_for_crashes();
    registers_begin(worker.board, strstr(attest_context_features(worker.context), "amx") != NULL);
    worker_answer.landlock = sandbox_files(hello->is_image ? hello->name : NULL, hello->scratch, hello->relaxed);
    bool no_cpuid = false, no_counter = !hello->relaxed && sandbox_processor(&no_cpuid);
    /* The team of threads that libattest will use, of exactly this size. */
#pragma omp parallel num_threads(attest_context_threads(worker.context))
    make_alternate_stack();
    worker.level = hello->relaxed ? SANDBOX_RELAXED : worker_answer.landlock && *hello->scratch ? SANDBOX_SCRATCH : SANDBOX_LOADING;
    worker.filtered = sandbox_calls(worker.level);
    worker_answer.own_code = !hello->relaxed && sandbox_own_code();
    worker_answer.no_counter = no_counter;
    worker_answer.no_cpuid = no_cpuid;
    worker_answer.places.variable = (uint64_t)(uintptr_t)&environ;
    dl_iterate_phdr(note_table, &worker_answer.places);
    neutral_words(hello->seed);
    if (hello->is_image && !worker.filtered && !hello->relaxed)
        return worker_refuse(EXECUTION_LACKING,
                             "this system does not let a process give up system calls (seccomp), and a kernel from "
                             "elsewhere is not run without");
    return true;
}

bool worker_load_kernel(void)
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

void worker_look_at_threads(void)
{
    if (worker.on_device)
        return;
    /* A team of one would be made anew each time, and the heap that the memory gate looks at would take long to settle. */
    if (attest_context_threads(worker.context) == 1) {
        registers_after(FUNCTION_ANY, true);
    } else {
#pragma omp parallel num_threads(attest_context_threads(worker.context))
        registers_after(FUNCTION_ANY, true);
    }
    kernel_table_compare();
}
