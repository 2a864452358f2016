/* SPDX-License-Identifier: MIT */
/*
 * The command line's outer shape: which verb was meant and what was said to it. The process's first
 * thread only; everything here lives until the verb returns.
 */
#pragma once

#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>

/* Exit statuses that several verbs share; the contract names the rest per verb. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_NOT_RUNNING = 3, CLI_CUT = 4 };

struct cli_verb;

/* One call of a verb, all parsed. Strings are those of the command line. */
struct cli_call {
    const struct cli_verb *verb;
    int argc; /* operands behind the verb, options taken out; [0] is DIR or FILE.ru for most verbs */
    char **argv; /* argc of them, then NULL */
    char **all;  /* the whole command line as main got it, NULL-terminated */
    struct config_options
        options;      /* ready for config_load: target, environ and cwd are filled in */
    bool json;        /* --json */
    bool now;         /* --now */
    bool print;       /* --print */
    bool reference;   /* --reference: the manual page of the configuration */
    const char *pool; /* --pool NAME, or NULL */
};

/* One row of the verb table. */
struct cli_verb {
    const char *name;
    int (*run)(const struct cli_call *call); /* does the work and returns the exit status */
    unsigned flag;       /* its bit in the option table, CLI_VERB_x of options.h */
    const char *group;   /* heading in `leat help` */
    const char *usage;   /* operands after the verb, for its help */
    const char *summary; /* one line */
    const char *text;    /* the rest of its help, or NULL */
    int operands_max;    /* operands it takes at most */
};

/* The verb of that name, or NULL. */
const struct cli_verb *cli_find_verb(const char *name);

/* All verbs in the order of `leat help`; *ret_size is their number. */
const struct cli_verb *cli_verbs(size_t *ret_size);

/* Runs the command line and returns the exit status. */
int cli_run(int argc, char **argv, char **environ);

/* Prints "leat: ..." on standard error. */
void cli_complain(const char *format, ...) PRINTF_LIKE(1, 2);

/* Prints every fault after "leat: " on standard error and frees them. */
void cli_print_faults(struct faults *faults);
