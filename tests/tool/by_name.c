/*
 * by_name.c - the main() of the program that has all tests of the workbench in it: runs the one whose name the file has that was
 * started. The Makefile writes names.def, and renames the main() of each test to its name.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME(name) int name(int argc, char **argv);
#include "names.def"
#undef NAME

#define NAME(name) {#name, name},
static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} tests[] = {
#include "names.def"
};

int main(int argc, char **argv)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (strcmp(tests[i].name, name) == 0)
            return tests[i].run(argc, argv);
    fprintf(stderr, "%s: no test of this name\n", name);
    return 2;
}
