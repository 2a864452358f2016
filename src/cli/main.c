/* SPDX-License-Identifier: MIT */
/* The program's entry; everything is in cli.c, so that tests can call it. */
#include "cli/cli.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    return cli_run(argc, argv, environ);
}
