/* SPDX-License-Identifier: MIT */
#include "cli/reading.h"

#include "base/num.h"

#include <unistd.h>

bool reading_parse(struct span json, struct reading *ret_reading)
{
    struct faults faults = {.size = 0};
    struct yaml_source source = {.file = "status",
                                 .text = json,
                                 .verbatim = true,
                                 .arena = &ret_reading->arena,
                                 .faults = &faults};
    const struct yaml *root;

    ret_reading->arena = (struct arena){.block = NULL};
    root = yaml_read(&source);
    ret_reading->root = root && root->kind == YAML_MAP && faults.size == 0 ? root : NULL;
    faults_done(&faults);
    return ret_reading->root;
}

enum server_outcome reading_ask(const struct cli_call *call, struct reading *ret_reading)
{
    struct buf text = {.size = 0};
    enum server_outcome outcome = server_ask(call, "status json\n", &text);

    *ret_reading = (struct reading){.root = NULL};
    if (outcome == SERVER_NONE || outcome == SERVER_STALE || outcome == SERVER_ENDED) {
        server_say_none(outcome);
    } else if (outcome == SERVER_FAILED) {
        server_print(STDERR_FILENO, &text);
    } else if (outcome == SERVER_OK && !reading_parse(buf_span(&text), ret_reading)) {
        cli_complain("the server's status cannot be read");
        outcome = SERVER_FAILED;
    }
    buf_done(&text);
    return outcome;
}

void reading_done(struct reading *reading)
{
    arena_done(&reading->arena);
    reading->root = NULL;
}

const struct yaml *reading_find(const struct yaml *map, const char *key)
{
    struct yaml *node;

    return map && map->kind == YAML_MAP ? yaml_find(map, key, &node) : NULL;
}

uint64_t reading_number(const struct yaml *map, const char *key)
{
    const struct yaml *value = reading_find(map, key);
    uint64_t number = 0;

    if (value && value->kind == YAML_TEXT)
        (void)num_decimal(span_first(value->text, span_find(value->text, '.')), &number);
    return number;
}

const char *reading_text(const struct yaml *map, const char *key)
{
    const struct yaml *value = reading_find(map, key);

    if (!value || value->kind != YAML_TEXT || yaml_is_empty(value))
        return "";
    return value->text.data;
}

size_t reading_size(const struct yaml *list)
{
    return list && list->kind == YAML_LIST ? list->size : 0;
}

const struct yaml *reading_item(const struct yaml *list, size_t index)
{
    return index < reading_size(list) ? list->items[index] : NULL;
}
