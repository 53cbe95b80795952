/*
 * Tests of the rule that a CUDA kernel is a function of its arguments: instructions that are refused with their reason, neighbours of
 * them that are not, and what a source could hide from its image. No compiler is needed.
 */
#include "cuda/cuda_purity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build/cuda_listing.h"
#include "build/cuda_source.h"
#include "tap.h"

/* One instruction in a listing; `says` is part of the sentence, NULL if it is allowed. */
struct row {
    int arch;
    const char *instruction, *says;
};

static const struct row rows[] = {
    /* Clocks and identities. */
    {80, "S2UR UR6, SR_CLOCKLO", "a clock"},
    {80, "S2UR UR6, SR_CLOCKHI", "a clock"},
    {90, "CS2R R4, SR_CLOCKLO", "a clock"},
    {90, "@P0 CS2R.32 R4, SR_CLOCKLO", "a clock"},
    {90, "CS2R R4, SR_GLOBALTIMERLO", "a clock (globaltimer)"},
    {80, "S2UR UR4, SR_VIRTUALSMID", "number of the multiprocessor"},
    {80, "S2R R0, SR_VIRTID", "where on the multiprocessor"},
    {90, "S2UR UR4, SR_VIRTCFG", "how the multiprocessor is divided"},
    {90, "CS2R R4, SR_PM0", "a performance monitor"},
    {90, "S2R R4, SR_NOBODY_KNOWS", "a special register"},
    {90, "PMTRIG 0x8", "performance monitor"},
    {80, "MOV R2, c[0x0][0x30]", "number of the launch"},
    {90, "LDC.64 R4, c[0x0][0x30]", "number of the launch"},
    {100, "LDC.64 R4, c[0x0][0x140]", "number of the launch"},
    {80, "MOV R2, c[0x0][0x88]", "environment of the launch"},
    {80, "MOV R2, c[0x0][0x104]", "environment of the launch"},
    {90, "ULDC UR4, c[0x0][0xbc]", "environment of the launch"},
    {100, "LDCU UR6, c[0x0][UR6+0x250]", "environment of the launch"},
    {90, "LDC.64 R4, c[0x0][0x190]", "graph that is running"},
    {90, "ULDC UR4, c[0x0][0x1f0]", "a word of the driver's"},
    {90, "LDC R4, c[0x0][R2+-0x10]", "a word of the driver's"},
    {90, "LDC R4, c[0x0][R2]", "only a register says"},
    {80, "S2R R5, SR_TID.X", NULL},
    {80, "S2R R2, SR_LANEID", NULL},
    {80, "S2R R2, SR_LTMASK", NULL},
    {90, "S2UR UR5, SR_CgaCtaId", NULL},
    {90, "CS2R R4, SRZ", NULL},
    {80, "MOV R1, c[0x0][0x28]", NULL},
    {80, "ULDC.64 UR4, c[0x0][0x118]", NULL},
    {80, "IADD3 R2, R2, c[0x0][0x160], RZ", NULL},
    {90, "ULDC UR4, c[0x0][0x10c]", NULL},
    {90, "LDC R3, c[0x0][R3+0x210]", NULL},
    /* State and memory that is not the arguments'. */
    {80, "LDL R4, [R4]", "local memory"},
    {80, "STL.128 [R1], R8", "local memory"},
    {90, "ULDC UR6, c[0x0][0x20]", "local memory"},
    {80, "IMAD.WIDE.U32 R4, R2, R5, c[0x4][0x0]", "address of a variable"},
    {90, "LDC.64 R4, c[0x4][RZ]", "address of a variable"},
    {90, "LDC.64 R8, c[0x0][0xd0]", "address of constant memory"},
    {90, "LDC R2, c[0x3][R2]", NULL},
    {90, "LD.E R8, desc[UR4][R8.64]", NULL},
    /* Code that is not in the image. */
    {80, "CALL.ABS.NOINC R8", "printf"},
    {80, "CALL.REL.NOINC R2 0x0", "through a pointer"},
    {80, "LEPC R2", "address of code"},
    {100, "LEPC R20, 0x110", "address of code"},
    {90, "BPT.TRAP 0x1", "trap"},
    {90, "JMX R2 0x0", "in a register"},
    {90, "CALL.REL.NOINC 0x15080", NULL},
    {90, "RET.REL.NODEC R20 0x0", NULL},
    {80, "BRX R2 -0xe0", NULL},
    /* Order of arrival. */
    {80, "RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R4.64+-0x4], R3", "atomic on global memory"},
    {90, "ATOMG.E.ADD.STRONG.SYS PT, R7, [R6.64+-0x4], R9", "atomic on global memory"},
    {100, "REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R5", "atomic on global memory"},
    {80, "ATOM.E.ADD.STRONG.GPU PT, RZ, [R6.64], R9", "generic pointer"},
    {80, "ATOMS.CAST.SPIN R7, [RZ], R6, R7", "floating-point atomic"},
    {90, "UTMAREDG.2D.ADD [UR4], [UR8]", "order of arrival"},
    {90, "UBLKRED.G.S.ADD.F32.RN [UR4], [UR6], UR7", "order of arrival"},
    {90, "LDGMC.E.ADD.F16x2.RN.STRONG.SYS R5, [RZ.U32+UR4]", "several GPUs"},
    {80, "LDG.E.MMIO.SYS R0, [UR4]", "of a device"},
    {80, "ATOMS.ADD RZ, [RZ], R0", NULL},
    {90, "@P0 ATOMS.MAX.S32 RZ, [UR4+0x4], R10", NULL},
    {90, "ATOMS.OR RZ, [UR4+0x4], R10", NULL},
    {80, "ATOMS.ARRIVE.64 RZ, [UR4+0x8]", NULL},
    {90, "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R7+URZ], RZ", NULL},
    /* Caches, textures. */
    {80, "CCTL.E.PML2 [R2]", "evict_last"},
    {80, "CCTL.E.DML2 [R2]", "applypriority"},
    {80, "CCTL.E.RML2 [R2]", "discard"},
    {80, "LDG.E.EL R3, [R2.64]", "evict_last"},
    {90, "LDG.E.EL.128 R3, desc[UR4][R2.64]", "evict_last"},
    {100, "LDG.E.ELL2.256 RZ, R3, desc[UR4][R2.64], 0x1", "evict_last"},
    {80, "TEX.SCR.B.LL RZ, R7, R8, R6, 2D, 0x1", "texture"},
    {80, "SULD.D.BA.1D.STRONG.SM.TRAP R7, [R7], R0", "surface"},
    {80, "LDG.E.EF R3, [R2.64]", NULL},
    {90, "LDG.E.NA.LTC256B.CONSTANT R3, desc[UR4][R2.64]", NULL},
    {80, "CCTL.E.PF2 [R2+0x80]", NULL},
    {90, "CCTL.IVALL", NULL},
    {90, "NANOSLEEP R2", NULL},
    {90, "ACQBULK", NULL},
    {90, "USETMAXREG.DEALLOC.CTAPOOL 0x18", NULL},
    {90, "NEWOPCODE R2", "not among the instructions"},
};

static void instructions(void)
{
    char text[512];
    struct cuda_purity purity;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!tap_case("%d %s", rows[i].arch, rows[i].instruction))
            continue;
        snprintf(text, sizeof text,
                 "\t\tFunction : attest_kernel\n        /*0120*/                   %s ;   /* 0x0 */\n  /* 0x0 */\n",
                 rows[i].instruction);
        cuda_purity_listing(text, rows[i].arch, &purity);
        tap_check(purity.instructions == 1, "%d instructions", purity.instructions);
        tap_check(purity.refused == (rows[i].says != NULL), "%s", purity.first);
        if (rows[i].says)
            tap_check(strstr(purity.first, rows[i].says) && strncmp(purity.first, "attest_kernel+0x120 ", 20) == 0,
                      "'%s' does not say %s", purity.first, rows[i].says);
    }
    cuda_purity_listing("/*0010*/ UCGABAR_ARV ;\n/*0020*/ UTMALDG.2D.MULTICAST [UR4], [UR8], UR10 ;\n", 90, &purity);
    tap_check(strstr(purity.cluster, "UCGABAR_ARV") && !purity.refused, "%s", purity.cluster);
}

/* Descriptors: the driver's, harmless constants, and others. */
static void policies(void)
{
    static const struct {
        const char *before, *use;
        int policies;
    } cases[] = {
        {"ULDC.64 UR4, c[0x0][0x208]", "LDG.E R3, desc[UR4][R2.64]", 0},
        {"LDCU.64 UR4, c[0x0][0x358]", "LDG.E R3, desc[UR4][R2.64]", 0},
        {"ULDC UR4, c[0x0][0x208] ;\n/*0008*/ ULDC UR5, c[0x0][0x20c]", "STG.E desc[UR4][R4.64], R3", 0},
        {"LDC.64 R6, c[0x0][0x208] ;\n/*0008*/ R2UR UR4, R6 ;\n/*0009*/ R2UR UR5, R7", "LDG.E R3, desc[UR4][R2.64]", 0},
        {"UMOV UR4, 0x0 ;\n/*0008*/ UMOV UR5, 0x12f00000", "LDG.E R3, desc[UR4][R2.64]", 0},
        {"UMOV UR4, 0x0 ;\n/*0008*/ UMOV UR5, 0x14f00000", "LDG.E R3, desc[UR4][R2.64]", 1},
        {"UMOV UR4, 0x0 ;\n/*0008*/ UMOV UR5, 0x14f00000", "UTMALDG.2D [UR8], [UR10], desc[UR4]", 1},
        {"UMOV UR4, 0x0 ;\n/*0008*/ UMOV UR5, 0x14f00000", "HGMMA.64x64x16.F32 R24, gdesc[UR4], RZ, !UPT", 0},
        {"LDG.E.64 R6, [R2.64] ;\n/*0008*/ R2UR UR4, R6 ;\n/*0009*/ R2UR UR5, R7", "UBLKCP.S.G [UR4], [UR6], UR8, desc[UR4]", 1},
        {"ULDC.64 UR4, c[0x0][0x208] ;\n/*0008*/ @P0 ULOP3.LUT UR5, UR5, 0xf, UR4, 0xf8, !UPT", "LDG.E R3, desc[UR4][R2.64]", 1},
        {"ULDC.64 UR8, c[0x0][0x208] ;\n/*0008*/ UMOV UR4, UR8 ;\n/*0009*/ UMOV UR5, UR9", "LDG.E R3, desc[UR4][R2.64]", 0},
        {"NOP", "LDG.E R3, [R2.64]", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        struct cuda_listing listing;
        if (!tap_case("%s, %s", cases[i].before, cases[i].use))
            continue;
        snprintf(text, sizeof text, "/*0000*/ %s ;\n/*0010*/ %s ;\n/*0020*/ EXIT ;\n", cases[i].before, cases[i].use);
        tap_check(cuda_listing_read(text, &listing) && listing.policies == cases[i].policies, "%d policies: %s", listing.policies,
                  listing.policy);
    }
}

static char folder[] = "/tmp/attest-purity-XXXXXX";

/* What a preprocessor leaves of a source. */
static void sources(void)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"# 1 \"SOURCE\"\nint x;\n#pragma unroll\nint y;\n#pragma unroll 4\n", NULL},
        {"# 1 \"SOURCE\"\n#pragma nv_diag_suppress 177\n", "mine.cu:1: #pragma nv_diag_suppress 177"},
        {"# 1 \"SOURCE\"\n\n\n#pragma diag_suppress 177\n", "mine.cu:3: #pragma diag_suppress"},
        {"# 1 \"SOURCE\"\n#pragma GCC diagnostic ignored \"-Wall\"\n", "#pragma GCC diagnostic"},
        {"# 1 \"SOURCE\"\n#pragma GCC system_header\n", "#pragma GCC system_header"},
        {"# 1 \"SOURCE\"\n#pragma nv_exec_check_disable\n", "#pragma nv_exec_check_disable"},
        {"# 1 \"SOURCE\"\n  #pragma nv_diagnostic push\n", "#pragma nv_diagnostic"},
        {"# 1 \"SOURCE\"\n# 1 \"/usr/include/stdio.h\" 1 3\n#pragma GCC diagnostic push\n# 2 \"SOURCE\" 2\n", NULL},
        {"# 1 \"SOURCE\"\n# 1 \"/etc/passwd\" 1\n# 2 \"SOURCE\" 2\n", "it includes /etc/passwd"},
        {"# 1 \"SOURCE\"\n# 1 \"/usr/include/../../etc/passwd\" 1\n# 2 \"SOURCE\" 2\n",
         "it includes /usr/include/../../etc/passwd"},
        {"# 1 \"SOURCE\"\n# 1 \"/dev/null\" 1\n# 2 \"SOURCE\" 2\n", "it includes /dev/null"},
        {"# 1 \"SOURCE\"\n# 1 \"include/attest_kernel_cuda.h\" 1\n# 2 \"SOURCE\" 2\n", NULL},
    };
    static const struct {
        const char *text;
        int line;
    } files[] = {{"int x;\n", 0},
                 {"/*\n * # 1 is a number\n */\nint x = 1; // # 3 \"x\"\n", 0},
                 {"int x;\n# 3 \"/usr/include/stdio.h\" 1 3\n", 2},
                 {"#line 3 \"/usr/include/stdio.h\"\n", 1},
                 {"/* x */ # 3 \"/usr/include/stdio.h\"\n", 1},
                 {"/* x\n*/\t%: 3 \"/usr/include/stdio.h\"\n", 2},
                 {"#\\\nline 3\n", 1},
                 {"  #  define line 3\n", 0}};
    char source[64], text[1024], why[400];
    snprintf(source, sizeof source, "%s/mine.cu", folder);
    const struct cuda_places places = {source, "include", "/usr/local/cuda/bin/nvcc"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!tap_case("%s", cases[i].text))
            continue;
        FILE *file = fopen(source, "w");
        if (!file || fputs("int x;\n", file) < 0 || fclose(file) != 0)
            exit(1);
        const char *from = cases[i].text;
        char *to = text;
        while (*from) /* SOURCE stands for the path */
            if (strncmp(from, "SOURCE", 6) == 0) {
                to += sprintf(to, "%s", source);
                from += 6;
            } else {
                *to++ = *from++;
            }
        *to = '\0';
        why[0] = '\0';
        bool good = cuda_source_judge(text, &places, why, sizeof why);
        tap_check(good == !cases[i].says && (good || strstr(why, cases[i].says)), "%s", why);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (!tap_case("%s", files[i].text))
            continue;
        char wanted[32];
        FILE *file = fopen(source, "w");
        if (!file || fputs(files[i].text, file) < 0 || fclose(file) != 0)
            exit(1);
        snprintf(text, sizeof text, "# 1 \"%s\"\n", source);
        snprintf(wanted, sizeof wanted, "mine.cu:%d: a directive", files[i].line);
        why[0] = '\0';
        bool good = cuda_source_judge(text, &places, why, sizeof why);
        tap_check(good == !files[i].line && (good || strstr(why, wanted)), "%s", why);
    }
    unlink(source);
}

static void assembler(void)
{
    static const struct {
        const char *text;
        bool compiled;
        const char *says;
    } cases[] = {
        {".visible .entry k()\n{\n.pragma \"nounroll\";\nret;\n}\n", true, NULL},
        {".pragma \"enable_smem_spilling\";", true, "enable_smem_spilling"},
        {"x:\t.pragma\t\"enable_smem_spilling\";", false, "enable_smem_spilling"},
        {".global .b32 x;\n", true, NULL}, /* the image says it */
        {"// begin inline asm\nld.global.b32 r, [a];\n.reg .b32 r;\n// end inline asm\n", true, NULL},
        {"// begin inline asm\n{.global .b32 x[4];}\n// end inline asm\n", true, "has .global"},
        {"// begin inline asm\n\t.local .b32 x[4];\n// end inline asm\n", true, "has .local"},
        {"// begin inline asm\n/* .local */ mov.u32 a, b; // .global\n// end inline asm\n", true, NULL},
        {"// begin inline asm\n// end inline asm\n .global .b32 x;\n// end inline asm\n", true, "mark for where it begins"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char why[400] = "";
        if (!tap_case("%s", cases[i].text))
            continue;
        bool good = cuda_ptx_judge(cases[i].text, cases[i].compiled, why, sizeof why);
        tap_check(good == !cases[i].says && (good || strstr(why, cases[i].says)), "%s", why);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"instructions", instructions}, {"policies", policies}, {"sources", sources}, {"assembler", assembler}};
    int status = mkdtemp(folder) ? tap_main(argc, argv, tests, sizeof tests / sizeof *tests) : 1;
    rmdir(folder);
    return status;
}
