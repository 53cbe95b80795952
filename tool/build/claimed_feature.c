/*
 * claimed_feature.c - see claimed_feature.h.
 */
#include "claimed_feature.h"

#include <stdio.h>
#include <string.h>

#include "code_listing.h"

/* The feature that an instruction needs; -1 for plain x86-64. `text` is mnemonic and operands. */
static int feature_of(const char *text)
{
    if (strstr(text, "%tmm") || strncmp(text, "tdp", 3) == 0 || strncmp(text, "tile", 4) == 0 || strncmp(text, "ldtilecfg", 9) == 0)
        return FEATURE_AMX;
    if (text[0] != 'v' && text[0] != 'k')
        return -1;
    if (strncmp(text, "vdpbf16", 7) == 0 || strncmp(text, "vcvtne", 6) == 0)
        return FEATURE_AVX512BF16;
    if (strstr(text, "%zmm") || strstr(text, "{%k") || strstr(text, ",%k") || strstr(text, " %k"))
        return FEATURE_AVX512;
    return strstr(text, "%xmm") || strstr(text, "%ymm") || strncmp(text, "vzero", 5) == 0 ? FEATURE_AVX2 : -1;
}

/* Whether an instruction uses the widest registers of its feature, which are what the feature is for: scalars in VEX encoding are not. */
static bool is_wide(const char *text, enum feature feature)
{
    return feature == FEATURE_AVX2 ? strstr(text, "%ymm") != NULL : feature == FEATURE_AVX512 ? strstr(text, "%zmm") != NULL : true;
}

bool feature_counts(const char *path, long counts[FEATURE_COUNT], char *why, size_t why_size)
{
    struct elf_image image = {0};
    struct code_listing listing = {0};
    bool good = elf_read(path, &image, why, why_size) && code_listing_make(path, &image, &listing, why, why_size);
    memset(counts, 0, FEATURE_COUNT * sizeof *counts);
    for (int i = 0; good && i < listing.count; i++) {
        int feature = feature_of(listing.lines[i].mnemonic);
        if (feature >= 0)
            counts[feature]++;
    }
    code_listing_free(&listing);
    elf_free(&image);
    return good;
}

bool feature_trap(const char *path, enum feature feature, const char *trapped, char *why, size_t why_size)
{
    static const unsigned char ud2[] = {0x0f, 0x0b}; /* no instruction with a VEX or EVEX prefix is as short */
    struct elf_image image = {0};
    struct code_listing listing = {0};
    bool good = elf_read(path, &image, why, why_size) && code_listing_make(path, &image, &listing, why, why_size), wide = false;
    for (int i = 0; good && i < listing.count && !wide; i++)
        wide = feature_of(listing.lines[i].mnemonic) == (int)feature && is_wide(listing.lines[i].mnemonic, feature);
    for (int i = 0; good && i < listing.count; i++) {
        const char *text = listing.lines[i].mnemonic;
        if (feature_of(text) != (int)feature || (wide && !is_wide(text, feature)))
            continue;
        const unsigned char *at = elf_at(&image, listing.lines[i].address, sizeof ud2);
        if (at)
            memcpy(image.bytes + (at - image.bytes), ud2, sizeof ud2);
    }
    if (good) {
        FILE *file = fopen(trapped, "wb");
        good = file && fwrite(image.bytes, 1, image.size, file) == image.size;
        good = file && fclose(file) == 0 && good;
        if (!good)
            snprintf(why, why_size, "cannot write %s", trapped);
    }
    code_listing_free(&listing);
    elf_free(&image);
    return good;
}
