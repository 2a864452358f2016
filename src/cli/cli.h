/* SPDX-License-Identifier: MIT */
/*
 * The command line's outer shape: which verb was meant and what was said to it. The process's first
 * thread only; everything here lives until the verb returns.
 */
#pragma once

#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>

/* Exit statuses that several verbs share; the help of a verb names its own. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_NOT_RUNNING = 3, CLI_CUT = 4 };

/* Which options a verb takes; each option belongs to one or more of these groups. */
enum {
    CLI_TAKES_CONFIG = 1, /* all that say how to serve */
    CLI_TAKES_PLACE = 2,  /* those that say which server is meant */
    CLI_TAKES_JSON = 4,
    CLI_TAKES_NOW = 8,
    CLI_TAKES_PRINT = 16,
    CLI_TAKES_POOL = 32,
    CLI_TAKES_REFERENCE = 64,
    CLI_TAKES_TIMES = 128,
    CLI_TAKES_UNIT = 256, /* which unit, and below which root */
};

struct cli_verb;

/* One call of a verb, all parsed. Strings are those of the command line. */
struct cli_call {
    const struct cli_verb *verb;
    bool is_implied; /* no verb was written: it is start */
    int argc;        /* words after the verb, options taken out; [0] is DIR or FILE.ru for most */
    char **argv;     /* argc of them, then NULL */
    char **words;    /* owned: what argv points into */
    uint32_t given;  /* options that were given, a bit for each row of options_table */
    char **all;      /* the whole command line as main got it, NULL-terminated */
    struct config_options options; /* ready for config_load: with target, environ and cwd */
    bool json;                     /* --json */
    bool now;                      /* --now */
    bool print;                    /* --print */
    bool reference;                /* --reference */
    bool help;                     /* --help */
    bool version;                  /* --version */
    const char *pool;              /* --pool NAME, or NULL */
    const char *times;             /* --times N, or NULL */
    const char *name;              /* --name NAME of a unit, or NULL */
    const char *root;              /* --root FOLDER of another system, or NULL */
};

/* One row of the verb table. */
struct cli_verb {
    const char *name;
    int (*run)(const struct cli_call *call); /* does the work and returns the exit status */
    unsigned takes;                          /* sum of CLI_TAKES_x */
    int words_max;                           /* words that may follow it */
    bool has_target;                         /* its first word is DIR or FILE.ru */
    const char *group;                       /* heading in `leat help` */
    const char *usage;                       /* words after the verb, for its help */
    const char *summary;                     /* one line */
    const char *text;                        /* the rest of its help, or NULL */
};

/* The verb of that name, or NULL. */
const struct cli_verb *cli_find_verb(const char *name);

/* The verb whose name is nearest to a wrong one. */
const struct cli_verb *cli_nearest_verb(const char *name);

/* All verbs in the order of `leat help`; *ret_size is their number. */
const struct cli_verb *cli_verbs(size_t *ret_size);

/* Runs the command line and returns the exit status. */
int cli_run(int argc, char **argv, char **environ);

/* Prints "leat: ..." on standard error. */
void cli_complain(const char *format, ...) PRINTF_LIKE(1, 2);

/* Prints every fault after "leat: " on standard error and frees them. */
void cli_print_faults(struct faults *faults);

/* Loads the configuration that the call means and prints its warnings; NULL when it has faults,
 * which are printed, too. */
struct config *cli_load(const struct cli_call *call);
