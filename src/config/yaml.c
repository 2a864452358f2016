/* SPDX-License-Identifier: MIT */
#include "config/yaml.h"

#include "config/expand.h"
#include "config/keep.h"

#include <yaml.h>

/* The walk from libyaml's document to our tree. A node is converted once; one that is met again
 * while it is being converted contains itself. */
struct walk {
    const struct yaml_source *source;
    yaml_document_t *document;
    struct yaml **done; /* by libyaml's index, NULL = not yet */
    bool *open;
    unsigned depth;
};

static struct yaml *convert(struct walk *walk, int index, bool is_key);

static void complain(const struct yaml_source *source, const yaml_mark_t *mark, const char *reason)
{
    faults_add(source->faults, source->file, (unsigned)mark->line + 1, (unsigned)mark->column + 1,
               NULL, "%s", reason);
}

static struct yaml *node_new(const struct walk *walk, enum yaml_kind kind, const yaml_mark_t *mark)
{
    struct yaml *node = keep_zero(walk->source->arena, sizeof(*node));

    node->kind = kind;
    node->line = (unsigned)mark->line + 1;
    node->column = (unsigned)mark->column + 1;
    return node;
}

static struct yaml *convert_scalar(struct walk *walk, const yaml_node_t *from, bool is_key)
{
    struct yaml *node = node_new(walk, YAML_TEXT, &from->start_mark);
    struct arena *arena = walk->source->arena;
    struct span text = span_make((const char *)from->data.scalar.value, from->data.scalar.length);
    const char *reason = NULL;

    node->plain = from->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (span_find(text, '\0') < text.size)
        reason = "a NUL byte has no place here";
    else if (!is_key && !walk->source->verbatim && expand_is_needed(text))
        reason = expand(arena, text, walk->source->environ, &node->text);
    else
        node->text = span_make(keep_text(arena, text), text.size);
    if (reason)
        complain(walk->source, &from->start_mark, reason);
    if (!node->text.data)
        node->text = span_make("", 0);
    return node;
}

static struct yaml *convert_list(struct walk *walk, const yaml_node_t *from)
{
    struct yaml *node = node_new(walk, YAML_LIST, &from->start_mark);
    const yaml_node_item_t *end = from->data.sequence.items.top;

    for (const yaml_node_item_t *item = from->data.sequence.items.start; item < end; item++) {
        node->items =
            keep_grow(walk->source->arena, node->items, node->size, sizeof(node->items[0]));
        node->items[node->size++] = convert(walk, *item, false);
    }
    return node;
}

static void add_pair(struct walk *walk, struct yaml *map, struct yaml *key, struct yaml *value)
{
    struct arena *arena = walk->source->arena;

    map->keys = keep_grow(arena, map->keys, map->size, sizeof(map->keys[0]));
    map->items = keep_grow(arena, map->items, map->size, sizeof(map->items[0]));
    map->keys[map->size] = key;
    map->items[map->size++] = value;
}

static void convert_pair(struct walk *walk, struct yaml *map, const yaml_node_pair_t *pair)
{
    const yaml_node_t *key_node = yaml_document_get_node(walk->document, pair->key);
    struct yaml *key, *earlier;

    if (key_node->type != YAML_SCALAR_NODE) {
        complain(walk->source, &key_node->start_mark, "a key must be a plain word");
        return;
    }
    key = convert(walk, pair->key, true);
    if (yaml_find(map, key->text.data, &earlier)) {
        faults_add(walk->source->faults, walk->source->file, key->line, key->column, key->text.data,
                   "stands twice; first in line %u", earlier->line);
        return;
    }
    add_pair(walk, map, key, convert(walk, pair->value, false));
}

/* Gives a map the pairs of another that it lacks (`<<: *anchor`). */
static void merge(struct walk *walk, struct yaml *map, const struct yaml *from)
{
    struct yaml *ignored;

    if (from->kind == YAML_TEXT)
        faults_add(walk->source->faults, walk->source->file, from->line, from->column, "<<",
                   "expected a map or a list of maps");
    for (size_t i = 0; i < from->size; i++)
        if (from->kind == YAML_LIST)
            merge(walk, map, from->items[i]);
        else if (!yaml_find(map, from->keys[i]->text.data, &ignored))
            add_pair(walk, map, from->keys[i], from->items[i]);
}

/* Takes the pair named `<<` out of the map and returns its value, or NULL. */
static struct yaml *take_merge(struct yaml *map)
{
    for (size_t i = 0; i < map->size; i++) {
        struct yaml *value = map->items[i];

        if (!map->keys[i]->plain || !span_is(map->keys[i]->text, "<<"))
            continue;
        map->size--;
        memmove(map->keys + i, map->keys + i + 1, (map->size - i) * sizeof(map->keys[0]));
        memmove(map->items + i, map->items + i + 1, (map->size - i) * sizeof(map->items[0]));
        return value;
    }
    return NULL;
}

static struct yaml *convert_map(struct walk *walk, const yaml_node_t *from)
{
    struct yaml *node = node_new(walk, YAML_MAP, &from->start_mark);
    const yaml_node_pair_t *end = from->data.mapping.pairs.top;
    struct yaml *merged;

    for (const yaml_node_pair_t *pair = from->data.mapping.pairs.start; pair < end; pair++)
        convert_pair(walk, node, pair);
    merged = take_merge(node);
    if (merged)
        merge(walk, node, merged);
    return node;
}

static struct yaml *convert_fresh(struct walk *walk, const yaml_node_t *from, bool is_key)
{
    if (from->type == YAML_SEQUENCE_NODE)
        return convert_list(walk, from);
    if (from->type == YAML_MAPPING_NODE)
        return convert_map(walk, from);
    return convert_scalar(walk, from, is_key);
}

/* What stands in for a node that cannot be converted; the fault is known by then. */
static struct yaml *give_up(struct walk *walk, const yaml_node_t *from, const char *reason)
{
    struct yaml *node = node_new(walk, YAML_TEXT, &from->start_mark);

    complain(walk->source, &from->start_mark, reason);
    node->text = span_make("", 0);
    return node;
}

static struct yaml *convert(struct walk *walk, int index, bool is_key)
{
    const yaml_node_t *from = yaml_document_get_node(walk->document, index);
    struct yaml *node;

    if (walk->done[index - 1] && !is_key)
        return walk->done[index - 1];
    if (walk->open[index - 1])
        return give_up(walk, from, "this contains itself");
    if (walk->depth == YAML_DEPTH_MAX)
        return give_up(walk, from, "nested too deep");
    walk->open[index - 1] = true;
    walk->depth++;
    node = convert_fresh(walk, from, is_key);
    walk->depth--;
    walk->open[index - 1] = false;
    if (!is_key)
        walk->done[index - 1] = node;
    return node;
}

static struct yaml *convert_document(const struct yaml_source *source, yaml_document_t *document)
{
    yaml_node_t *root = yaml_document_get_root_node(document);
    size_t count = (size_t)(document->nodes.top - document->nodes.start);
    struct walk walk = {.source = source, .document = document};

    if (!root)
        return NULL;
    if (count > YAML_NODES_MAX) {
        complain(source, &root->start_mark, "more values than a configuration may have");
        return NULL;
    }
    walk.done = keep_zero(source->arena, count * sizeof(walk.done[0]));
    walk.open = keep_zero(source->arena, count * sizeof(walk.open[0]));
    return convert(&walk, 1, false);
}

/* libyaml says where it was (context) and what disturbed it there (problem). */
static void complain_of_syntax(const struct yaml_source *source, const yaml_parser_t *parser)
{
    const char *problem = parser->problem ? parser->problem : "this is no YAML";
    const yaml_mark_t *mark = &parser->problem_mark;

    if (parser->error == YAML_READER_ERROR)
        faults_add(source->faults, source->file, 1, 0, NULL, "%s (at byte %zu)", problem,
                   parser->problem_offset);
    else if (parser->context)
        faults_add(source->faults, source->file, (unsigned)mark->line + 1,
                   (unsigned)mark->column + 1, NULL, "%s, %s that began in line %zu", problem,
                   parser->context, parser->context_mark.line + 1);
    else
        complain(source, mark, problem);
}

/* A file holds one document; what follows it would silently not count. */
static void complain_of_more(const struct yaml_source *source, yaml_parser_t *parser)
{
    yaml_document_t document;
    yaml_node_t *root;

    if (!yaml_parser_load(parser, &document)) {
        complain_of_syntax(source, parser);
        return;
    }
    root = yaml_document_get_root_node(&document);
    if (root)
        complain(source, &root->start_mark, "a second document; a configuration has one");
    yaml_document_delete(&document);
}

static struct yaml *read_document(const struct yaml_source *source, yaml_parser_t *parser)
{
    yaml_document_t document;
    struct yaml *root;

    if (!yaml_parser_load(parser, &document)) {
        complain_of_syntax(source, parser);
        return NULL;
    }
    root = convert_document(source, &document);
    yaml_document_delete(&document);
    if (root)
        complain_of_more(source, parser);
    return root;
}

struct yaml *yaml_read(const struct yaml_source *source)
{
    yaml_parser_t parser;
    struct yaml *root;

    if (source->text.size > YAML_BYTES_MAX) {
        faults_add(source->faults, source->file, 0, 0, NULL, "larger than a configuration may be");
        return NULL;
    }
    CHECK(yaml_parser_initialize(&parser));
    yaml_parser_set_input_string(&parser, (const unsigned char *)source->text.data,
                                 source->text.size);
    root = read_document(source, &parser);
    yaml_parser_delete(&parser);
    return root;
}

struct yaml *yaml_find(const struct yaml *map, const char *name, struct yaml **ret_key)
{
    for (size_t i = 0; map && map->kind == YAML_MAP && i < map->size; i++)
        if (span_is(map->keys[i]->text, name)) {
            *ret_key = map->keys[i];
            return map->items[i];
        }
    return NULL;
}

bool yaml_is_empty(const struct yaml *node)
{
    if (node->kind != YAML_TEXT)
        return false;
    return node->text.size == 0 ||
           (node->plain && (span_is(node->text, "~") || span_is(node->text, "null")));
}
