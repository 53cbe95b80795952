/*
 * Tests of the reader of machine code (cuda_listing.h): a small listing with a write that comes too early, and what becomes of it; then
 * the images of the library, in which there is none, and which are functions of their arguments.
 */
#include "build/cuda_listing.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build/build.h"
#include "build/cuda_compile.h"
#include "cuda/cuda_purity.h"
#include "tap.h"

enum { ROOM = 32 << 20 };

static char *text_of(const char *path)
{
    char *text = calloc(1, 1 << 16);
    FILE *file = fopen(path, "rb");
    if (!text || !file)
        exit(1);
    text[fread(text, 1, (1 << 16) - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* The listing with `from` replaced by `to`. */
static struct cuda_listing changed(const char *from, const char *to)
{
    struct cuda_listing listing = {0};
    char *text = text_of("tests/data/cuda/wgmma_early.txt"), *at = strstr(text, from), *made = malloc(1 << 17);
    if (tap_check(at && made, "%s is not in the listing", from)) {
        snprintf(made, 1 << 17, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
        tap_check(cuda_listing_read(made, &listing), "no memory");
    }
    free(text);
    free(made);
    return listing;
}

static void small(void)
{
    static const struct {
        const char *from, *to;
        int early;
        const char *first;
    } rows[] = {
        {"EXIT", "EXIT", 1, "0x70 FFMA R123, R26, R12.reuse, -R13"}, /* the branch goes past the wait */
        {"@!P0 BRA 0x70", "NOP", 0, ""},
        {"@!P0 BRA 0x70", "@!P0 BRA 0x80", 0, ""},
        {"@!P0 BRA 0x70", "BRA P1, 0x70", 1, "0x70 FFMA"},
        {"@!P0 BRA 0x70", "BRA 0x70", 1, "0x70 FFMA"},
        {"@!P0 BRA 0x70", "CALL.REL.NOINC 0x70", 1, "0x70 FFMA"},
        {"@!P0 BRA 0x70", "EXIT", 0, ""},
        {"gsb0, 0x0", "gsb0, 0x1", 2, "0x60 F2FP.F16.F32.PACK_AB R120"},
        {"FFMA R123", "FFMA R124", 0, ""},
        {"FFMA R123", "FFMA R119", 0, ""},
        {"FFMA R123, R26, R12.reuse, -R13", "IMAD.WIDE R118, R26, R12, R14", 0, ""},
        {"FFMA R123, R26, R12.reuse, -R13", "LDS.128 R118, [R26]", 1, "0x70 LDS.128"},
        {"FFMA R123, R26, R12.reuse, -R13", "LDS.64 R118, [R26]", 0, ""},
        {"FFMA R123, R26, R12.reuse, -R13", "LDSM.16.MT88.4 R117, [R26]", 1, "0x70 LDSM"},
        {"FFMA R123, R26, R12.reuse, -R13", "SHFL.BFLY PT, R122, R26, 0x1, 0x1f", 1, "0x70 SHFL"},
        {"FFMA R123, R26, R12.reuse, -R13", "ISETP.GE.AND P0, PT, R122, R26, PT", 0, ""},
        {"FFMA R123, R26, R12.reuse, -R13", "@P3 MOV R121, RZ", 1, "0x70 @P3 MOV R121, RZ"},
        {"HGMMA.64x64x16.F32 R88, R120", "HGMMA.64x64x16.F32 R88, gdesc[UR12]", 0, ""},
        {"HGMMA.64x64x16.F32 R88, R120", "HGMMA.64x64x16.F32 R88, R124", 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!tap_case("%s -> %s", rows[i].from, rows[i].to))
            continue;
        struct cuda_listing listing = changed(rows[i].from, rows[i].to);
        tap_check(listing.instructions == 10 && listing.early == rows[i].early &&
                      strncmp(listing.first, rows[i].first, strlen(rows[i].first)) == 0,
                  "%d instructions, %d writes too early: %s", listing.instructions, listing.early, listing.first);
    }
}

/* Two functions one after the other, a loop that comes back to the product, and texts that are no listing. */
static void others(void)
{
    struct cuda_listing listing;
    char twice[1 << 12], *text = text_of("tests/data/cuda/wgmma_early.txt");
    snprintf(twice, sizeof twice, "Function : a\n%sFunction : b\n%s", text, text);
    tap_check(cuda_listing_read(twice, &listing) && listing.early == 2 && listing.products == 2, "%d writes in two functions",
              listing.early);
    free(text);
    listing = changed("EXIT", "BRA 0x10");
    tap_check(listing.early == 1, "%d writes in a loop", listing.early);
    static const char *const nothing[] = {
        "", "\n", "/*", "/*0010*/", "/*zz*/ MOV R1, R2 ;", "        /* 0x000000 */\n", "/*0000*/ ;\n"};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        tap_check(cuda_listing_read(nothing[i], &listing) && listing.early == 0 && listing.products == 0, "%s", nothing[i]);
}

/* Every image of the library with products of warpgroups, and one of each other kernel and architecture: nothing is written too early,
 * and each is a function of its arguments. */
static void library(void)
{
    const char *build = getenv("BUILD");
    char pattern[256], *lister = cuda_tool_find("cuobjdump"), *text = malloc(ROOM);
    glob_t images = {0};
    snprintf(pattern, sizeof pattern, "%s/cuda/*.sm_90a.cubin", build ? build : "build");
    bool any = glob(pattern, 0, NULL, &images) == 0;
    snprintf(pattern, sizeof pattern, "%s/cuda/*.f16.d64.sm_[89]0.cubin", build ? build : "build");
    any = glob(pattern, GLOB_APPEND, NULL, &images) == 0 && any;
    bool must = any && getenv("CI"); /* CI has all tools */
    if (!any || !lister || !text) {
        if (!must)
            tap_skip(any ? "cuobjdump is not here: it comes with the CUDA toolkit" : "this build has no CUDA kernels");
        tap_check(!must, "there are images, and no cuobjdump to list them");
        images.gl_pathc = 0;
    }
    for (size_t i = 0; i < images.gl_pathc; i++) {
        char *argv[] = {lister, "-sass", images.gl_pathv[i], NULL};
        struct cuda_listing listing = {0};
        if (!tap_case("%s", images.gl_pathv[i]))
            continue;
        tap_check(build_command(argv, 60, text, ROOM) == 0 && cuda_listing_read(text, &listing), "it cannot be listed");
        struct cuda_purity purity;
        bool warpgroups = strstr(images.gl_pathv[i], ".sm_90a.") != NULL;
        cuda_purity_listing(text, warpgroups || strstr(images.gl_pathv[i], ".sm_90.") ? 90 : 80, &purity);
        tap_check((listing.products > 0) == warpgroups && listing.early == 0, "%d products, %d writes too early: %s",
                  listing.products, listing.early, listing.first);
        tap_check(purity.refused == 0 && listing.policies == 0, "%s%s", purity.first, listing.policy);
    }
    globfree(&images);
    free(lister);
    free(text);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"small", small}, {"others", others}, {"library", library}};
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
