/*
 * The problems that the correctness gate draws by itself: the table of fields has everything that a problem has, the array covers every
 * triple that it can, also of kernels that take aligned rows alone, and the numbers of a text are found.
 */
#include "theory/covering.h"
#include "build/kernel_constants.h"
#include "theory/problem_space.h"
#include "base/random.h"
#include "tap.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

/* Whether a field of the table names this member or flag among those that it covers. */
static bool is_covered(const char *word)
{
    size_t length = strlen(word);
    for (int f = 0; f < FIELD_COUNT; f++)
        for (const char *at = field_covers(f); (at = strstr(at, word)); at += length)
            if ((at == field_covers(f) || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
                return true;
    return false;
}

static void every_member(void)
{
#define MEMBER(type, name)                                                                                                         \
    {                                                                                                                              \
#name, offsetof(type, name), sizeof(((type *)0)->name)                                                                     \
    }
#define OF_PROBLEM(name) MEMBER(attest_problem, name)
#define OF_TENSORS(name) MEMBER(attest_tensors, name)
    static const struct {
        const char *name;
        size_t at, size;
    } problem[] = {OF_PROBLEM(size),         OF_PROBLEM(flags),
                   OF_PROBLEM(op),           OF_PROBLEM(dtype),
                   OF_PROBLEM(dtype_o),      OF_PROBLEM(dtype_bias),
                   OF_PROBLEM(batch),        OF_PROBLEM(heads_q),
                   OF_PROBLEM(heads_kv),     OF_PROBLEM(seq_q),
                   OF_PROBLEM(seq_kv),       OF_PROBLEM(dim),
                   OF_PROBLEM(dim_v),        OF_PROBLEM(total_q),
                   OF_PROBLEM(total_kv),     OF_PROBLEM(page_size),
                   OF_PROBLEM(page_count),   OF_PROBLEM(window_left),
                   OF_PROBLEM(window_right), OF_PROBLEM(scale),
                   OF_PROBLEM(softcap),      OF_PROBLEM(stride_q),
                   OF_PROBLEM(stride_k),     OF_PROBLEM(stride_v),
                   OF_PROBLEM(stride_o),     OF_PROBLEM(stride_lse),
                   OF_PROBLEM(stride_bias),  OF_PROBLEM(stride_page_table),
                   OF_PROBLEM(stride_mask),  OF_PROBLEM(stride_alibi_slopes)},
      tensors[] = {OF_TENSORS(size),
                   OF_TENSORS(q),
                   OF_TENSORS(k),
                   OF_TENSORS(v),
                   OF_TENSORS(o),
                   OF_TENSORS(lse),
                   OF_TENSORS(bias),
                   OF_TENSORS(alibi_slopes),
                   OF_TENSORS(sinks),
                   OF_TENSORS(cu_seqlens_q),
                   OF_TENSORS(cu_seqlens_kv),
                   OF_TENSORS(kv_lengths),
                   OF_TENSORS(page_table),
                   OF_TENSORS(mask),
                   OF_TENSORS(row_offsets),
                   OF_TENSORS(kv_starts),
                   OF_TENSORS(q_lengths)};
    static const char *const flags[] = {"CAUSAL", "BOTTOM_RIGHT", "WINDOW_LEFT", "WINDOW_RIGHT", "SOFTCAP",   "ALIBI",
                                        "BIAS",   "SINK",         "LSE",         "VARLEN_Q",     "VARLEN_KV", "KV_LENGTHS",
                                        "PAGED",  "INVARIANT",    "ROW_OFFSETS", "KV_STARTS",    "Q_LENGTHS", "MASK"};
    static const char *const constant[] = {"size", "op", "flags"}; /* the flags are looked at one by one */
    size_t end = 0;
    for (int n = 0; n < COUNT_OF(problem) + COUNT_OF(tensors); n++) {
        bool second = n >= COUNT_OF(problem);
        const char *name = second ? tensors[n - COUNT_OF(problem)].name : problem[n].name;
        size_t at = second ? tensors[n - COUNT_OF(problem)].at : problem[n].at;
        bool is_constant = false;
        if (n == COUNT_OF(problem)) {
            tap_check(end == sizeof(attest_problem), "attest_problem has members behind stride_alibi_slopes");
            end = 0;
        }
        tap_check(at == end, "there is a member before %s that this list does not have", name);
        end += second ? tensors[n - COUNT_OF(problem)].size : problem[n].size;
        for (int i = 0; i < COUNT_OF(constant); i++)
            is_constant = is_constant || strcmp(constant[i], name) == 0;
        tap_check(is_constant || is_covered(name), "no field of the table covers %s", name);
    }
    tap_check(end == sizeof(attest_tensors), "attest_tensors has members behind q_lengths");
    for (int n = 0; n < COUNT_OF(flags); n++)
        tap_check(is_covered(flags[n]), "no field of the table covers ATTEST_%s", flags[n]);
    attest_problem unknown;
    attest_problem_init(&unknown, ATTEST_F32, 1, 1, 1, 1, 1, 1);
    unknown.flags = UINT64_C(1) << COUNT_OF(flags);
    tap_check(attest_problem_check(&unknown, NULL, 0) != ATTEST_OK, "there is a flag that this list does not have");
}

/* ---- the generator ------------------------------------------------------------------------------------------------------- */

/* Levels of fields next to each other must not both be their last. */
static bool small_agree(const void *data, int a, int la, int b, int lb)
{
    const struct covering_space *space = data;
    return !(abs(a - b) == 1 && la == space->levels[a] - 1 && lb == space->levels[b] - 1);
}

static struct covering_space small_space(void)
{
    struct covering_space space = {.fields = 9, .agree = small_agree, .most = 5.5, .usual = 3};
    for (int f = 0; f < space.fields; f++) {
        space.levels[f] = 2 + f % 4;
        for (int l = 0; l < space.levels[f]; l++)
            space.work[f][l] = l == 3 ? 2 : 0;
    }
    return space;
}

static void whole_coverage(void)
{
    struct covering_space space = small_space();
    space.data = &space;
    bool all[COVERING_FIELDS];
    memset(all, true, sizeof all);
    struct covering *covering = covering_make(&space, tap.seed);
    int rows[2000][COVERING_FIELDS], count = 0;
    while (count < 2000 &&
           covering_counts(covering).covered + covering_counts(covering).infeasible < covering_counts(covering).triples &&
           covering_next(covering, rows[count]))
        covering_mark(covering, rows[count++], all);
    int64_t missing = 0, infeasible = 0;
    for (int a = 0; a < space.fields; a++)
        for (int b = a + 1; b < space.fields; b++)
            for (int c = b + 1; c < space.fields; c++)
                for (int n = 0; n < space.levels[a] * space.levels[b] * space.levels[c]; n++) {
                    int la = n % space.levels[a], lb = n / space.levels[a] % space.levels[b],
                        lc = n / space.levels[a] / space.levels[b];
                    bool feasible = small_agree(&space, a, la, b, lb) && small_agree(&space, b, lb, c, lc) &&
                                    space.work[a][la] + space.work[b][lb] + space.work[c][lc] <= space.most,
                         found = false;
                    for (int r = 0; r < count && !found; r++)
                        found = rows[r][a] == la && rows[r][b] == lb && rows[r][c] == lc;
                    tap_check(found == covering_has(covering, a, la, b, lb, c, lc), "a triple is counted wrongly");
                    tap_check(feasible || !found, "a row has what cannot be");
                    missing += feasible && !found;
                    infeasible += !feasible;
                }
    tap_check(missing == 0, "%lld triples of %d rows are missing", (long long)missing, count);
    tap_check(infeasible == covering_counts(covering).infeasible, "%lld infeasible", (long long)infeasible);
    tap_check(count < 250, "%d rows", count);
    for (int r = 0; r < count; r++) {
        double work = 0;
        for (int f = 0; f < space.fields; f++)
            work += space.work[f][rows[r][f]];
        tap_check(work <= space.most, "too much work");
    }
    covering_free(covering);
}

/* Levels that are excluded come in no further row, and the others are covered all the same. */
static void excluded_levels(void)
{
    struct covering_space space = small_space();
    space.data = &space;
    bool all[COVERING_FIELDS];
    memset(all, true, sizeof all);
    struct covering *covering = covering_make(&space, tap.seed);
    covering_exclude(covering, (const int[]){1, 5}, (const int[]){1, 1}, 2);
    covering_exclude(covering, (const int[]){0, 4, 8}, (const int[]){1, 0, 1}, 3);
    int row[COVERING_FIELDS], count = 0;
    for (; count < 400 && covering_next(covering, row); count++) {
        covering_mark(covering, row, all);
        tap_check(!(row[1] == 1 && row[5] == 1), "row %d has a pair that is excluded", count);
        tap_check(!(row[0] == 1 && row[4] == 0 && row[8] == 1), "row %d has three levels that are excluded", count);
    }
    struct covering_count counts = covering_counts(covering);
    tap_check(count == 400, "%d rows", count);
    tap_check(counts.covered + counts.infeasible == counts.triples, "%lld triples are missing",
              (long long)(counts.triples - counts.covered - counts.infeasible));
    tap_check(covering_has(covering, 1, 1, 5, 0, 8, 1) && covering_has(covering, 0, 1, 4, 0, 8, 0),
              "a triple beside them is missing");
    tap_check(!covering_has(covering, 1, 1, 5, 1, 8, 1), "a triple that is excluded was covered");
    covering_free(covering);
}

static bool takes_all(const void *data, const attest_problem *problem)
{
    (void)data, (void)problem;
    return true;
}

/* Rows of problems: valid, the same for the same seed, others for another; and how much they cover. */
static void problems_of_rows(void)
{
    struct problem_space space;
    bool all[COVERING_FIELDS];
    memset(all, true, sizeof all);
    problem_space_make(&space, (struct taker){takes_all, NULL}, 1.5e5, 4e6);
    struct covering *covering[3] = {covering_make(&space.covering, 1), covering_make(&space.covering, 1),
                                    covering_make(&space.covering, 2)};
    int same = 0, drawn = 0, rows = tap_amount(50, 700, 4000);
    for (int n = 0; n < rows; n++) {
        int row[3][COVERING_FIELDS];
        attest_problem problem, again;
        struct contents contents, contents_again;
        for (int i = 0; i < 3; i++)
            if (tap_check(covering_next(covering[i], row[i]), "no row"))
                covering_mark(covering[i], row[i], all);
        tap_check(memcmp(row[0], row[1], sizeof row[0]) == 0, "the same seed gives another row");
        same += memcmp(row[0], row[2], sizeof row[0]) == 0;
        if (!problem_space_draw(&space, row[0], (uint64_t)n, &problem, &contents))
            continue;
        drawn++;
        tap_check(attest_problem_check(&problem, NULL, 0) == ATTEST_OK, "a problem that the library refuses");
        problem_space_draw(&space, row[0], (uint64_t)n, &again, &contents_again);
        tap_check(memcmp(&problem, &again, sizeof problem) == 0 && memcmp(&contents, &contents_again, sizeof contents) == 0,
                  "the same seed gives another problem");
        char text[CONTENTS_TEXT], why[256];
        contents_print(&contents, text);
        tap_check(contents_parse(text, &contents_again, why, sizeof why) && !memcmp(&contents, &contents_again, sizeof contents),
                  "%s does not parse to itself", text);
    }
    struct covering_count count = covering_counts(covering[0]);
    double share = (double)count.covered / (double)(count.triples - count.infeasible);
    tap_note("%d rows cover %.1f %% of %lld triples, %lld infeasible", rows, 100 * share, (long long)count.triples,
             (long long)count.infeasible);
    tap_check(same == 0, "%d rows are the same for another seed", same);
    tap_check(drawn > rows * 85 / 100, "%d of %d rows are problems", drawn, rows);
    if (!tap.quick)
        tap_check(share > 0.6, "%.3f of the triples", share);
    for (int i = 0; i < 3; i++)
        covering_free(covering[i]);
}

static bool is_aligned(const int64_t stride[3])
{
    return (stride[0] | stride[1] | stride[2]) % 8 == 0;
}

/* As kernels with tensor maps: 16 bits, rows that begin at multiples of 16 bytes, few features, few tiles. */
static bool takes_aligned(const void *data, const attest_problem *problem)
{
    (void)data;
    return problem->dtype != ATTEST_F32 && problem->dim <= 128 && problem->dim_v <= 128 &&
           !(problem->flags & (ATTEST_BIAS | ATTEST_ALIBI | ATTEST_VARLEN_KV)) &&
           problem->batch * problem->heads_q * ((problem->seq_q + 63) / 64) <= 132 && problem->stride_k[1] >= 0 &&
           is_aligned(problem->stride_q) && is_aligned(problem->stride_k) && is_aligned(problem->stride_v) &&
           is_aligned(problem->stride_o);
}

/* What a kernel refuses is drawn again, or learned, so that most rows of its array are problems. */
static void problems_of_aligned_rows(void)
{
    struct problem_space space;
    problem_space_make(&space, (struct taker){takes_aligned, NULL}, 1.5e5, 4e6);
    struct covering *covering = covering_make(&space.covering, tap.seed);
    int drawn = 0, rows = tap_amount(50, 400, 2000), dims[8] = {0};
    bool all[COVERING_FIELDS];
    memset(all, true, sizeof all);
    for (int n = 0; n < rows; n++) {
        int row[COVERING_FIELDS];
        attest_problem problem;
        struct contents contents;
        if (!tap_check(covering_next(covering, row), "no row"))
            continue;
        if (!problem_space_draw(&space, row, tap.seed + (uint64_t)n, &problem, &contents)) {
            int fields[MOST_BLAMED], levels[MOST_BLAMED];
            const int blamed = problem_space_blame(&space, row, tap.seed + (uint64_t)n, fields, levels);
            if (blamed)
                covering_exclude(covering, fields, levels, blamed);
            continue;
        }
        drawn++;
        dims[problem.dim % 8]++;
        covering_mark(covering, row, all);
        tap_check(takes_aligned(NULL, &problem), "a problem that the kernel refuses");
    }
    tap_note("%d of %d rows are problems, %d of them of dims that are multiples of 8", drawn, rows, dims[0]);
    tap_check(drawn > rows * 80 / 100, "%d of %d rows are problems", drawn, rows);
    tap_check(dims[0] < drawn * 9 / 10, "%d of %d dims are multiples of 8", dims[0], drawn);
    covering_free(covering);
}

/* ---- numbers of a kernel ------------------------------------------------------------------------------------------------- */

static bool has_number(const int64_t *numbers, int count, int64_t number)
{
    for (int n = 0; n < count; n++)
        if (numbers[n] == number)
            return true;
    return false;
}

/* Numbers of comparisons and remainders come first; those of other folders, and parts of words and of real numbers, do not come. */
static void numbers_of_text(void)
{
    static const char text[] =
        "# 1 \"/src/my_kernel.cu\"\n"
        "if (rows > 0x4d && 901 <= keys) count += keys % 13; int wide19 = 17 << 3; float f = 23.5f * 29e3f;\n"
        "# 1 \"/usr/include/other.h\" 1 3\n"
        "if (rows == 4711) rows = 4713;\n"
        "# 1 \"/src/deeper/other.h\" 1\n"
        "if (rows == 5711) rows = 5713;\n"
        "# 3 \"/src/my_kernel.cu\" 2\n"
        "bits = one >> 21; keys -= 700u;\n";
    static const int64_t compared[] = {77, 901, 13}, others[] = {17, 3, 21, 700}, absent[] = {4711, 4713, 5711, 5713, 19, 23, 29};
    struct kernel_constants constants;
    kernel_constants_of_text(text, sizeof text - 1, "/src/my_kernel.cu", &constants);
    for (int n = 0; n < COUNT_OF(compared); n++)
        tap_check(has_number(constants.whole, constants.compared, compared[n]), "%d is not among the compared", (int)compared[n]);
    for (int n = 0; n < COUNT_OF(others); n++)
        tap_check(has_number(constants.whole + constants.compared, constants.whole_count - constants.compared, others[n]),
                  "%d is not among the others", (int)others[n]);
    for (int n = 0; n < COUNT_OF(absent); n++)
        tap_check(!has_number(constants.whole, constants.whole_count, absent[n]), "%d is there", (int)absent[n]);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"every member of a problem is in the table of fields", every_member},
        {"every triple that can be is covered", whole_coverage},
        {"levels that are excluded are in no row", excluded_levels},
        {"rows are problems, and come again with their seed", problems_of_rows},
        {"rows are problems of kernels that refuse most layouts", problems_of_aligned_rows},
        {"the numbers of a text are found", numbers_of_text},
    };
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
