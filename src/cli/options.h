/* SPDX-License-Identifier: MIT */
/*
 * The options of the command line, those of all verbs in one table. Pure; strings stay those of the
 * command line, lists are the call's until options_done.
 */
#pragma once

#include "cli/cli.h"

/* One option. */
struct option_row {
    char letter;       /* 0 = none */
    const char *name;  /* without its dashes */
    const char *value; /* what the help calls its value; NULL = a switch */
    unsigned groups;   /* CLI_TAKES_x; 0 = every verb takes it */
    size_t offset;     /* in struct cli_call: of a const char *, or of a bool */
    const char *help;
};

/* The table; *ret_size is its length. */
const struct option_row *options_table(size_t *ret_size);

/* Reads the arguments after the program's name: options go to their places in *ret_call, all other
 * words to its argv; behind `--` everything is a word. False with a fault that names the nearest. */
bool options_read(int argc, char **argv, struct cli_call *ret_call, struct faults *ret_faults);

/* Whether the call's verb takes every option that was given; else false with a fault. */
bool options_check(const struct cli_call *call, struct faults *ret_faults);

/* Frees what options_read made; a call of zeros is harmless. */
void options_done(struct cli_call *call);
