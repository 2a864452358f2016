/* SPDX-License-Identifier: MIT */
#include "cli/options.h"

#include "base/ascii.h"
#include "base/base.h"

#include <limits.h>
#include <stdlib.h>

enum {
    CONFIG = CLI_TAKES_CONFIG,
    PLACE = CLI_TAKES_PLACE,
    JSON = CLI_TAKES_JSON,
    NOW = CLI_TAKES_NOW,
    POOL = CLI_TAKES_POOL,
    PRINT = CLI_TAKES_PRINT,
    REFERENCE = CLI_TAKES_REFERENCE,
    TIMES = CLI_TAKES_TIMES,
    UNIT = CLI_TAKES_UNIT,
    EVERY = 0
};

static const struct option_row table[] = {
#define VALUE(character, word, meaning, taken, member, text) \
    {.letter = character,                                    \
     .name = word,                                           \
     .value = meaning,                                       \
     .groups = taken,                                        \
     .offset = offsetof(struct cli_call, member),            \
     .help = text},
#define SWITCH(character, word, taken, member, text) \
    VALUE(character, word, NULL, taken, member, text)
#include "cli/option.def"
#undef VALUE
#undef SWITCH
};

_Static_assert(ARRAY_LEN(table) <= 32, "cli_call.given has a bit for each");

/* Where the arguments are being read. */
struct reading {
    char **next;
    struct cli_call *call;
    struct faults *faults;
};

const struct option_row *options_table(size_t *ret_size)
{
    *ret_size = ARRAY_LEN(table);
    return table;
}

static const struct option_row *find_letter(char letter)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].letter && table[i].letter == letter)
            return &table[i];
    return NULL;
}

static const struct option_row *find_name(struct span name)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (span_is(name, table[i].name))
            return &table[i];
    return NULL;
}

static const struct option_row *nearest(struct span name)
{
    const struct option_row *found = table;
    unsigned least = UINT_MAX;

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        unsigned distance = ascii_distance(name, span_of(table[i].name));

        if (distance >= least)
            continue;
        found = &table[i];
        least = distance;
    }
    return found;
}

static bool is_list(const struct option_row *row)
{
    return row->offset == offsetof(struct cli_call, options.binds);
}

static void append_bind(struct config_options *options, const char *value)
{
    options->binds = must_resize(options->binds, (options->bind_size + 1) * sizeof(char *));
    options->binds[options->bind_size++] = value;
}

/* Puts the value (NULL = none was given) where it belongs. */
static bool put(struct reading *reading, const struct option_row *row, const char *value)
{
    char *place = (char *)reading->call + row->offset;

    reading->call->given |= 1u << (row - table);
    if (!row->value) {
        *(bool *)place = true;
        return true;
    }
    if (!value || !*value) {
        faults_add(reading->faults, NULL, 0, 0, NULL, "--%s needs a value: %s", row->name,
                   row->value);
        return false;
    }
    if (is_list(row))
        append_bind(&reading->call->options, value);
    else
        *(const char **)place = value;
    return true;
}

/* The argument that follows, as the value of an option. */
static const char *take_next(struct reading *reading)
{
    return *reading->next ? *reading->next++ : NULL;
}

/* `--name`, `--name=value`, `--name value`. */
static bool read_long(struct reading *reading, const char *argument)
{
    struct span text = span_skip(span_of(argument), 2);
    size_t equals = span_find(text, '=');
    struct span name = span_first(text, equals);
    const struct option_row *row = find_name(name);

    if (!row) {
        faults_add(reading->faults, NULL, 0, 0, NULL, "unknown option --%.*s; the nearest is --%s",
                   SPAN_ARG(name), nearest(name)->name);
        return false;
    }
    if (equals == text.size)
        return put(reading, row, row->value ? take_next(reading) : NULL);
    if (!row->value) {
        faults_add(reading->faults, NULL, 0, 0, NULL, "--%s takes no value", row->name);
        return false;
    }
    return put(reading, row, text.data + equals + 1);
}

/* The letter in the other case is the nearest; without it there is only the list. */
static void complain_of_letter(struct reading *reading, char letter)
{
    char other = ascii_lower(letter) == letter ? ascii_upper(letter) : ascii_lower(letter);

    if (find_letter(other))
        faults_add(reading->faults, NULL, 0, 0, NULL, "unknown option -%c; the nearest is -%c",
                   letter, other);
    else
        faults_add(reading->faults, NULL, 0, 0, NULL,
                   "unknown option -%c; `leat help start` lists them", letter);
}

/* `-d`, `-p80`, `-p 80`, `-dqp 80`. */
static bool read_letters(struct reading *reading, const char *argument)
{
    for (const char *letter = argument + 1; *letter; letter++) {
        const struct option_row *row = find_letter(*letter);

        if (!row) {
            complain_of_letter(reading, *letter);
            return false;
        }
        if (row->value)
            return put(reading, row, letter[1] ? letter + 1 : take_next(reading));
        (void)put(reading, row, NULL);
    }
    return true;
}

static void take_word(struct reading *reading, char *word)
{
    reading->call->argv[reading->call->argc++] = word;
}

bool options_read(int argc, char **argv, struct cli_call *ret_call, struct faults *ret_faults)
{
    struct reading reading = {.next = argv, .call = ret_call, .faults = ret_faults};
    bool only_words = false;

    ret_call->words = must_alloc((size_t)argc + 1, sizeof(char *));
    ret_call->argv = ret_call->words;
    while (*reading.next) {
        char *argument = *reading.next++;

        if (only_words || argument[0] != '-' || !argument[1])
            take_word(&reading, argument);
        else if (strcmp(argument, "--") == 0)
            only_words = true;
        else if (argument[1] == '-' ? !read_long(&reading, argument)
                                    : !read_letters(&reading, argument))
            return false;
    }
    return true;
}

bool options_check(const struct cli_call *call, struct faults *ret_faults)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        bool taken = !table[i].groups || table[i].groups & call->verb->takes;

        if (!(call->given & 1u << i) || taken)
            continue;
        faults_add(ret_faults, NULL, 0, 0, NULL, "%s takes no --%s", call->verb->name,
                   table[i].name);
        return false;
    }
    return true;
}

void options_done(struct cli_call *call)
{
    free(call->words);
    free(call->options.binds);
    call->words = call->argv = NULL;
    call->options.binds = NULL;
}
