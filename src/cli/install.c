/* SPDX-License-Identifier: MIT */
#include "cli/server.h"
#include "cli/systemd.h"
#include "cli/unit_files.h"
#include "cli/unit_plan.h"
#include "cli/verbs.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILES = 2, FILE_NAME = UNIT_NAME + 32 };

/* The two files of an application; the socket's text is empty when it needs none. */
struct install {
    struct unit_place place;
    const char *folder;
    char names[FILES][FILE_NAME]; /* "leat-shop.service", ".socket" */
    struct buf texts[FILES];
    bool changed; /* something was written, linked or removed */
};

static const char *const kinds[FILES] = {"service", "socket"};

static const char *target_of(const struct install *install, size_t file)
{
    return file == 0 ? unit_files_target(&install->place) : "sockets.target";
}

static void name_files(const char *name, struct install *install)
{
    for (size_t i = 0; i < FILES; i++)
        (void)snprintf(install->names[i], FILE_NAME, "leat-%s.%s", name, kinds[i]);
}

static void done(struct install *install)
{
    for (size_t i = 0; i < FILES; i++)
        buf_done(&install->texts[i]);
}

/* Whether both files may be written: nobody's yet, or ours for this very application. */
static bool check_owners(const struct install *install)
{
    char other[UNIT_FOLDER];

    for (size_t i = 0; i < FILES; i++)
        switch (unit_files_owner(&install->place, install->names[i], install->folder, other)) {
        case UNIT_NOBODY:
        case UNIT_OURS:
            break;
        case UNIT_OTHER:
            cli_complain("%s is there for %s; --name gives this application another one",
                         install->names[i], other);
            return false;
        case UNIT_FOREIGN:
            cli_complain("%s/%s was not written by leat install; --name gives another one",
                         install->place.folder, install->names[i]);
            return false;
        }
    return true;
}

/* A file that is not needed any more goes, as ours. */
static int drop(struct install *install, size_t file)
{
    int links = unit_files_disable(&install->place, install->names[file], target_of(install, file));
    int files = unit_files_remove(&install->place, install->names[file]);

    if (links < 0 || files < 0)
        return -1;
    if (files)
        (void)printf("removed %s/%s\n", install->place.folder, install->names[file]);
    return links || files;
}

static int put(struct install *install, size_t file)
{
    const char *name = install->names[file];
    int files = unit_files_write(&install->place, name, buf_span(&install->texts[file]));
    int links;

    if (files > 0)
        (void)printf("wrote %s/%s\n", install->place.folder, name);
    links = files < 0 ? -1 : unit_files_enable(&install->place, name, target_of(install, file));
    if (links > 0)
        (void)printf("enabled %s in %s\n", name, target_of(install, file));
    return links < 0 ? -1 : files || links;
}

static bool write_all(struct install *install)
{
    for (size_t i = 0; i < FILES; i++) {
        int result = install->texts[i].size ? put(install, i) : drop(install, i);
        if (result < 0)
            return false;
        install->changed |= result > 0;
    }
    return true;
}

static void print_texts(const struct install *install)
{
    for (size_t i = 0; i < FILES; i++)
        if (install->texts[i].size)
            (void)printf("%s# %s/%s\n%.*s", i ? "\n" : "", install->place.named, install->names[i],
                         SPAN_ARG(buf_span(&install->texts[i])));
}

static void say_how_to_start(const struct install *install, const char *manager)
{
    (void)printf("start it, or let it use what has changed: %s restart%s%s %s\n", manager,
                 install->texts[1].size ? " " : "", install->texts[1].size ? install->names[1] : "",
                 install->names[0]);
}

/* What systemd has to know, and what is left to its user. */
static int tell(const struct cli_call *call, const struct install *install)
{
    const char *manager = install->place.for_user ? "systemctl --user" : "systemctl";
    bool is_running = !call->root && systemd_is_running(install->place.for_user);
    const struct passwd *own = getpwuid(geteuid());

    if (!install->changed) {
        (void)printf("%s is installed and nothing has changed\n", install->names[0]);
    } else if (is_running) {
        if (!systemd_run(install->place.for_user, (const char *[]){"daemon-reload", NULL}))
            return CLI_FAILED;
        say_how_to_start(install, manager);
    } else {
        (void)printf("%s: it starts with the next %s\n",
                     call->root ? "nothing is started in an image" : "systemd does not run here",
                     install->place.for_user ? "login" : "boot");
    }
    if (install->place.for_user && own && !systemd_lingers(own->pw_name))
        (void)printf("it runs while %s is logged in; to run it always, and from boot: "
                     "loginctl enable-linger %s\n",
                     own->pw_name, own->pw_name);
    return CLI_OK;
}

static bool is_for_user(const struct cli_call *call)
{
    return geteuid() != 0 && !call->root;
}

static int install(const struct cli_call *call, const struct unit_plan *plan)
{
    struct install install = {.folder = plan->unit.folder};
    int status = CLI_FAILED;

    if (!unit_files_find(call->root, plan->unit.for_user, &install.place))
        return CLI_FAILED;
    name_files(plan->name, &install);
    unit_write_service(&plan->unit, &install.texts[0]);
    if (plan->unit.sockets[0])
        unit_write_socket(&plan->unit, &install.texts[1]);
    if (call->print) {
        print_texts(&install);
        status = CLI_OK;
    } else if (check_owners(&install) && write_all(&install)) {
        status = tell(call, &install);
    }
    done(&install);
    return status;
}

int cli_install(const struct cli_call *call)
{
    struct unit_plan plan;
    int status = CLI_FAILED;

    if (unit_plan_make(call, is_for_user(call), &plan))
        status = install(call, &plan);
    unit_plan_done(&plan);
    return status;
}

/* ---- uninstall ---- */

/* By the folder only what was written for it goes; who names the unit means that one. */
static bool is_removable(const struct cli_call *call, const struct install *install, size_t file)
{
    char other[UNIT_FOLDER];

    switch (unit_files_owner(&install->place, install->names[file], install->folder, other)) {
    case UNIT_OURS:
        return true;
    case UNIT_OTHER:
        if (call->name)
            return true;
        cli_complain("%s is there for %s, and stays", install->names[file], other);
        return false;
    case UNIT_FOREIGN:
        cli_complain("%s/%s was not written by leat install, and stays", install->place.folder,
                     install->names[file]);
        return false;
    case UNIT_NOBODY:
        break;
    }
    return false;
}

/* The socket first: it would start the service again. */
static bool stop(const struct cli_call *call, const struct install *install)
{
    const char *words[] = {"stop", install->names[1], install->names[0], NULL};

    if (call->root || !systemd_is_running(install->place.for_user))
        return true;
    return systemd_run(install->place.for_user, words);
}

static int uninstall(const struct cli_call *call, struct install *install)
{
    bool removable[FILES];
    bool any = false;

    for (size_t i = 0; i < FILES; i++) {
        removable[i] = is_removable(call, install, i);
        any |= removable[i];
    }
    if (!any) {
        (void)printf("no unit of leat install is there for %s\n", install->folder);
        return CLI_OK;
    }
    if (!stop(call, install))
        cli_complain("the service could not be stopped; its unit is removed all the same");
    for (size_t i = 0; i < FILES; i++)
        if (removable[i] && drop(install, i) < 0)
            return CLI_FAILED;
    if (!call->root && systemd_is_running(install->place.for_user))
        (void)systemd_run(install->place.for_user, (const char *[]){"daemon-reload", NULL});
    return CLI_OK;
}

int cli_uninstall(const struct cli_call *call)
{
    struct install install = {.folder = NULL};
    struct faults faults = {.size = 0};
    char *folder = config_find_folder(&call->options, &faults);
    char name[UNIT_NAME];
    int status = CLI_FAILED;

    faults_done(&faults);
    install.folder = folder;
    if (folder && unit_plan_name(call, folder, name) &&
        unit_files_find(call->root, is_for_user(call), &install.place)) {
        name_files(name, &install);
        status = uninstall(call, &install);
    }
    free(folder);
    return status;
}
