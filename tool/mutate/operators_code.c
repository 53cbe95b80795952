/*
 * operators_code.c - operators that change expressions and statements. They look at tokens and brackets and know no types: what
 * comes of it need not compile, and a mutant that does not is drawn again.
 */
#include <stdlib.h>
#include <string.h>

#include "finder.h"
#include "sync_calls.h"

#define NOTHING "(void)0;" /* a statement that does nothing, without a warning */

/* ---- extents of operands, arguments and statements ---------------------------------------------------------------------------- */

static const struct token *at(const struct finder *finder, int i)
{
    return &finder->tokens.list[i];
}

/* Behind a bracket, its partner; else i. Forwards and backwards alike. */
static int over_bracket(const struct finder *finder, int i)
{
    return at(finder, i)->partner >= 0 ? at(finder, i)->partner : i;
}

static bool is_control(const struct finder *finder, int bracket)
{
    return finder_is_one_of(finder, bracket - 1, "if for while switch");
}

int operand_end(const struct finder *finder, int i)
{
    const struct tokens *tokens = &finder->tokens;
    while (finder_is_one_of(finder, i, "- + ! ~ * & ++ --"))
        i++;
    for (; finder_is(finder, i, "(") && at(finder, i)->partner > 0; i = at(finder, i)->partner + 1) {
        int behind = at(finder, i)->partner + 1; /* a cast, if an operand follows */
        if (!token_is_kind(tokens, behind, TOKEN_NAME) && !token_is_kind(tokens, behind, TOKEN_NUMBER) &&
            !finder_is(finder, behind, "(") && !finder_is(finder, behind, "{"))
            break;
    }
    bool primary = token_is_kind(tokens, i, TOKEN_NAME) || token_is_kind(tokens, i, TOKEN_NUMBER) || finder_is(finder, i, "(") ||
                   finder_is(finder, i, "{");
    if (!primary || at(finder, i)->directive != at(finder, i - 1)->directive)
        return -1;
    i = over_bracket(finder, i);
    for (;;) {
        if ((finder_is(finder, i + 1, "[") || finder_is(finder, i + 1, "(")) && at(finder, i + 1)->partner > 0)
            i = at(finder, i + 1)->partner;
        else if (finder_is_one_of(finder, i + 1, ". ->"))
            i += 2;
        else if (finder_is_one_of(finder, i + 1, "++ --"))
            i++;
        else
            return i < tokens->count ? i : -1;
    }
}

int operand_begin(const struct finder *finder, int i)
{
    if (!finder_ends_operand(finder, i))
        return -1;
    for (;;) {
        i = over_bracket(finder, i);
        bool bracket = finder_is_one_of(finder, i, "( [");
        if (bracket && finder_ends_operand(finder, i - 1) && !is_control(finder, i) &&
            !(finder_is(finder, i - 1, ")") && finder_is(finder, i, "(")))
            i--;
        else if (!bracket && finder_is_one_of(finder, i - 1, ". ->"))
            i -= 2;
        else
            break;
    }
    while (finder_is(finder, i - 1, ")") && at(finder, i - 1)->partner >= 0 && !is_control(finder, at(finder, i - 1)->partner))
        i = at(finder, i - 1)->partner; /* a cast */
    while (finder_is_one_of(finder, i - 1, "- ! ~ * &") && !finder_is_binary(finder, i - 1))
        i--;
    return i;
}

/* The last token before one of the words, or before the end of the bracket that is open at i. */
static int last_before(const struct finder *finder, int i, const char *words)
{
    const struct tokens *tokens = &finder->tokens;
    int first = i;
    for (; i < tokens->count; i++) {
        if (finder_is_one_of(finder, i, words) || finder_is_one_of(finder, i, ") ] }") ||
            at(finder, i)->directive != at(finder, first)->directive)
            return i - 1;
        i = over_bracket(finder, i);
    }
    return -1;
}

/* The first token behind one of the words, or behind the bracket that is open at i, going backwards. */
static int first_behind(const struct finder *finder, int i, const char *words)
{
    int last = i;
    for (; i >= 0; i--) {
        if (finder_is_one_of(finder, i, words) || finder_is_one_of(finder, i, "( [ {") ||
            at(finder, i)->directive != at(finder, last)->directive)
            return i + 1;
        i = at(finder, i)->partner >= 0 && at(finder, i)->partner < i ? at(finder, i)->partner : i;
    }
    return -1;
}

int argument_end(const struct finder *finder, int i)
{
    int last = last_before(finder, i, ", ;");
    return last < i ? -1 : last + 1;
}

/* Whether a statement may begin at i: inside the braces of a function, behind the end of another or behind a head. */
static bool begins_statement(const struct finder *finder, int i)
{
    const struct token *token = at(finder, i);
    if (i == 0 || token->directive || token->parent < 0 || !finder_is(finder, token->parent, "{"))
        return false;
    if (finder_is(finder, i - 1, ")"))
        return at(finder, i - 1)->partner >= 0 && is_control(finder, at(finder, i - 1)->partner);
    return finder_is_one_of(finder, i - 1, "; { } else do") || at(finder, i - 1)->directive;
}

int statement_end(const struct finder *finder, int i)
{
    if (!begins_statement(finder, i))
        return -1;
    if (token_is_kind(&finder->tokens, i, TOKEN_NAME)) {
        bool with_number = finder_is(finder, i + 1, "<") && finder_is(finder, i + 3, ">") && finder_is(finder, i + 4, "(");
        if (finder_is_one_of(finder, i, "return if for while switch do else case default goto break continue sizeof") ||
            (!with_number && !finder_is_one_of(finder, i + 1, "( [ . -> = += -= *= /= %= &= |= ^= <<= >>= ++ --")))
            return -1;
    } else if (!finder_is_one_of(finder, i, "* ( ++ --")) {
        return -1;
    }
    int last = last_before(finder, i, ";");
    return last >= i && finder_is(finder, last + 1, ";") ? last + 1 : -1;
}

/* The last token of any statement that begins at i, or -1. */
static int extent(const struct finder *finder, int i)
{
    if (finder_is(finder, i, "{"))
        return at(finder, i)->partner;
    if (finder_is_one_of(finder, i, "if for while switch") && finder_is(finder, i + 1, "(") && at(finder, i + 1)->partner > 0) {
        int end = extent(finder, at(finder, i + 1)->partner + 1);
        while (end > 0 && finder_is(finder, end + 1, "else"))
            end = extent(finder, end + 2);
        return end;
    }
    int last = i < finder->tokens.count ? last_before(finder, i, ";") : -1;
    return last >= 0 && finder_is(finder, last + 1, ";") ? last + 1 : -1;
}

/* ---- indices ------------------------------------------------------------------------------------------------------------------ */

/* The variable of the loop whose `for` is at i; -1: none. */
static int loop_variable(const struct finder *finder, int i)
{
    if (!finder_is(finder, i, "for") || !finder_is(finder, i + 1, "("))
        return -1;
    for (int t = i + 2; t < at(finder, i + 1)->partner && !finder_is(finder, t, ";"); t++)
        if (finder_is(finder, t, "="))
            return t - 1;
    return -1;
}

void find_loop_variable_swapped(struct finder *finder, int i)
{
    const struct tokens *tokens = &finder->tokens;
    enum { MOST = 16 };
    int variables[MOST], count = 0;
    bool is_one = false;
    if (!token_is_kind(tokens, i, TOKEN_NAME) || finder_is_one_of(finder, i - 1, ". ->"))
        return;
    for (int t = 0; t < i; t++) {
        int variable = loop_variable(finder, t), head = variable < 0 ? 0 : at(finder, t + 1)->partner;
        if (variable < 0 || head < 0 || i <= head || extent(finder, head + 1) < i || count == MOST)
            continue;
        is_one = is_one || (token_length(tokens, variable) == token_length(tokens, i) &&
                            memcmp(tokens->text + at(finder, variable)->begin, tokens->text + at(finder, i)->begin,
                                   token_length(tokens, i)) == 0);
        variables[count++] = variable;
    }
    for (int n = 0; n < count && is_one; n++)
        finder_emit(finder, i, i, "%.*s", SPELLED(finder, variables[n], variables[n]));
}

void find_index_swapped(struct finder *finder, int i)
{
    if (!finder_is(finder, i, "[") || at(finder, i)->partner < i + 2 || !finder_ends_operand(finder, i - 1))
        return;
    int close = at(finder, i)->partner, next = close + 1;
    if (finder_is(finder, next, "[") && at(finder, next)->partner > next + 1) {
        int end = at(finder, next)->partner;
        finder_emit(finder, i, end, "[%.*s][%.*s]", SPELLED(finder, next + 1, end - 1), SPELLED(finder, i + 1, close - 1));
    }
    if (close > i + 2 || !token_is_kind(&finder->tokens, i + 1, TOKEN_NUMBER)) {
        finder_emit(finder, i + 1, close - 1, "(%.*s) + 1", SPELLED(finder, i + 1, close - 1));
        finder_emit(finder, i + 1, close - 1, "(%.*s) - 1", SPELLED(finder, i + 1, close - 1));
        finder_emit(finder, i + 1, close - 1, "0");
    }
}

/* ---- arguments ----------------------------------------------------------------------------------------------------------------- */

void find_arguments_swapped(struct finder *finder, int i)
{
    if (!finder_is_call(finder, i))
        return;
    for (int first = i + 2;;) {
        int comma = argument_end(finder, first), second = comma + 1;
        if (comma < 0 || !finder_is(finder, comma, ","))
            return;
        int end = argument_end(finder, second);
        if (end < 0)
            return;
        finder_emit(finder, first, end - 1, "%.*s, %.*s", SPELLED(finder, second, end - 1), SPELLED(finder, first, comma - 1));
        first = second;
    }
}

void find_call_replaced(struct finder *finder, int i)
{
    if (!finder_is_call(finder, i) || begins_statement(finder, i))
        return;
    int last = at(finder, i + 1)->partner;
    for (int first = i + 2, n = 0; first < last && n < 4; n++) {
        int end = argument_end(finder, first);
        if (end < 0)
            return;
        finder_emit(finder, i, last, "(%.*s)", SPELLED(finder, first, end - 1));
        first = end + 1;
    }
}

/* ---- statements ---------------------------------------------------------------------------------------------------------------- */

void find_statement_dropped(struct finder *finder, int i)
{
    int end = statement_end(finder, i);
    if (end > i && !is_sync_call(finder, i))
        finder_emit(finder, i, end, NOTHING);
}

/* Statements first .. end and the one behind it, in the other order. */
static void swap_statements(struct finder *finder, int first, int end, int last)
{
    size_t gap = at(finder, end)->end, next = at(finder, end + 1)->begin;
    finder_emit(finder, first, last, "%.*s%.*s%.*s", SPELLED(finder, end + 1, last), (int)(next - gap), finder->tokens.text + gap,
                SPELLED(finder, first, end));
}

static bool same_token(const struct finder *finder, int a, int b)
{
    const struct tokens *tokens = &finder->tokens;
    return token_length(tokens, a) == token_length(tokens, b) &&
           memcmp(tokens->text + at(finder, a)->begin, tokens->text + at(finder, b)->begin, token_length(tokens, a)) == 0;
}

/* Whether what the statement at `first` writes to, as far as its text says (the left side of an assignment, the first argument of a
 * call), is named in tokens from .. to. Elements with other indices are other things. */
static bool is_written(const struct finder *finder, int first, int from, int to)
{
    int name = finder_is_call(finder, first) ? first + 2 : first;
    while (!token_is_kind(&finder->tokens, name, TOKEN_NAME) && finder_is_one_of(finder, name, "* ( & ++ --"))
        name++;
    int length = 1;
    for (;;)
        if (finder_is_one_of(finder, name + length, ". ->"))
            length += 2;
        else if (finder_is(finder, name + length, "["))
            length = at(finder, name + length)->partner - name + 1;
        else
            break;
    for (int start = from; start + length - 1 <= to; start++) {
        int n = 0;
        while (n < length && same_token(finder, name + n, start + n))
            n++;
        if (n == length)
            return true;
    }
    return false;
}

void find_statements_swapped(struct finder *finder, int i)
{
    int end = statement_end(finder, i), last = end > i ? statement_end(finder, end + 1) : -1;
    if (last > end && at(finder, i)->parent == at(finder, end + 1)->parent && !is_sync_call(finder, i) &&
        !is_sync_call(finder, end + 1) && (is_written(finder, i, end + 1, last) || is_written(finder, end + 1, i, end)))
        swap_statements(finder, i, end, last);
}

void find_jump_dropped(struct finder *finder, int i)
{
    if (!finder_is_one_of(finder, i, "break continue return") || !finder_is(finder, i + 1, ";"))
        return;
    finder_emit(finder, i, i + 1, NOTHING);
    if (!finder_is(finder, i, "return"))
        finder_emit(finder, i, i, finder_is(finder, i, "break") ? "continue" : "break");
}

/* ---- terms --------------------------------------------------------------------------------------------------------------------- */

void find_term_dropped(struct finder *finder, int i)
{
    bool sum = finder_is_one_of(finder, i, "+ -");
    if ((!sum && !finder_is(finder, i, "*")) || !finder_is_binary(finder, i))
        return;
    int end = operand_end(finder, i + 1), begin = operand_begin(finder, i - 1);
    while (sum && end > 0 && finder_is_one_of(finder, end + 1, "* / %"))
        end = operand_end(finder, end + 2);
    while (sum && begin > 0 && finder_is_one_of(finder, begin - 1, "* / %") && finder_is_binary(finder, begin - 1))
        begin = operand_begin(finder, begin - 2);
    if (end < 0 || begin < 0)
        return;
    finder_emit(finder, begin, end, "%.*s", SPELLED(finder, begin, i - 1));
    if (!finder_is(finder, i, "-"))
        finder_emit(finder, begin, end, "%.*s", SPELLED(finder, i + 1, end));
}

void find_condition_dropped(struct finder *finder, int i)
{
    bool both = finder_is(finder, i, "&&");
    if (!both && !finder_is(finder, i, "||"))
        return;
    const char *stops = both ? ", ; = ? : return || && <<= += -=" : ", ; = ? : return || += -=";
    int begin = first_behind(finder, i - 1, stops), end = last_before(finder, i + 1, stops);
    if (begin < 0 || end <= i)
        return;
    finder_emit(finder, begin, end, "%.*s", SPELLED(finder, begin, i - 1));
    finder_emit(finder, begin, end, "%.*s", SPELLED(finder, i + 1, end));
}

void find_value_rounded(struct finder *finder, int i)
{
    if (!finder_is(finder, i, "=") || !finder_is(finder, i - 2, "float") || at(finder, i)->parent < 0)
        return;
    int last = last_before(finder, i + 1, ", ;");
    if (last > i && !finder_is(finder, i + 1, "{"))
        finder_emit(finder, i + 1, last, "attest_from_bf16(attest_to_bf16(%.*s))", SPELLED(finder, i + 1, last));
}

/* ---- loops, conditions, results ------------------------------------------------------------------------------------------------- */

void find_loop_bound(struct finder *finder, int i)
{
    if (!finder_is_one_of(finder, i, "< <= > >= !=") || at(finder, i)->parent < 1 ||
        !finder_is(finder, at(finder, i)->parent - 1, "for"))
        return;
    int last = last_before(finder, i + 1, "; && ||");
    if (last <= i)
        return;
    finder_emit(finder, i + 1, last, "(%.*s) + 1", SPELLED(finder, i + 1, last));
    finder_emit(finder, i + 1, last, "(%.*s) - 1", SPELLED(finder, i + 1, last));
}

void find_loop_step(struct finder *finder, int i)
{
    if (at(finder, i)->parent < 1 || !finder_is(finder, at(finder, i)->parent - 1, "for"))
        return;
    if (finder_is(finder, i, "++") && token_is_kind(&finder->tokens, i - 1, TOKEN_NAME))
        finder_emit(finder, i, i, " += 2");
    if (finder_is(finder, i, "+=")) {
        int last = last_before(finder, i + 1, ", ;");
        if (last > i)
            finder_emit(finder, i + 1, last, "2 * (%.*s)", SPELLED(finder, i + 1, last));
    }
}

void find_condition_forced(struct finder *finder, int i)
{
    int first = -1, last = -1;
    bool loop = finder_is(finder, i, "while");
    if ((finder_is(finder, i, "if") || loop) && finder_is(finder, i + 1, "(")) {
        first = i + 2;
        last = at(finder, i + 1)->partner - 1;
    } else if (finder_is(finder, i, "?")) {
        first = first_behind(finder, i - 1, ", ; = ? : return += -= *=");
        last = i - 1;
    }
    if (first < 0 || last < first)
        return;
    if (!loop)
        finder_emit(finder, first, last, "1");
    finder_emit(finder, first, last, "0");
}

void find_value_returned(struct finder *finder, int i)
{
    if (!finder_is(finder, i, "return") || finder_is(finder, i + 1, ";"))
        return;
    int last = last_before(finder, i + 1, ";");
    if (last <= i)
        return;
    finder_emit(finder, i + 1, last, "0");
    finder_emit(finder, i + 1, last, "(%.*s) + 1", SPELLED(finder, i + 1, last));
    finder_emit(finder, i + 1, last, "-(%.*s)", SPELLED(finder, i + 1, last));
    finder_emit(finder, i + 1, last, "!(%.*s)", SPELLED(finder, i + 1, last));
}

/* ---- barriers, fences, waits and arrivals ----------------------------------------------------------------------------------------- */

void find_sync_dropped(struct finder *finder, int i)
{
    int end = statement_end(finder, i);
    if (end > i && is_sync_call(finder, i))
        finder_emit(finder, i, end, NOTHING);
}

void find_sync_moved(struct finder *finder, int i)
{
    int end = begins_statement(finder, i) ? extent(finder, i) : -1;
    if (!finder->options->cuda || end < 0 || !begins_statement(finder, end + 1) ||
        at(finder, i)->parent != at(finder, end + 1)->parent)
        return;
    bool first = statement_end(finder, i) > 0 && is_sync_call(finder, i);
    bool second = statement_end(finder, end + 1) > 0 && is_sync_call(finder, end + 1);
    int last = first || second ? extent(finder, end + 1) : -1;
    if (last > end)
        swap_statements(finder, i, end, last);
}

void find_arrival_doubled(struct finder *finder, int i)
{
    int end = statement_end(finder, i);
    if (end > i && is_sync_call(finder, i) && sync_call_has(finder, i, "arrive expect commit"))
        finder_emit(finder, i, end, "%.*s %.*s", SPELLED(finder, i, end), SPELLED(finder, i, end));
}

void find_wait_shifted(struct finder *finder, int i)
{
    int end = statement_end(finder, i);
    if (end < i || !is_sync_call(finder, i))
        return;
    if (finder_is(finder, i + 1, "<")) {
        finder_emit(finder, i + 2, i + 2, "%.*s + 1", SPELLED(finder, i + 2, i + 2));
        return;
    }
    int close = at(finder, i + 1)->partner, last = i + 2;
    for (int t = last; t > 0 && t < close; t = argument_end(finder, t) + 1)
        last = t;
    if (close <= i + 2)
        return;
    if (sync_call_has(finder, i, "wait"))
        finder_emit(finder, last, close - 1, "(%.*s) ^ 1", SPELLED(finder, last, close - 1));
    if (sync_call_has(finder, i, "expect")) {
        finder_emit(finder, last, close - 1, "(%.*s) / 2", SPELLED(finder, last, close - 1));
        finder_emit(finder, last, close - 1, "(%.*s) + 16", SPELLED(finder, last, close - 1));
        finder_emit(finder, last, close - 1, "(%.*s) - 16", SPELLED(finder, last, close - 1));
    }
    if (sync_call_has(finder, i, "wait") || sync_call_has(finder, i, "init"))
        finder_emit(finder, last, close - 1, "(%.*s) + 1", SPELLED(finder, last, close - 1));
}
