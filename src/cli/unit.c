/* SPDX-License-Identifier: MIT */
#include "cli/unit.h"

#include "base/ascii.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char mark[] = "# Written by `leat install` for ";

/* What master needs: to become other users, to signal and look at their processes, to open their logs
 * and sockets; AUDIT_WRITE is sudo's. */
static const char capabilities[] =
    "CapabilityBoundingSet=CAP_SETUID CAP_SETGID CAP_KILL CAP_CHOWN CAP_FOWNER CAP_DAC_OVERRIDE "
    "CAP_DAC_READ_SEARCH CAP_NET_BIND_SERVICE CAP_SYS_PTRACE CAP_AUDIT_WRITE";

/* Hardening that an ordinary application does not notice: no sandboxes inside (browsers for PDF), no limits on
 * executable memory (YJIT, node), no hidden home folders, no ban on setuid programs (sendmail). */
static const char *const hardening[] = {
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelLogs=yes",
    "ProtectControlGroups=yes",
    "ProtectClock=yes",
    "ProtectHostname=yes",
    "PrivateDevices=yes",
    "LockPersonality=yes",
    "RestrictRealtime=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "SystemCallArchitectures=native",
    capabilities,
};

/* ---- Names ---- */

static bool is_name_byte(char byte)
{
    return ascii_is(byte, ASCII_ALPHA | ASCII_DIGIT) || byte == '_' || byte == '.' || byte == '-';
}

/* The last part of a path; *path is what stands before it. */
static struct span cut_last(struct span *path)
{
    size_t slash;
    struct span last;

    while (path->size && path->data[path->size - 1] == '/')
        path->size--;
    slash = span_find_last(*path, '/');
    last = slash == path->size ? *path : span_skip(*path, slash + 1);
    path->size = slash == path->size ? 0 : slash;
    return last;
}

void unit_name(const char *folder, char out[UNIT_NAME])
{
    struct span rest = span_of(folder);
    struct span name = cut_last(&rest);
    size_t size = 0;

    if (span_is(name, "current") && rest.size) {
        name = cut_last(&rest);
    } else {
        struct span around = rest;
        if (span_is(cut_last(&around), "releases") && around.size)
            name = cut_last(&around);
    }
    for (size_t i = 0; i < name.size && size < UNIT_NAME - 1; i++)
        out[size++] = is_name_byte(name.data[i]) ? name.data[i] : '-';
    if (size == 0)
        size = (size_t)snprintf(out, UNIT_NAME, "app");
    out[size] = '\0';
}

bool unit_is_name(const char *name)
{
    size_t size = strlen(name);

    for (size_t i = 0; i < size; i++)
        if (!is_name_byte(name[i]))
            return false;
    return size > 0 && size < UNIT_NAME;
}

/* Bytes of the UTF-8 sequence at the start, 0 when there is none. */
static size_t sequence(const unsigned char *text)
{
    size_t size = *text < 0x80   ? 1
                  : *text < 0xc2 ? 0
                  : *text < 0xe0 ? 2
                  : *text < 0xf0 ? 3
                  : *text < 0xf5 ? 4
                                 : 0;

    for (size_t i = 1; i < size; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return size;
}

const char *unit_refuse_path(const char *path)
{
    const unsigned char *at = (const unsigned char *)path;
    size_t size = strlen(path);

    while (*at) {
        if (*at < ' ' || *at == 0x7f)
            return "has a control character in it";
        if (sequence(at) == 0)
            return "is not UTF-8";
        at += sequence(at);
    }
    if (size && (path[size - 1] == ' ' || path[size - 1] == '\\'))
        return "ends with a space or a backslash";
    return NULL;
}

/* ---- Values ---- */

static void add(struct buf *out, const char *text)
{
    CHECK(buf_append(out, span_of(text)) == 0);
}

static void add_byte(struct buf *out, char byte)
{
    CHECK(buf_append_byte(out, byte) == 0);
}

/* A value that stands for itself up to the end of the line: only '%' means something there. */
static void add_value(struct buf *out, const char *text)
{
    for (; *text; text++)
        add(out, *text == '%' ? "%%" : (char[]){*text, '\0'});
}

static bool needs_quotes(const char *text)
{
    for (const char *byte = text; *byte; byte++)
        if (!is_name_byte(*byte) && !strchr("/:=,+@%$", *byte))
            return true;
    return *text == '\0';
}

/* One word of a list; of a command line '$' would begin a variable. */
static void add_word(struct buf *out, const char *text, bool is_command)
{
    bool quoted = needs_quotes(text);

    if (quoted)
        add_byte(out, '"');
    for (; *text; text++) {
        if (*text == '%' || (*text == '$' && is_command))
            add_byte(out, *text);
        else if (*text == '"' || *text == '\\')
            add_byte(out, '\\');
        add_byte(out, *text);
    }
    if (quoted)
        add_byte(out, '"');
}

static void add_command(struct buf *out, const char *key, const char *const *words)
{
    add(out, key);
    for (size_t i = 0; words[i]; i++) {
        add(out, i ? " " : "=");
        /* The program's own name is no place for variables. */
        add_word(out, words[i], i > 0);
    }
    add_byte(out, '\n');
}

static void add_setting(struct buf *out, const char *key, const char *value)
{
    add(out, key);
    add_byte(out, '=');
    add_value(out, value);
    add_byte(out, '\n');
}

/* "NAME=value", as one word. */
static void add_variable(struct buf *out, const struct unit_variable *variable)
{
    struct buf word = {.size = 0};

    CHECK(buf_printf(&word, "%s=%s", variable->name, variable->value) == 0);
    add_byte(&word, '\0');
    add(out, "Environment=");
    add_word(out, buf_span(&word).data, false);
    add_byte(out, '\n');
    buf_done(&word);
}

/* ---- Units ---- */

static void add_mark(const struct unit *unit, struct buf *out)
{
    CHECK(buf_printf(out, "%s%s\n", mark, unit->folder) == 0);
    CHECK(buf_printf(out,
                     "# `leat uninstall` removes it, the next install rewrites it: changes of your "
                     "own belong into\n# leat-%s.service.d/*.conf.\n\n",
                     unit->name) == 0);
}

static void add_description(const struct unit *unit, const char *what, struct buf *out)
{
    CHECK(buf_printf(out, "[Unit]\nDescription=%s%s (", what, unit->name) == 0);
    add_value(out, unit->folder);
    add(out, ")\n");
}

static void add_head(const struct unit *unit, struct buf *out)
{
    bool has_sockets = unit->sockets[0];

    add_description(unit, "Leat: ", out);
    /* A user's manager knows no targets of the network. */
    if (!unit->for_user)
        add(out, "Wants=network-online.target\nAfter=network-online.target\n");
    if (has_sockets)
        CHECK(buf_printf(out, "Requires=leat-%s.socket\nAfter=leat-%s.socket\n", unit->name,
                         unit->name) == 0);
    add(out, "# A database that comes later than we do is no reason to give up.\n"
             "StartLimitIntervalSec=0\n");
}

static void add_life(const struct unit *unit, struct buf *out)
{
    add(out, "\n[Service]\nType=notify\nNotifyAccess=main\n");
    add_setting(out, "WorkingDirectory", unit->folder);
    for (size_t i = 0; i < unit->variable_size; i++)
        add_variable(out, &unit->variables[i]);
    CHECK(buf_printf(out, "EnvironmentFile=-/etc/leat/%s.env\n", unit->name) == 0);
    if (unit->for_user)
        CHECK(buf_printf(out, "EnvironmentFile=-%%h/.config/leat/%s.env\n", unit->name) == 0);
    add_command(out, "ExecStart", unit->start);
    add_command(out, "ExecReload", unit->reload);
    add(out,
        "# Master alone hears of a stop: requests under way are finished before workers leave.\n"
        "KillMode=mixed\n");
    CHECK(buf_printf(out, "TimeoutStartSec=%" PRIu64 "\nTimeoutStopSec=%" PRIu64 "\n",
                     unit->start_s, unit->stop_s) == 0);
    add(out,
        "WatchdogSec=30\n"
        "# 0 was asked for, 4 as well (and cut requests); 2 is a command line that stays wrong.\n"
        "Restart=on-failure\nRestartSec=5\nSuccessExitStatus=4\nRestartPreventExitStatus=2\n"
        "# A worker that ran out of memory is replaced; the others go on.\n"
        "OOMPolicy=continue\n");
    CHECK(buf_printf(out, "SyslogIdentifier=leat-%s\n", unit->name) == 0);
}

static void add_hardening(const struct unit *unit, struct buf *out)
{
    if (unit->for_user)
        return;
    add(out, "\n# Master opens sockets and logs, everything else is another user.\n");
    for (size_t i = 0; i < ARRAY_LEN(hardening); i++)
        CHECK(buf_printf(out, "%s\n", hardening[i]) == 0);
    if (!unit->writes_system)
        add(out, "ProtectSystem=full\n");
    if (!unit->keeps_temporary)
        add(out, "PrivateTmp=yes\n");
}

void unit_write_service(const struct unit *unit, struct buf *out)
{
    add_mark(unit, out);
    add_head(unit, out);
    add_life(unit, out);
    add_hardening(unit, out);
    CHECK(buf_printf(out, "\n[Install]\nWantedBy=%s\n",
                     unit->for_user ? "default.target" : "multi-user.target") == 0);
    if (unit->sockets[0])
        CHECK(buf_printf(out, "Also=leat-%s.socket\n", unit->name) == 0);
}

void unit_write_socket(const struct unit *unit, struct buf *out)
{
    add_mark(unit, out);
    add_description(unit, "Sockets of ", out);
    add(out, "\n[Socket]\n");
    for (size_t i = 0; unit->sockets[i]; i++)
        add_setting(out, "ListenStream", unit->sockets[i]);
    CHECK(buf_printf(out, "BindIPv6Only=ipv6-only\nBacklog=%u\n", unit->backlog) == 0);
    if (unit->has_file) {
        CHECK(buf_printf(out, "SocketMode=%04o\nRemoveOnStop=yes\n", unit->mode) == 0);
        if (unit->owner)
            add_setting(out, "SocketUser", unit->owner);
        if (unit->group)
            add_setting(out, "SocketGroup", unit->group);
    }
    add(out, "\n[Install]\nWantedBy=sockets.target\n");
}

bool unit_read_folder(struct span text, char out[UNIT_FOLDER])
{
    struct span line = span_split(&text, '\n');

    if (!span_starts_with(line, span_of(mark)))
        return false;
    line = span_skip(line, strlen(mark));
    if (line.size == 0 || line.size >= UNIT_FOLDER)
        return false;
    memcpy(out, line.data, line.size);
    out[line.size] = '\0';
    return true;
}
