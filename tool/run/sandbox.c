/*
 * sandbox.c - what a kernel cannot do, whatever it tries (see sandbox.h).
 *
 * A kernel reads its inputs, writes its outputs, and computes. Everything that is not needed for that is refused, in five layers,
 * so that much still holds where a system lacks one of them:
 *
 * 1. Limits and bonds (sandbox_before_exec). The worker dies with its supervisor, cannot gain privileges, writes no core file, and
 *    is limited in private memory, size of files, and number of open files. Where the system allows it, its network is an empty
 *    namespace.
 * 2. Landlock (sandbox_files). It can read what is needed to load a shared object (system libraries, the image's own folder) and
 *    nothing else, write to its scratch folder if it has one, open no TCP port, and signal nobody. Capabilities are dropped.
 * 3. Seccomp (sandbox_calls, sandbox_own_code). System calls are refused unless they are on a list, and unless the instruction that
 *    makes them lies in the text of the worker's program, of the C library, of the other libraries that were there before the image,
 *    or of the vdso. Both filters are installed after the threads have started and before the image is loaded, so that nothing of
 *    it, not even a constructor or a resolver of an indirect function, ever runs without them, and so that no thread can be started
 *    any more. Calls that no honest kernel makes (sockets, processes, tracing, names of files ...) end the process by SIGSYS, and
 *    the supervisor says which call it was. All others, known or not, fail with ENOSYS: a C library that merely asks goes on
 *    without. Once the image is loaded a further filter (SANDBOX_RUNNING) leaves only what the worker, its allocator and its team
 *    of threads need to run a kernel: no file, no signal handler or mask, no change of a protection, no executable memory, no timer,
 *    no sleep, no question about the machine, nothing written but to stdout and stderr. Every other call ends the process. Under a
 *    sanitizer the list is turned round: only the calls that neither a kernel nor the sanitizer makes are refused.
 * 4. Clocks and identity (sandbox_processor). Reading the time-stamp counter faults, and with it the vdso's clocks; so does cpuid,
 *    where the processor can be told to. The worker needs neither: the clock is the supervisor's, and features were asked before.
 * 5. Shared memory. Inputs are mapped from a sealed file for reading (arena.c), which no mprotect can change.
 *
 * What is not prevented: using processor time, which the supervisor bounds by its clock, and breaking the worker itself, which the
 * kernel shares a process with and which is not believed anything for that reason.
 */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "protocol.h"

/* ---- limits and bonds ----------------------------------------------------------------------------------------------- */

static void limit(int which, unsigned long most)
{
    struct rlimit value;
    if (getrlimit((__rlimit_resource_t)which, &value) == 0 && value.rlim_max < most)
        most = value.rlim_max;
    value.rlim_cur = value.rlim_max = most;
    setrlimit((__rlimit_resource_t)which, &value);
}

void sandbox_before_exec(int parent, unsigned long data, unsigned long file_size, bool driver)
{
    setsid();
    if (!driver && unshare(CLONE_NEWNET) != 0)
        unshare(CLONE_NEWUSER | CLONE_NEWNET);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after unshare, which forgets it */
    if (getppid() != parent)
        _exit(127);
    limit(RLIMIT_CORE, 0);
    if (driver)
        return;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    limit(RLIMIT_NOFILE, 16384); /* so many that a leak is seen as one */
    limit(RLIMIT_FSIZE, file_size);
    limit(RLIMIT_CPU, 24 * 3600);
    if (data)
        limit(RLIMIT_DATA, data);
}

/* ---- files ---------------------------------------------------------------------------------------------------------- */

/* As in <linux/landlock.h> of newer systems; old headers lack some of it, and the call says itself what this kernel knows. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif

struct ruleset {
    uint64_t files, ports, scopes;
};

struct rule_beneath {
    uint64_t allowed;
    int32_t folder;
} __attribute__((packed));

enum {
    MAY_EXECUTE = 1 << 0,
    MAY_WRITE = 1 << 1,
    MAY_READ = 1 << 2,
    MAY_LIST = 1 << 3,
    MAY_REMOVE_FOLDER = 1 << 4,
    MAY_REMOVE_FILE = 1 << 5,
    MAY_MAKE_FOLDER = 1 << 7,
    MAY_MAKE_FILE = 1 << 8,
    MAY_TRUNCATE = 1 << 14,
    RULESET_VERSION = 1,
    RULE_BENEATH = 1
};

static void allow_beneath(int ruleset, const char *path, uint64_t allowed)
{
    struct stat status;
    struct rule_beneath rule = {allowed, open(path, O_PATH | O_CLOEXEC)};
    if (rule.folder < 0)
        return;
    if (fstat(rule.folder, &status) == 0 && !S_ISDIR(status.st_mode))
        rule.allowed &= MAY_EXECUTE | MAY_READ;
    syscall(SYS_landlock_add_rule, ruleset, RULE_BENEATH, &rule, 0);
    close(rule.folder);
}

/* Root's power over files of others goes as well, but for reading, so that root can prove the image of another user. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct held[2], kept[2] = {{0}};
    if (syscall(SYS_capget, &head, held) != 0)
        return;
    kept[0].effective = held[0].effective & 1u << CAP_DAC_READ_SEARCH;
    kept[0].permitted = held[0].permitted & 1u << CAP_DAC_READ_SEARCH;
    syscall(SYS_capset, &head, kept);
}

/* A ruleset of everything that this kernel knows to restrict; -1 if it has no Landlock. */
static int make_ruleset(struct ruleset *rules, int *version)
{
    *version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, RULESET_VERSION);
    if (*version < 1)
        return -1;
    *rules = (struct ruleset){.files = 0x1fff};
    if (*version >= 2)
        rules->files |= 1 << 13; /* renaming across folders */
    if (*version >= 3)
        rules->files |= MAY_TRUNCATE;
    if (*version >= 4)
        rules->ports = 3; /* TCP: bind, connect */
    if (*version >= 5)
        rules->files |= 1 << 15; /* ioctl of devices */
    if (*version >= 6)
        rules->scopes = 3; /* abstract sockets and signals to others */
    return (int)syscall(SYS_landlock_create_ruleset, rules, *version >= 6 ? sizeof *rules : *version >= 4 ? 16 : 8, 0);
}

static const char *const system_folders[] = {"/usr", "/lib", "/lib64", "/lib32", "/opt", "/nix", "/gnu", "/etc/ld.so.cache"};
enum {
    MAY_USE = MAY_EXECUTE | MAY_READ | MAY_LIST,
    MAY_CHANGE = MAY_WRITE | MAY_TRUNCATE | MAY_REMOVE_FOLDER | MAY_REMOVE_FILE | MAY_MAKE_FOLDER | MAY_MAKE_FILE
};

int sandbox_files(const char *image, const char *scratch, bool relaxed)
{
    const uint64_t read = MAY_USE;
    drop_capabilities();
    struct ruleset rules;
    int version, ruleset = make_ruleset(&rules, &version);
    if (ruleset < 0)
        return 0;
    for (size_t i = 0; i < sizeof system_folders / sizeof *system_folders; i++)
        allow_beneath(ruleset, system_folders[i], read);
    if (relaxed)
        allow_beneath(ruleset, "/", read);
    char folder[PATH_MAX];
    const char *slash = image ? strrchr(image, '/') : NULL;
    if (slash) {
        snprintf(folder, sizeof folder, "%.*s", slash == image ? 1 : (int)(slash - image), image);
        allow_beneath(ruleset, folder, read);
    }
    if (*scratch)
        allow_beneath(ruleset, scratch, (read | MAY_CHANGE) & rules.files);
    bool done = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    close(ruleset);
    return done ? version : 0;
}

/* ---- compilers ------------------------------------------------------------------------------------------------------- */

void sandbox_before_compiler(int parent, unsigned long data, unsigned long file_size, unsigned long seconds)
{
    if (unshare(CLONE_NEWNET) != 0)
        unshare(CLONE_NEWUSER | CLONE_NEWNET);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after unshare, which forgets it */
    if (getppid() != parent)
        _exit(127);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, file_size);
    limit(RLIMIT_CPU, seconds);
    limit(RLIMIT_DATA, data);
}

int sandbox_version(void)
{
    int version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, RULESET_VERSION);
    return version < 1 ? 0 : version;
}

int sandbox_folders(const char *const *readable, const char *const *writable)
{
    struct ruleset rules;
    int version, ruleset = make_ruleset(&rules, &version);
    if (ruleset < 0)
        return 0;
    for (size_t i = 0; i < sizeof system_folders / sizeof *system_folders; i++)
        allow_beneath(ruleset, system_folders[i], MAY_USE);
    struct rule_beneath null = {(MAY_READ | MAY_WRITE | MAY_TRUNCATE) & rules.files, open("/dev/null", O_PATH | O_CLOEXEC)};
    if (null.folder >= 0) {
        syscall(SYS_landlock_add_rule, ruleset, RULE_BENEATH, &null, 0);
        close(null.folder);
    }
    for (; *readable; readable++)
        allow_beneath(ruleset, *readable, MAY_READ | MAY_LIST);
    for (; *writable; writable++)
        allow_beneath(ruleset, *writable, (MAY_READ | MAY_LIST | MAY_CHANGE) & rules.files);
    bool done = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    close(ruleset);
    return done ? version : 0;
}

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0 /* then no filter is installed */
#endif

/* ---- system calls --------------------------------------------------------------------------------------------------- */

enum rule {
    ALLOW,
    TRAP,        /* SIGSYS: no honest kernel does this */
    TOOLS,       /* likewise, but sanitizers do */
    NAMES,       /* changes names of files: TRAP, unless Landlock guards a scratch folder */
    OPENS_1,     /* opens a file, flags in argument 1: only what is still allowed, else TRAP */
    OPENS_2,     /* flags in argument 2 */
    MYSELF,      /* argument 0 must be this process, else TRAP */
    LOOKS,       /* argument 2, a new value, must be NULL, else EPERM */
    HANDLES,     /* sets a signal handler: not for signals that speak of faults, which are ours */
    DESCRIPTORS, /* fcntl: duplicates, and looks at flags */
    PRINTS,      /* argument 0 must be stdout or stderr, else TRAP */
    SPEAKS,      /* argument 0 must be the worker's socket, else TRAP */
    UNBLOCKS,    /* a signal mask: only to unblock signals, as abort does, else TRAP */
    NO_CODE      /* maps memory, protection in argument 2: not executable, else TRAP */
};

struct call {
    int number;
    enum rule rule;      /* while the image is loaded, and with a scratch folder */
    enum rule afterward; /* while a kernel runs */
    const char *purpose; /* of a TRAP: what the process wanted */
};

#define CALL(name, rule, afterward, purpose)                                                                                       \
    {                                                                                                                              \
        SYS_##name, rule, afterward, purpose " (" #name ")"                                                                        \
    }
/* A call that is refused from the beginning. */
#define NEVER(name, rule, purpose) CALL(name, rule, TRAP, purpose)

/* Frequent ones first. */
static const struct call calls[] = {
    CALL(futex, ALLOW, ALLOW, "wait"),
    CALL(sched_yield, ALLOW, ALLOW, "wait"),
    CALL(recvmsg, ALLOW, SPEAKS, "receive a message"),
    CALL(sendto, ALLOW, SPEAKS, "send a message"),
    CALL(madvise, ALLOW, ALLOW, "advise on memory"),
    CALL(mmap, ALLOW, NO_CODE, "make memory executable"),
    CALL(munmap, ALLOW, ALLOW, "give memory back"),
    CALL(mprotect, ALLOW, TRAP, "change the protection of memory"),
    CALL(mremap, ALLOW, ALLOW, "move memory"),
    CALL(brk, ALLOW, ALLOW, "take memory"),
    CALL(read, ALLOW, TRAP, "read a file"),
    CALL(write, ALLOW, PRINTS, "write to a file"),
    CALL(close, ALLOW, ALLOW, "close a file"),
    CALL(clock_gettime, ALLOW, TRAP, "read the clock"),
    CALL(clock_nanosleep, ALLOW, TRAP, "sleep"),
    CALL(clock_getres, ALLOW, TRAP, "read the clock"),
    CALL(exit, ALLOW, ALLOW, "end a thread"),
    CALL(exit_group, ALLOW, ALLOW, "end"),
    CALL(fcntl, DESCRIPTORS, TRAP, "change a file descriptor"),
    CALL(dup, ALLOW, TRAP, "duplicate a file descriptor"),
    CALL(dup3, ALLOW, TRAP, "duplicate a file descriptor"),
    CALL(fstat, ALLOW, ALLOW, "look at a file"),
    CALL(getcpu, ALLOW, TRAP, "ask which processor it runs on"),
    CALL(getcwd, ALLOW, TRAP, "ask for its folder"),
    CALL(getegid, ALLOW, TRAP, "ask who runs it"),
    CALL(geteuid, ALLOW, TRAP, "ask who runs it"),
    CALL(getgid, ALLOW, TRAP, "ask who runs it"),
    CALL(getpid, ALLOW, ALLOW, "ask for its process"),
    CALL(getppid, ALLOW, TRAP, "ask for its parent process"),
    CALL(getrandom, ALLOW, ALLOW, "draw a random number"), /* the allocator does, once */
    CALL(getrusage, ALLOW, TRAP, "ask what it has used"),
    CALL(gettid, ALLOW, ALLOW, "ask for its thread"),
    CALL(gettimeofday, ALLOW, TRAP, "read the clock"),
    CALL(getuid, ALLOW, TRAP, "ask who runs it"),
    CALL(lseek, ALLOW, ALLOW, "move in a file"),
    CALL(nanosleep, ALLOW, TRAP, "sleep"),
    CALL(newfstatat, ALLOW, ALLOW, "look at a file"),
    CALL(openat, OPENS_2, TRAP, "open a file"),
    CALL(pread64, ALLOW, TRAP, "read a file"),
    CALL(prlimit64, LOOKS, TRAP, "ask for limits, or change them"),
    CALL(readlinkat, ALLOW, TRAP, "read a link"),
    CALL(readv, ALLOW, TRAP, "read a file"),
    CALL(restart_syscall, ALLOW, ALLOW, "go on"),
    CALL(rseq, ALLOW, TRAP, "register a restartable sequence"),
    CALL(rt_sigaction, HANDLES, TRAP, "install a signal handler"),
    CALL(rt_sigprocmask, ALLOW, UNBLOCKS, "block signals"),
    CALL(rt_sigreturn, ALLOW, ALLOW, "return from a signal"),
    CALL(sched_getaffinity, ALLOW, TRAP, "ask for its processors"),
    CALL(seccomp, ALLOW, TRAP, "change its filter"), /* before, it can only take more away */
    CALL(set_robust_list, ALLOW, TRAP, "leave a list of locks"),
    CALL(sigaltstack, ALLOW, TRAP, "change the stack of signals"),
    CALL(statx, ALLOW, TRAP, "look at a file"),
    CALL(sysinfo, ALLOW, TRAP, "ask about the machine"),
    CALL(uname, ALLOW, TRAP, "ask about the machine"),
    CALL(writev, ALLOW, PRINTS, "write to a file"),
#ifdef __x86_64__
    CALL(access, ALLOW, TRAP, "look at a file"),
    CALL(arch_prctl, ALLOW, TRAP, "change its processor state"), /* before, libattest asks for AMX with it */
    CALL(dup2, ALLOW, TRAP, "duplicate a file descriptor"),
    CALL(lstat, ALLOW, TRAP, "look at a file"),
    CALL(open, OPENS_1, TRAP, "open a file"),
    CALL(pause, ALLOW, TRAP, "sleep"),
    CALL(readlink, ALLOW, TRAP, "read a link"),
    CALL(stat, ALLOW, TRAP, "look at a file"),
    CALL(time, ALLOW, TRAP, "read the clock"),
#endif
    NEVER(openat2, TRAP, "open a file"),
    CALL(kill, MYSELF, MYSELF, "send a signal to another process"),
    CALL(tgkill, MYSELF, MYSELF, "send a signal to another process"),
    NEVER(tkill, TRAP, "send a signal to another thread"),
    NEVER(rt_sigqueueinfo, TRAP, "send a signal to another process"),
    NEVER(pidfd_send_signal, TRAP, "send a signal to another process"),
    NEVER(clone, TOOLS, "start a thread or a process"),
    NEVER(clone3, TOOLS, "start a thread or a process"),
    NEVER(execve, TRAP, "run another program"),
    NEVER(execveat, TRAP, "run another program"),
    NEVER(ptrace, TOOLS, "trace a process"),
    NEVER(process_vm_readv, TOOLS, "read the memory of another process"),
    NEVER(process_vm_writev, TRAP, "write the memory of another process"),
    NEVER(socket, TRAP, "open a socket"),
    NEVER(socketpair, TRAP, "open a socket"),
    NEVER(connect, TRAP, "connect a socket"),
    NEVER(bind, TRAP, "bind a socket"),
    NEVER(listen, TRAP, "listen on a socket"),
    NEVER(accept, TRAP, "accept a connection"),
    NEVER(accept4, TRAP, "accept a connection"),
    NEVER(setsockopt, TRAP, "change a socket"),
    NEVER(shutdown, TRAP, "shut down a socket"),
    NEVER(bpf, TRAP, "load a program into the kernel"),
    NEVER(perf_event_open, TRAP, "count events of the processor"),
    NEVER(io_uring_setup, TRAP, "open a queue for system calls"),
    NEVER(userfaultfd, TRAP, "handle page faults"),
    NEVER(memfd_create, TOOLS, "make a file in memory"),
    NEVER(keyctl, TRAP, "use the kernel's keys"),
    NEVER(mount, TRAP, "mount a file system"),
    NEVER(umount2, TRAP, "unmount a file system"),
    NEVER(unshare, TRAP, "change its namespace"),
    NEVER(setns, TRAP, "change its namespace"),
    NEVER(chroot, TRAP, "change its root folder"),
    NEVER(setitimer, TOOLS, "set a timer"),
    NEVER(timer_create, TOOLS, "set a timer"),
    NEVER(timerfd_create, TOOLS, "set a timer"),
    NEVER(signalfd4, TOOLS, "read signals from a file"),
    NEVER(eventfd2, TOOLS, "open a counter"),
    NEVER(epoll_create1, TOOLS, "wait for files"),
    NEVER(pipe2, TOOLS, "open a pipe"),
    NEVER(setrlimit, TOOLS, "change its limits"),
    NEVER(umask, TOOLS, "change its file mode mask"),
    NEVER(chdir, TOOLS, "change its folder"),
    NEVER(fchdir, TOOLS, "change its folder"),
    NEVER(prctl, TOOLS, "change its process state"),
    NEVER(personality, TOOLS, "change its personality"),
    NEVER(sched_setaffinity, TOOLS, "choose its processors"),
    NEVER(sched_setparam, TOOLS, "change its priority"),
    NEVER(setpriority, TOOLS, "change its priority"),
    NEVER(sched_setattr, TOOLS, "change its priority"),
    NEVER(sched_setscheduler, TOOLS, "change its priority"),
    NEVER(mkdirat, NAMES, "make a folder"),
    NEVER(unlinkat, NAMES, "remove a file"),
    NEVER(renameat2, NAMES, "rename a file"),
    NEVER(linkat, NAMES, "link a file"),
    NEVER(symlinkat, NAMES, "link a file"),
    NEVER(mknodat, TRAP, "make a device"),
    NEVER(fchmodat, NAMES, "change a file's mode"),
    NEVER(fchmod, NAMES, "change a file's mode"),
    NEVER(fchownat, TRAP, "change a file's owner"),
    NEVER(fchown, TRAP, "change a file's owner"),
    NEVER(truncate, NAMES, "cut a file"),
    NEVER(ftruncate, NAMES, "cut a file"),
    NEVER(utimensat, NAMES, "change a file's times"),
#ifdef __x86_64__
    NEVER(alarm, TOOLS, "set a timer"),
    NEVER(pipe, TOOLS, "open a pipe"),
    NEVER(signalfd, TOOLS, "read signals from a file"),
    NEVER(eventfd, TOOLS, "open a counter"),
    NEVER(fork, TRAP, "start a process"),
    NEVER(vfork, TRAP, "start a process"),
    NEVER(creat, NAMES, "make a file"),
    NEVER(mkdir, NAMES, "make a folder"),
    NEVER(rmdir, NAMES, "remove a folder"),
    NEVER(unlink, NAMES, "remove a file"),
    NEVER(rename, NAMES, "rename a file"),
    NEVER(link, NAMES, "link a file"),
    NEVER(symlink, NAMES, "link a file"),
    NEVER(chmod, NAMES, "change a file's mode"),
    NEVER(chown, TRAP, "change a file's owner"),
    NEVER(lchown, TRAP, "change a file's owner"),
#endif
};
enum { CALLS = sizeof calls / sizeof *calls, MOST_STEPS = 8 * CALLS + 16 };

struct program {
    struct sock_filter steps[MOST_STEPS];
    unsigned short count;
};

static void step(struct program *program, unsigned short code, uint8_t if_true, uint8_t if_false, uint32_t value)
{
    program->steps[program->count++] = (struct sock_filter){code, if_true, if_false, value};
}

static void load_word(struct program *program, size_t offset)
{
    step(program, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void end_with(struct program *program, uint32_t action)
{
    step(program, BPF_RET | BPF_K, 0, 0, action);
}

/* Arguments are 64 bits wide; both architectures are little-endian. */
static size_t argument(int index, int high)
{
    return offsetof(struct seccomp_data, args) + (size_t)index * 8 + (size_t)high * 4;
}

/* Goes on with the next two steps: the first is taken if the comparison holds, the second otherwise. */
static void choose(struct program *program, unsigned short comparison, uint32_t value, uint32_t if_true, uint32_t if_false)
{
    step(program, BPF_JMP | BPF_K | comparison, 0, 1, value);
    end_with(program, if_true);
    end_with(program, if_false);
}

/* The rule for a call at this level. */
static enum rule rule_at(const struct call *call, enum sandbox_level level)
{
    enum rule rule = call->rule;
    if (level == SANDBOX_RUNNING)
        return call->afterward;
    if (level == SANDBOX_RELAXED)
        return rule == TRAP || rule == NAMES || rule == MYSELF ? rule : ALLOW;
    return level == SANDBOX_SCRATCH && (rule == OPENS_1 || rule == OPENS_2 || rule == NAMES) ? ALLOW : rule;
}

static void append_call(struct program *program, const struct call *call, enum rule rule, uint32_t self)
{
    const uint32_t no = SECCOMP_RET_ERRNO | EPERM, write_bits = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
    unsigned short branch = program->count;
    step(program, BPF_JMP | BPF_K | BPF_JEQ, 0, 0, (uint32_t)call->number);
    switch (rule) {
    case ALLOW:
        end_with(program, SECCOMP_RET_ALLOW);
        break;
    case TRAP:
    case TOOLS:
    case NAMES:
        end_with(program, SECCOMP_RET_TRAP);
        break;
    case OPENS_1:
    case OPENS_2:
        load_word(program, argument(rule == OPENS_1 ? 1 : 2, 0));
        choose(program, BPF_JSET, write_bits, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW);
        break;
    case MYSELF:
        load_word(program, argument(0, 0));
        choose(program, BPF_JEQ, self, SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP);
        break;
    case LOOKS:
        load_word(program, argument(2, 0));
        step(program, BPF_JMP | BPF_K | BPF_JEQ, 1, 0, 0);
        end_with(program, no);
        load_word(program, argument(2, 1));
        choose(program, BPF_JEQ, 0, SECCOMP_RET_ALLOW, no);
        break;
    case HANDLES:
        load_word(program, argument(0, 0));
        step(program, BPF_JMP | BPF_K | BPF_JEQ, 2, 0, SIGSEGV);
        step(program, BPF_JMP | BPF_K | BPF_JEQ, 1, 0, SIGBUS);
        choose(program, BPF_JEQ, SIGSYS, no, SECCOMP_RET_ALLOW);
        break;
    case DESCRIPTORS:
        load_word(program, argument(1, 0));
        choose(program, BPF_JGT, F_GETFL, no, SECCOMP_RET_ALLOW);
        break;
    case PRINTS:
        load_word(program, argument(0, 0));
        step(program, BPF_JMP | BPF_K | BPF_JEQ, 1, 0, STDOUT_FILENO);
        choose(program, BPF_JEQ, STDERR_FILENO, SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP);
        break;
    case SPEAKS:
        load_word(program, argument(0, 0));
        choose(program, BPF_JEQ, CONTROL_FILE, SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP);
        break;
    case UNBLOCKS:
        load_word(program, argument(0, 0));
        choose(program, BPF_JEQ, SIG_UNBLOCK, SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP);
        break;
    case NO_CODE:
        load_word(program, argument(2, 0));
        choose(program, BPF_JSET, PROT_EXEC, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW);
        break;
    }
    program->steps[branch].jf = (uint8_t)(program->count - branch - 1);
}

static bool install(struct program *program)
{
    const struct sock_fprog filter = {program->count, program->steps};
    return ARCHITECTURE && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

bool sandbox_calls(enum sandbox_level level)
{
    static struct program program;
    program.count = 0;
    load_word(&program, offsetof(struct seccomp_data, arch));
    step(&program, BPF_JMP | BPF_K | BPF_JEQ, 1, 0, ARCHITECTURE);
    end_with(&program, SECCOMP_RET_KILL_PROCESS);
    load_word(&program, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALLS; i++)
        append_call(&program, &calls[i], rule_at(&calls[i], level), (uint32_t)getpid());
    end_with(&program, level == SANDBOX_RELAXED   ? SECCOMP_RET_ALLOW
                       : level == SANDBOX_RUNNING ? SECCOMP_RET_TRAP
                                                  : SECCOMP_RET_ERRNO | ENOSYS);
    return install(&program);
}

/* ---- whose code makes them ------------------------------------------------------------------------------------------ */

/* Steps that allow a call whose instruction pointer lies in begin .. end, both with the same upper 32 bits. */
static void append_range(struct program *program, uint64_t begin, uint64_t end)
{
    const size_t pointer = offsetof(struct seccomp_data, instruction_pointer);
    load_word(program, pointer + 4);
    step(program, BPF_JMP | BPF_K | BPF_JEQ, 0, 4, (uint32_t)(begin >> 32));
    load_word(program, pointer);
    step(program, BPF_JMP | BPF_K | BPF_JGE, 0, 2, (uint32_t)begin);
    step(program, BPF_JMP | BPF_K | BPF_JGT, 1, 0, (uint32_t)(end - 1));
    end_with(program, SECCOMP_RET_ALLOW);
}

/* The executable segments of one object. */
static int append_object(struct dl_phdr_info *object, size_t size, void *data)
{
    struct program *program = data;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        uint64_t begin = object->dlpi_addr + segment->p_vaddr, end = begin + segment->p_memsz;
        for (uint64_t next; begin < end; begin = next) {
            next = (begin >> 32) == ((end - 1) >> 32) ? end : ((begin >> 32) + 1) << 32;
            if (program->count + 8 < MOST_STEPS)
                append_range(program, begin, next);
        }
    }
    return 0;
}

bool sandbox_own_code(void)
{
    static struct program program;
    program.count = 0;
    dl_iterate_phdr(append_object, &program);
    end_with(&program, SECCOMP_RET_TRAP | SANDBOX_FOREIGN);
    return install(&program);
}

/* ---- clocks and identity -------------------------------------------------------------------------------------------- */

bool sandbox_processor(bool *no_cpuid)
{
    *no_cpuid = false;
#if defined(__x86_64__)
    const long set_cpuid = 0x1012; /* ARCH_SET_CPUID of <asm/prctl.h> */
    *no_cpuid = syscall(SYS_arch_prctl, set_cpuid, 0) == 0;
    return prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0;
#else
    return false;
#endif
}

void sandbox_call_text(int number, char *text, size_t size)
{
    snprintf(text, size, "make system call %d", number);
    for (int i = 0; i < CALLS; i++)
        if (calls[i].number == number)
            snprintf(text, size, "%s", calls[i].purpose);
}
