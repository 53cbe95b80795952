/*
 * sandbox.c - what a kernel cannot do, whatever it tries (see sandbox.h).
 *
 * A kernel reads its inputs, writes its outputs, and computes. Everything that is not needed for that is refused, in four layers,
 * so that much still holds where a system lacks one of them:
 *
 * 1. Limits and bonds (sandbox_before_exec). The worker dies with its supervisor, cannot gain privileges, writes no core file, and
 *    is limited in private memory, size of files, and number of open files. Where the system allows it, its network is an empty
 *    namespace.
 * 2. Landlock (sandbox_files). It can read what is needed to load a shared object (system libraries, the image's own folder) and
 *    nothing else, write to its scratch folder if it has one, open no TCP port, and signal nobody. Capabilities are dropped.
 * 3. Seccomp (sandbox_calls). System calls are refused unless they are on a list. The filter is installed after the threads have
 *    started and before the image is loaded, so that its constructors already run under it, and so that no thread can be started
 *    any more. Calls that no honest kernel makes (sockets, processes, tracing, names of files ...) end the process by SIGSYS, and
 *    the supervisor says which call it was. All others, known or not, fail with ENOSYS: a C library that merely asks goes on
 *    without. Once the image is loaded a second filter refuses to open files at all, unless there is a scratch folder. Under a
 *    sanitizer the list is turned round: only the calls that neither a kernel nor the sanitizer makes are refused.
 * 4. Shared memory. Inputs are mapped from a sealed file for reading (arena.c), which no mprotect can change.
 *
 * What is not prevented: using processor time, which the supervisor bounds by its clock, and breaking the worker itself, which the
 * kernel shares a process with and which is not believed anything for that reason.
 */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

int sandbox_files(const char *image, const char *scratch, bool relaxed)
{
    static const char *const readable[] = {"/usr", "/lib", "/lib64", "/lib32", "/opt", "/nix", "/gnu", "/etc/ld.so.cache"};
    const uint64_t read = MAY_EXECUTE | MAY_READ | MAY_LIST;
    drop_capabilities();
    int version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, RULESET_VERSION);
    if (version < 1)
        return 0;
    struct ruleset rules = {.files = 0x1fff};
    if (version >= 2)
        rules.files |= 1 << 13; /* renaming across folders */
    if (version >= 3)
        rules.files |= MAY_TRUNCATE;
    if (version >= 4)
        rules.ports = 3; /* TCP: bind, connect */
    if (version >= 5)
        rules.files |= 1 << 15; /* ioctl of devices */
    if (version >= 6)
        rules.scopes = 3; /* abstract sockets and signals to others */
    size_t size = version >= 6 ? sizeof rules : version >= 4 ? 16 : 8;
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &rules, size, 0);
    if (ruleset < 0)
        return 0;
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++)
        allow_beneath(ruleset, readable[i], read);
    if (relaxed)
        allow_beneath(ruleset, "/", read);
    char folder[PATH_MAX];
    const char *slash = image ? strrchr(image, '/') : NULL;
    if (slash) {
        snprintf(folder, sizeof folder, "%.*s", slash == image ? 1 : (int)(slash - image), image);
        allow_beneath(ruleset, folder, read);
    }
    if (*scratch)
        allow_beneath(ruleset, scratch,
                      (read | MAY_WRITE | MAY_TRUNCATE | MAY_REMOVE_FOLDER | MAY_REMOVE_FILE | MAY_MAKE_FOLDER | MAY_MAKE_FILE) &
                          rules.files);
    bool done = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    close(ruleset);
    return done ? version : 0;
}

/* ---- system calls --------------------------------------------------------------------------------------------------- */

enum rule {
    ALLOW,
    TRAP,       /* SIGSYS: no honest kernel does this */
    TOOLS,      /* likewise, but sanitizers do */
    NAMES,      /* changes names of files: TRAP, unless Landlock guards a scratch folder */
    OPENS_1,    /* opens a file, flags in argument 1: only what is still allowed, else TRAP */
    OPENS_2,    /* flags in argument 2 */
    MYSELF,     /* argument 0 must be this process, else TRAP */
    LOOKS,      /* argument 2, a new value, must be NULL, else EPERM */
    HANDLES,    /* sets a signal handler: not for signals that speak of faults, which are ours */
    DESCRIPTORS /* fcntl: duplicates, and looks at flags */
};

struct call {
    int number;
    enum rule rule;
    const char *purpose; /* of a TRAP: what the process wanted */
};

#define CALL(name, rule, purpose)                                                                                                  \
    {                                                                                                                              \
        SYS_##name, rule, purpose " (" #name ")"                                                                                   \
    }

/* Frequent ones first. */
static const struct call calls[] = {
    CALL(futex, ALLOW, ""),
    CALL(sched_yield, ALLOW, ""),
    CALL(recvmsg, ALLOW, ""),
    CALL(sendto, ALLOW, ""),
    CALL(madvise, ALLOW, ""),
    CALL(mmap, ALLOW, ""),
    CALL(munmap, ALLOW, ""),
    CALL(mprotect, ALLOW, ""),
    CALL(mremap, ALLOW, ""),
    CALL(brk, ALLOW, ""),
    CALL(read, ALLOW, ""),
    CALL(write, ALLOW, ""),
    CALL(close, ALLOW, ""),
    CALL(clock_gettime, ALLOW, ""),
    CALL(clock_nanosleep, ALLOW, ""),
    CALL(clock_getres, ALLOW, ""),
    CALL(exit, ALLOW, ""),
    CALL(exit_group, ALLOW, ""),
    CALL(fcntl, DESCRIPTORS, ""),
    CALL(dup, ALLOW, ""),
    CALL(dup3, ALLOW, ""),
    CALL(fstat, ALLOW, ""),
    CALL(getcpu, ALLOW, ""),
    CALL(getcwd, ALLOW, ""),
    CALL(getegid, ALLOW, ""),
    CALL(geteuid, ALLOW, ""),
    CALL(getgid, ALLOW, ""),
    CALL(getpid, ALLOW, ""),
    CALL(getppid, ALLOW, ""),
    CALL(getrandom, ALLOW, ""),
    CALL(getrusage, ALLOW, ""),
    CALL(gettid, ALLOW, ""),
    CALL(gettimeofday, ALLOW, ""),
    CALL(getuid, ALLOW, ""),
    CALL(lseek, ALLOW, ""),
    CALL(nanosleep, ALLOW, ""),
    CALL(newfstatat, ALLOW, ""),
    CALL(openat, OPENS_2, "open a file"),
    CALL(pread64, ALLOW, ""),
    CALL(prlimit64, LOOKS, ""),
    CALL(readlinkat, ALLOW, ""),
    CALL(readv, ALLOW, ""),
    CALL(restart_syscall, ALLOW, ""),
    CALL(rseq, ALLOW, ""),
    CALL(rt_sigaction, HANDLES, ""),
    CALL(rt_sigprocmask, ALLOW, ""),
    CALL(rt_sigreturn, ALLOW, ""),
    CALL(sched_getaffinity, ALLOW, ""),
    CALL(seccomp, ALLOW, ""), /* can only take more away */
    CALL(set_robust_list, ALLOW, ""),
    CALL(sigaltstack, ALLOW, ""),
    CALL(statx, ALLOW, ""),
    CALL(sysinfo, ALLOW, ""),
    CALL(uname, ALLOW, ""),
    CALL(writev, ALLOW, ""),
#ifdef __x86_64__
    CALL(access, ALLOW, ""),
    CALL(arch_prctl, ALLOW, ""), /* libattest asks for AMX with it */
    CALL(dup2, ALLOW, ""),
    CALL(lstat, ALLOW, ""),
    CALL(open, OPENS_1, "open a file"),
    CALL(pause, ALLOW, ""),
    CALL(readlink, ALLOW, ""),
    CALL(stat, ALLOW, ""),
    CALL(time, ALLOW, ""),
#endif
    CALL(openat2, TRAP, "open a file"),
    CALL(kill, MYSELF, "send a signal to another process"),
    CALL(tgkill, MYSELF, "send a signal to another process"),
    CALL(tkill, TRAP, "send a signal to another thread"),
    CALL(rt_sigqueueinfo, TRAP, "send a signal to another process"),
    CALL(pidfd_send_signal, TRAP, "send a signal to another process"),
    CALL(clone, TOOLS, "start a thread or a process"),
    CALL(clone3, TOOLS, "start a thread or a process"),
    CALL(execve, TRAP, "run another program"),
    CALL(execveat, TRAP, "run another program"),
    CALL(ptrace, TOOLS, "trace a process"),
    CALL(process_vm_readv, TOOLS, "read the memory of another process"),
    CALL(process_vm_writev, TRAP, "write the memory of another process"),
    CALL(socket, TRAP, "open a socket"),
    CALL(socketpair, TRAP, "open a socket"),
    CALL(connect, TRAP, "connect a socket"),
    CALL(bind, TRAP, "bind a socket"),
    CALL(listen, TRAP, "listen on a socket"),
    CALL(accept, TRAP, "accept a connection"),
    CALL(accept4, TRAP, "accept a connection"),
    CALL(setsockopt, TRAP, "change a socket"),
    CALL(shutdown, TRAP, "shut down a socket"),
    CALL(bpf, TRAP, "load a program into the kernel"),
    CALL(perf_event_open, TRAP, "count events of the processor"),
    CALL(io_uring_setup, TRAP, "open a queue for system calls"),
    CALL(userfaultfd, TRAP, "handle page faults"),
    CALL(memfd_create, TOOLS, "make a file in memory"),
    CALL(keyctl, TRAP, "use the kernel's keys"),
    CALL(mount, TRAP, "mount a file system"),
    CALL(umount2, TRAP, "unmount a file system"),
    CALL(unshare, TRAP, "change its namespace"),
    CALL(setns, TRAP, "change its namespace"),
    CALL(chroot, TRAP, "change its root folder"),
    CALL(setpriority, TOOLS, "change its priority"),
    CALL(sched_setattr, TOOLS, "change its priority"),
    CALL(sched_setscheduler, TOOLS, "change its priority"),
    CALL(mkdirat, NAMES, "make a folder"),
    CALL(unlinkat, NAMES, "remove a file"),
    CALL(renameat2, NAMES, "rename a file"),
    CALL(linkat, NAMES, "link a file"),
    CALL(symlinkat, NAMES, "link a file"),
    CALL(mknodat, TRAP, "make a device"),
    CALL(fchmodat, NAMES, "change a file's mode"),
    CALL(fchmod, NAMES, "change a file's mode"),
    CALL(fchownat, TRAP, "change a file's owner"),
    CALL(fchown, TRAP, "change a file's owner"),
    CALL(truncate, NAMES, "cut a file"),
    CALL(ftruncate, NAMES, "cut a file"),
    CALL(utimensat, NAMES, "change a file's times"),
#ifdef __x86_64__
    CALL(fork, TRAP, "start a process"),
    CALL(vfork, TRAP, "start a process"),
    CALL(creat, NAMES, "make a file"),
    CALL(mkdir, NAMES, "make a folder"),
    CALL(rmdir, NAMES, "remove a folder"),
    CALL(unlink, NAMES, "remove a file"),
    CALL(rename, NAMES, "rename a file"),
    CALL(link, NAMES, "link a file"),
    CALL(symlink, NAMES, "link a file"),
    CALL(chmod, NAMES, "change a file's mode"),
    CALL(chown, TRAP, "change a file's owner"),
    CALL(lchown, TRAP, "change a file's owner"),
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

/* A rule as it is at this level. */
static enum rule rule_at(enum rule rule, enum sandbox_level level)
{
    bool opens = rule == OPENS_1 || rule == OPENS_2;
    if (level == SANDBOX_RELAXED)
        return rule == TRAP || rule == NAMES || rule == MYSELF ? rule : ALLOW;
    if (level == SANDBOX_SCRATCH && (opens || rule == NAMES))
        return ALLOW;
    return level == SANDBOX_NO_FILES && opens ? TRAP : rule;
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
    }
    program->steps[branch].jf = (uint8_t)(program->count - branch - 1);
}

bool sandbox_calls(enum sandbox_level level)
{
#if defined(__x86_64__)
    const uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
    const uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
    const uint32_t architecture = 0; /* then the filter is not installed */
#endif
    static struct program program;
    program.count = 0;
    load_word(&program, offsetof(struct seccomp_data, arch));
    step(&program, BPF_JMP | BPF_K | BPF_JEQ, 1, 0, architecture);
    end_with(&program, SECCOMP_RET_KILL_PROCESS);
    load_word(&program, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALLS; i++)
        append_call(&program, &calls[i], rule_at(calls[i].rule, level), (uint32_t)getpid());
    end_with(&program, level == SANDBOX_RELAXED ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | ENOSYS);
    const struct sock_fprog filter = {program.count, program.steps};
    return architecture && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

void sandbox_call_text(int number, char *text, size_t size)
{
    snprintf(text, size, "make system call %d", number);
    for (int i = 0; i < CALLS; i++)
        if (calls[i].number == number)
            snprintf(text, size, "%s", calls[i].purpose);
}
