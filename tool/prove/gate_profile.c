/*
 * gate_profile.c - the profile gate: runs on the hardware it claims.
 *
 * For a CPU kernel the claim is `needs`, and it is checked in the image itself: the instructions of the feature that it claims are
 * there, and none of a feature that it does not claim, which would stop it with an illegal instruction on a machine it says it runs
 * on. For a CUDA kernel ncu measures it: see cuda_tools.c.
 *
 * details: instructions {feature: count}, claimed.
 */
#include "gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "cuda_tools.h"

/* In the order in which each builds on those before it. */
enum { ISA_AVX2, ISA_AVX512, ISA_AVX512BF16, ISA_AMX, ISA_COUNT };
static const char *const isa_names[] = {"avx2", "avx512", "avx512bf16", "amx"};

/* The feature that a line of a disassembly needs; -1 for plain x86-64. `text` is mnemonic and operands. */
static int isa_of(const char *text)
{
    if (strstr(text, "%tmm") || strncmp(text, "tdp", 3) == 0 || strncmp(text, "tile", 4) == 0 || strncmp(text, "ldtilecfg", 9) == 0)
        return ISA_AMX;
    if (text[0] != 'v' && text[0] != 'k')
        return -1;
    if (strncmp(text, "vdpbf16", 7) == 0 || strncmp(text, "vcvtne", 6) == 0)
        return ISA_AVX512BF16;
    if (strstr(text, "%zmm") || strstr(text, "{%k") || strstr(text, ",%k") || strstr(text, " %k"))
        return ISA_AVX512;
    return strstr(text, "%xmm") || strstr(text, "%ymm") || strncmp(text, "vzero", 5) == 0 ? ISA_AVX2 : -1;
}

/* False if the image could not be disassembled. */
static bool count_instructions(const char *image, long counts[ISA_COUNT])
{
    enum { ROOM = 64 << 20 };
    char *text = malloc(ROOM), *rest = NULL;
    char *argv[] = {(char *)(uintptr_t) "objdump",        (char *)(uintptr_t) "-d", (char *)(uintptr_t) "--no-show-raw-insn",
                    (char *)(uintptr_t) "--no-addresses", (char *)(uintptr_t)image, NULL};
    bool done = text && build_command(argv, 60, text, ROOM) == 0;
    for (char *line = done ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        int isa = line[0] == '\t' ? isa_of(line + 1) : -1;
        if (isa >= 0)
            counts[isa]++;
    }
    free(text);
    return done;
}

static void profile_cpu(struct proof *proof, struct gate_result *result)
{
    long counts[ISA_COUNT] = {0};
    int claimed = -1, used = -1;
#if !defined(__x86_64__)
    gate_say(result, VERDICT_NOT_APPLICABLE, "features are known for x86-64 alone, and this machine is another");
    return;
#endif
    if (!count_instructions(proof->candidate.image, counts)) {
        gate_say(result, VERDICT_INCONCLUSIVE, "objdump cannot read the image, or is not here; install binutils");
        return;
    }
    json_t *found = json_object();
    for (int i = 0; i < ISA_COUNT; i++) {
        json_put(found, isa_names[i], json_integer(counts[i]));
        if (strcmp(proof->facts.needs, isa_names[i]) == 0)
            claimed = i;
        if (counts[i])
            used = i;
    }
    json_put(result->details, "instructions", found);
    json_put(result->details, "claimed", json_string(proof->facts.needs));
    if (used > claimed)
        gate_say(result, VERDICT_FAIL, "it says that it needs %s, and has %ld instructions of %s",
                 claimed < 0 ? "nothing" : isa_names[claimed], counts[used], isa_names[used]);
    else if (claimed >= 0 && counts[claimed] == 0)
        gate_say(result, VERDICT_FAIL, "it claims %s and has not one instruction of it", isa_names[claimed]);
    else if (claimed < 0)
        gate_say(result, VERDICT_PASS, "plain instructions alone, as it says");
    else
        gate_say(result, VERDICT_PASS, "%ld instructions of %s, and none beyond", counts[claimed], isa_names[claimed]);
}

void gate_profile(struct proof *proof, struct gate_result *result)
{
    if (proof->candidate.cuda)
        cuda_gate_profile(proof, result);
    else
        profile_cpu(proof, result);
}
