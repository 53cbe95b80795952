/*
 * help.c - the list of commands, the help of one, and the manual page docs/attest.1, all from the tables of commands and options.
 * After a change of the tables: build/attest help --man > docs/attest.1
 */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#define WIDTH 100

/* What the words of a problem are, for people who have the program and not the repository. */
static const struct {
    const char *word, *text;
} problem_words[] = {
    {"fwd", "The operation. First word."},
    {"f32 f16 bf16", "The type of Q, K and V. Second word. The others may come in any order."},
    {"bN", "Sequences (batch); 1 unless given."},
    {"hN hqN hkvN", "Heads of both, of Q, of K and V. hkv is hq unless given, and divides it."},
    {"sN sqN skvN", "Rows and keys of a sequence: both, Q, K and V. skv is sq unless given."},
    {"dN dvN", "Columns of Q and K, and of V and O, 1 to 512. dv is d unless given."},
    {"o=f32", "The type of O, where it is not the type of Q."},
    {"causal", "Row i sees keys up to i."},
    {"br", "Rows are counted from the last key: row i is at i + skv - sq, for causal, window and ALiBi."},
    {"offsets", "Row i of a sequence is at i + its offset, for causal, window and ALiBi."},
    {"wl=N wr=N", "Row i sees keys from i - N on, and up to i + N."},
    {"scale=X", "The factor of the scores; 1/sqrt(d) unless given."},
    {"softcap=X", "Scores become X tanh(score / X)."},
    {"alibi", "Scores lose slope times distance; a slope for each head, or with as=N for each sequence and head."},
    {"mask", "A byte for each row and key hides the key if it is 0."},
    {"bias bias=f32", "A tensor is added to the scores; its type is that of Q, or f32."},
    {"sink", "Each head has one more logit in the denominator."},
    {"lse", "The logarithm of the denominator is written too."},
    {"varlenq=N varlenkv=N", "Sequences are packed, one after the other, in N rows or keys; sq and skv are the longest allowed."},
    {"lens", "Each sequence has its own number of keys, skv at most."},
    {"starts qlens", "Each sequence has a first key of its own, and its own number of rows, sq at most."},
    {"page=SIZE,COUNT", "Keys and values are in COUNT pages of SIZE keys each, found by a page table."},
    {"invariant", "The bits of a sequence must not depend on the rest of the batch."},
    {"layout=bshd", "Q, K, V and O lie as [batch, row, head, column] and not as [batch, head, row, column]."},
    {"qs=B,H,R ks= vs= os= ls= bs=B,H,R,K ms=B,H,R,K as=N pts=N",
     "Strides in elements of Q, K, V, O, LSE, the bias, the mask, the slopes of sequences and the page table."},
};

static const struct {
    enum exit_code code;
    const char *text;
} exit_codes[] = {
    {EXIT_PASS, "all is well"},
    {EXIT_FAILED, "a kernel is wrong"},
    {EXIT_USAGE, "the command line, a file or a problem string is wrong or contradicts itself"},
    {EXIT_LACKING, "nothing could be concluded, or the machine lacks what is needed"},
    {EXIT_INTERNAL, "a defect of the program, or output that could not be written"},
};

static bool for_people(const struct command *command)
{
    return command->bit != CMD_WORKER;
}

/* Prints text in lines of at most WIDTH columns, indented. The cursor is at `column`; if that is too far right, a line begins. */
static void print_wrapped(const char *text, int indent, int column)
{
    if (column > indent)
        printf("\n%*s", indent, "");
    column = indent;
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (column + length + 1 > WIDTH && column > indent) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", length, text);
        column += length;
        text += length;
        if (*text == '\n') {
            printf("\n\n%*s", indent, "");
            column = indent;
        }
        text += *text != '\0';
    }
    putchar('\n');
}

static bool takes_options(const struct command *command)
{
    return command->bit != CMD_HELP;
}

void help_command(const struct command *command)
{
    printf("attest %s: %s\n\nusage: attest %s%s%s%s\n\n    ", command->name, command->summary, command->name,
           takes_options(command) ? " [OPTION ...]" : "", *command->operands ? " " : "", command->operands);
    print_wrapped(command->text, 4, 4);
    printf("\noptions:\n");
    for (int i = 0; i < option_count; i++) {
        const struct option_spec *spec = &option_specs[i];
        if (!(spec->commands & command->bit))
            continue;
        int length = printf("    --%s%s%s", spec->name, spec->argument ? " " : "", spec->argument ? spec->argument : "");
        printf("%*s", length < 32 ? 32 - length : 0, "");
        print_wrapped(spec->text, 32, length < 32 ? 32 : length);
    }
    printf("\n%s:\n", strchr(command->example, '\n') ? "examples" : "example");
    for (const char *line = command->example; *line; line += *line == '\n') {
        int length = (int)strcspn(line, "\n");
        printf("    attest %.*s\n", length, line);
        line += length;
    }
}

void help_all(void)
{
    printf("attest: attention that comes with proof\n\nusage: attest COMMAND [OPTION ...] [PROBLEM ...]\n\ncommands:\n");
    for (int i = 0; i < command_count; i++)
        if (for_people(&commands[i]))
            printf("    %-12s%s\n", commands[i].name, commands[i].summary);
    printf("\n    attest help COMMAND     the options of a command\n    attest --version        the version and build\n\n"
           "A problem is one word, such as fwd:f16:b2:hq8:hkv2:s512:d64:causal:\n");
    for (int i = 0; i < COUNT_OF(problem_words); i++) {
        int length = printf("    %s", problem_words[i].word);
        printf("%*s", length < 28 ? 28 - length : 0, "");
        print_wrapped(problem_words[i].text, 28, length < 28 ? 28 : length);
    }
    printf("\nexit codes:\n");
    for (int i = 0; i < COUNT_OF(exit_codes); i++)
        printf("    %d  %s\n", (int)exit_codes[i].code, exit_codes[i].text);
}

/* Text for mdoc: every sentence and every paragraph begins a line; what would be markup is escaped. */
static void man_text(const char *text)
{
    bool start = true;
    for (const char *at = text; *at; at++) {
        if (start && (*at == '.' || *at == '\''))
            fputs("\\&", stdout);
        start = false;
        if (*at == '\n') {
            fputs("\n.Pp\n", stdout);
            start = true;
        } else if (*at == ' ' && at > text && strchr(".;", at[-1]) && at[1]) {
            putchar('\n');
            start = true;
        } else if (*at == '\\') {
            fputs("\\e", stdout);
        } else if (*at == '-') {
            fputs("\\-", stdout);
        } else {
            putchar(*at);
        }
    }
    putchar('\n');
}

/* Arguments of a macro: a word that is itself a macro's name, or punctuation, must not be seen as one. */
static void man_words(const char *macro, const char *words)
{
    printf(".%s", macro);
    while (*words) {
        int length = (int)strcspn(words, " ");
        printf(" \\&%.*s", length, words);
        words += length + (words[length] == ' ');
    }
    putchar('\n');
}

static void man_options(const struct command *command)
{
    printf(".Bl -tag -width Ds\n");
    for (int i = 0; i < option_count; i++) {
        const struct option_spec *spec = &option_specs[i];
        if (!(spec->commands & command->bit))
            continue;
        printf(".It Fl \\-%s%s%s\n", spec->name, spec->argument ? " Ar " : "", spec->argument ? spec->argument : "");
        man_text(spec->text);
    }
    printf(".El\n");
}

void help_man(void)
{
    printf(".\\\" Written by attest help --man. Edit the tables in tool/, not this file.\n"
           ".Dd November 15, 2026\n.Dt ATTEST 1\n.Os\n.Sh NAME\n.Nm attest\n.Nd attention that comes with proof\n.Sh SYNOPSIS\n");
    for (int i = 0; i < command_count; i++) {
        if (!for_people(&commands[i]))
            continue;
        printf(".Nm attest\n.Cm %s\n", commands[i].name);
        if (takes_options(&commands[i]))
            printf(".Op Ar OPTION ...\n");
        if (*commands[i].operands)
            man_words("Ar", commands[i].operands);
    }
    printf(".Nm attest\n.Fl \\-version\n.Sh DESCRIPTION\n.Nm\n"
           "runs, checks, times and explains the attention kernels of libattest, version %s.\n"
           "Options may be written as\n.Fl \\-name Ar value\nor\n.Fl \\-name Ns = Ns Ar value ,\nafter the command.\n",
           attest_version());
    for (int i = 0; i < command_count; i++) {
        if (!for_people(&commands[i]))
            continue;
        printf(".Ss attest %s: %s\n", commands[i].name, commands[i].summary);
        man_text(commands[i].text);
        man_options(&commands[i]);
    }
    printf(".Sh PROBLEMS\nA problem is one word, made of words between colons:\n.Bl -tag -width Ds\n");
    for (int i = 0; i < COUNT_OF(problem_words); i++) {
        man_words("It Cm", problem_words[i].word);
        man_text(problem_words[i].text);
    }
    printf(".El\n.Sh ENVIRONMENT\n.Bl -tag -width ATTEST_DISABLE\n"
           ".It Ev ATTEST_DISABLE\nCPU features that must not be used, such as\n.Ql avx512,amx .\n"
           ".It Ev OMP_NUM_THREADS\nThe number of threads unless\n.Fl \\-threads\nis given.\n.El\n"
           ".Sh EXIT STATUS\n.Bl -tag -width Ds\n");
    for (int i = 0; i < COUNT_OF(exit_codes); i++)
        printf(".It %d\n%s\n", (int)exit_codes[i].code, exit_codes[i].text);
    printf(".El\n.Sh EXAMPLES\n.Bd -literal\n");
    for (int i = 0; i < command_count; i++) {
        for (const char *line = for_people(&commands[i]) ? commands[i].example : ""; *line; line += *line == '\n') {
            int length = (int)strcspn(line, "\n");
            printf("attest %.*s\n", length, line);
            line += length;
        }
    }
    printf(".Ed\n.Sh SEE ALSO\n.Xr attest 3\n");
}
