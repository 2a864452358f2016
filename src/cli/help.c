/* SPDX-License-Identifier: MIT */
#include "base/version.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

enum { COLUMN = 28, WIDTH = 80 };

int cli_version(const struct cli_call *call)
{
    (void)call;
    (void)puts("leat " LEAT_VERSION);
    return CLI_OK;
}

int cli_not_yet(const struct cli_call *call)
{
    cli_complain("%s: not yet", call->verb->name);
    return CLI_FAILED;
}

/* Prints words in lines that begin at the column, the first of which is begun already. */
static void print_wrapped(const char *text)
{
    int at = COLUMN;

    while (*text) {
        int size = (int)strcspn(text, " ");

        if (at > COLUMN && at + 1 + size > WIDTH) {
            (void)printf("\n%*s", COLUMN, "");
            at = COLUMN;
        } else if (at > COLUMN) {
            at += printf(" ");
        }
        at += printf("%.*s", size, text);
        text += size;
        text += strspn(text, " ");
    }
    (void)puts("");
}

static void print_entry(const char *head, const char *text)
{
    if (printf("  %-*s", COLUMN - 2, head) > COLUMN)
        (void)printf("\n%*s", COLUMN, "");
    print_wrapped(text);
}

static void print_option(const struct option_row *row)
{
    char head[64];

    if (row->letter)
        (void)snprintf(head, sizeof(head), "-%c, --%s%s%s", row->letter, row->name,
                       row->value ? " " : "", row->value ? row->value : "");
    else
        (void)snprintf(head, sizeof(head), "    --%s%s%s", row->name, row->value ? " " : "",
                       row->value ? row->value : "");
    print_entry(head, row->help);
}

static void print_options(unsigned takes)
{
    size_t size;
    const struct option_row *table = options_table(&size);

    (void)puts("\nOptions:");
    for (size_t i = 0; i < size; i++)
        if (!table[i].groups || table[i].groups & takes)
            print_option(&table[i]);
}

static void print_verb(const struct cli_verb *verb)
{
    (void)printf("leat %s%s%s%s\n\n%s\n", verb->name, verb->takes ? " [options]" : "",
                 verb->usage ? " " : "", verb->usage ? verb->usage : "", verb->summary);
    if (verb->text)
        (void)printf("\n%s\n", verb->text);
    print_options(verb->takes);
}

static void print_verbs(void)
{
    size_t size;
    const struct cli_verb *verbs = cli_verbs(&size);

    (void)puts(
        "leat [VERB] [options] [DIR|FILE.ru]\n\n"
        "Serves a Ruby application, or files. Without a verb it starts; without DIR it takes\n"
        "the current folder. `leat help VERB` says more.");
    for (size_t i = 0; i < size; i++) {
        char head[64];

        if (i == 0 || strcmp(verbs[i].group, verbs[i - 1].group) != 0)
            (void)printf("\n%s:\n", verbs[i].group);
        (void)snprintf(head, sizeof(head), "%s %s", verbs[i].name,
                       verbs[i].usage ? verbs[i].usage : "");
        print_entry(head, verbs[i].summary);
    }
}

/* `help VERB`, `VERB --help`, or the list. */
int cli_help(const struct cli_call *call)
{
    const struct cli_verb *verb = call->help && !call->is_implied ? call->verb : NULL;

    if (!verb && !call->is_implied && call->argc) {
        verb = cli_find_verb(call->argv[0]);
        if (!verb) {
            cli_complain("there is no verb \"%s\"; the nearest is \"%s\"", call->argv[0],
                         cli_nearest_verb(call->argv[0])->name);
            return CLI_USAGE;
        }
    }
    if (verb)
        print_verb(verb);
    else
        print_verbs();
    return CLI_OK;
}
