/* SPDX-License-Identifier: MIT */
/* What a request names: the first line of the input is a target, the rest a Host. */
#include "base/ascii.h"
#include "base/base.h"
#include "http/target.h"

static void check_authority(struct span text, struct arena *arena)
{
    struct span host, again;
    unsigned port;

    if (!target_parse_authority(text, arena, &host, &port))
        return;
    CHECK(host.size && port <= 65535);
    for (size_t i = 0; i < host.size; i++)
        CHECK(host.data[i] > ' ' && !strchr("@/?#,\\", host.data[i]) &&
              ascii_lower(host.data[i]) == host.data[i]);
    CHECK(target_parse_authority(host, arena, &again, &port) && port == 0);
    CHECK(span_equal(host, again));
}

/* A file's name stays below its root, and no second reading makes another name of its segments. */
static void check_name(struct span path, struct arena *arena)
{
    struct span name, segment;

    if (!target_decode(path, arena, &name))
        return;
    CHECK(name.size <= path.size && strlen(name.data) == name.size);
    while (name.size) {
        segment = span_split(&name, '/');
        CHECK(segment.size && !span_is(segment, ".") && !span_is(segment, ".."));
    }
}

static void check_target(enum method method, struct span text, struct arena *arena)
{
    struct target target;

    if (target_parse(method, text, &target) != REFUSAL_NONE)
        return;
    CHECK(target.path.size && span_find(target.path, '?') == target.path.size);
    CHECK(target.path.data[0] == '/' || (span_is(text, "*") && method == METHOD_OPTIONS));
    CHECK(target.has_query || !target.query.size);
    check_authority(target.authority, arena);
    check_name(target.path, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span lines = span_make((const char *)data, size), target = span_split(&lines, '\n');
    struct arena arena = {0};

    check_target(METHOD_GET, target, &arena);
    check_target(METHOD_OPTIONS, target, &arena);
    check_name(target, &arena);
    check_authority(lines, &arena);
    return arena_done(&arena), 0;
}
