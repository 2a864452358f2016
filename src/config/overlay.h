/* SPDX-License-Identifier: MIT */
/*
 * What the environment and the command line say, laid over what the file says: an option wins over
 * the environment, the environment over the file, the file over the default. One thread.
 */
#pragma once

#include "config/bind.h"

/* The name of the environment and who gave it (NULL = nobody). */
struct overlay_environment {
    const char *name;
    const char *source;  /* "option -e", "environment RAILS_ENV"; NULL = the file, or the default */
    const char *quarrel; /* one line when variables disagree, else NULL */
};

/* The environment that the options name, else the variables (of which a Rails application prefers
 * RAILS_ENV), else the file's (may be NULL), else the starter's default, else development. */
void overlay_find_environment(struct arena *arena, const struct config_options *options,
                              bool is_rails, const char *from_file,
                              struct overlay_environment *ret_environment);

/* Lays variables and options over the directives that the file has set. */
void overlay_settings(struct bind *bind, const struct config_options *options);

/* Makes config->listeners from the file's `listen`, PORT and BINDING, and the options. */
void overlay_listeners(struct bind *bind, const struct config_options *options);
