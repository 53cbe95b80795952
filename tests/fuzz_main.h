/*
 * fuzz_main.h - a main() for fuzzers that are not linked with libFuzzer (-DATTEST_LIBFUZZER says that they are): it replays the
 * files and folders it is given, and with --mutate N also N random changes of each. A finding is a crash or an abort().
 */
#ifndef FUZZ_MAIN_H
#define FUZZ_MAIN_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef ATTEST_LIBFUZZER

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 1 << 16 };
static int inputs, mutations;
static uint64_t fuzz_state = 1;

static uint64_t fuzz_random(void)
{
    fuzz_state ^= fuzz_state << 13;
    fuzz_state ^= fuzz_state >> 7;
    fuzz_state ^= fuzz_state << 17;
    return fuzz_state;
}

/* Each change is a copy of the input with up to four bytes overwritten, dropped or doubled. */
static void replay_changed(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(2 * size + 8);
    for (int n = 0; n < mutations && copy && size; n++) {
        size_t length = size;
        memcpy(copy, data, size);
        for (uint64_t change = fuzz_random() % 4; length && change < 4; change++) {
            size_t at = (size_t)(fuzz_random() % length);
            switch (fuzz_random() % 4) {
            case 0:
                copy[at] = (uint8_t)fuzz_random();
                break;
            case 1:
                copy[at] ^= (uint8_t)(1 << fuzz_random() % 8);
                break;
            case 2:
                memmove(copy + at, copy + at + 1, length - at - 1);
                length--;
                break;
            default:
                memmove(copy + at + 1, copy + at, length - at);
                length++;
                break;
            }
        }
        uint8_t *exact = malloc(length ? length : 1); /* of the exact size, so that a sanitizer sees a read beyond it */
        if (exact) {
            memcpy(exact, copy, length);
            LLVMFuzzerTestOneInput(exact, length);
            free(exact);
        }
    }
    free(copy);
}

static int replay(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return 0;
    if (S_ISDIR(info.st_mode)) {
        struct dirent **entries;
        int count = scandir(path, &entries, NULL, alphasort), good = count > 0;
        for (int n = 0; n < count; n++) {
            char inner[4096];
            snprintf(inner, sizeof inner, "%s/%s", path, entries[n]->d_name);
            if (entries[n]->d_name[0] != '.')
                good = replay(inner) && good;
            free(entries[n]);
        }
        free(entries);
        return good;
    }
    FILE *file = fopen(path, "rb");
    static uint8_t bytes[MOST_BYTES];
    if (!file)
        return 0;
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    printf("# %s\n", path);
    fflush(stdout); /* so that a crash has its input as the last line */
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact)
        return 0;
    memcpy(exact, bytes, size);
    LLVMFuzzerTestOneInput(exact, size);
    replay_changed(exact, size);
    free(exact);
    inputs++;
    return 1;
}

int main(int argc, char **argv)
{
    int good = 1;
    for (int n = 1; n < argc; n++) {
        if (!strcmp(argv[n], "--mutate") && n + 1 < argc)
            mutations = atoi(argv[++n]);
        else if (!strcmp(argv[n], "--seed") && n + 1 < argc)
            fuzz_state = strtoull(argv[++n], NULL, 0) * 2 + 1;
        else
            good = replay(argv[n]) && good;
    }
    printf("%s 1 - replayed %d inputs, %d changes each\n1..1\n", good && inputs ? "ok" : "not ok", inputs, mutations);
    return !(good && inputs);
}

#endif
#endif
