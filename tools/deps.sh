#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Installs what a purpose needs and is missing: Debian packages with apt-get (as root or through
# sudo) and gems. Says what it installs, and is silent when all is there.
#
# usage: tools/deps.sh PURPOSE...      purposes: build lint test demo bench; all but lint include build
set -eu

build_packages='gcc make pkg-config ragel libssl-dev libnghttp2-dev libyaml-dev zlib1g-dev
    libbrotli-dev libzstd-dev libcmocka-dev libc6-dev ruby ruby-dev uthash-dev'
build_gems=''

lint_packages='clang-format clang-tidy cppcheck'
lint_gems=''

# g++ and the like are for gems that compile something.
test_packages='curl apache2-utils strace procps g++ ca-certificates git libsqlite3-dev libxml2-dev
    libxslt1-dev bundler systemd util-linux'
# name:requirement:version, where the version is one that Ruby 3.1 runs.
test_gems='minitest:~>5.15 rack:~>2.2.0 rack:~>3.0.0 rack:~>3.1.0 rack:~>3.2.0 rackup:~>2.1 rails:~>7.2.0
    sqlite3:~>1.7'

demo_packages='g++ ca-certificates git libsqlite3-dev libxml2-dev libxslt1-dev bundler curl'
demo_gems='rails:~>7.2.0 sqlite3:~>1.7'

bench_packages='g++ ca-certificates git libsqlite3-dev libxml2-dev libxslt1-dev bundler
    apache2-utils wrk nginx lighttpd strace'
bench_gems='puma:~>8.0 unicorn:~>6.1 iodine:~>0.7.50 agoo:~>2.15'

say()
{
    printf '%s\n' "$*" >&2
}

# Runs a command as root, or gives up with a reason.
as_root()
{
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        say "root or sudo is needed for: $*"
        exit 1
    fi
}

missing_packages()
{
    for package in $1; do
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q ' installed$' ||
            printf '%s ' "$package"
    done
}

install_packages()
{
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        # Elsewhere the names differ; the tools that are looked for do not.
        for tool in gcc pkg-config ragel ruby; do
            command -v "$tool" >/dev/null && continue
            say "this is no Debian; please install what these packages of Debian hold:"
            say "   " $1
            exit 1
        done
        return 0
    fi
    missing=$(missing_packages "$1")
    [ -n "$missing" ] || return 0
    say "installing packages: $missing"
    # The lists may be old or absent: read them again only when installing fails without that.
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get install -y -q --no-install-recommends $missing >/dev/null 2>&1 && return 0
    as_root apt-get update -q >/dev/null
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends $missing >/dev/null
}

missing_gems()
{
    ruby -e '
      ARGV.each do |gem|
        name, requirement = gem.split(":")
        found = Gem::Specification.find_all_by_name(name, requirement)
        puts gem if found.empty?
      end' -- $1
}

# Where gems go: the folder of all users when it can be written, else that of this one.
gem_place()
{
    if [ -w "$(ruby -e 'print Gem.default_dir')" ] || [ "$(id -u)" = 0 ]; then
        printf ''
    else
        printf '%s' --user-install
    fi
}

install_gems()
{
    missing=$(missing_gems "$1")
    [ -n "$missing" ] || return 0
    say "installing gems:" $missing
    place=$(gem_place)
    unused=$(mktemp -d)
    trap 'rm -rf "$unused"' EXIT
    # Else nokogiri builds a libxml2 of its own, which takes minutes.
    export NOKOGIRI_USE_SYSTEM_LIBRARIES=1
    for gem in $missing; do
        name=${gem%%:*}
        # Rack 2 and the gem rackup bring the same command; it shall be the one of rackup.
        case $name in
        rack) extra="--bindir $unused" ;;
        rackup) extra=--force ;;
        *) extra='' ;;
        esac
        gem install --conservative --no-document --quiet $place $extra "$name" -v "${gem#*:}" >&2
    done
}

packages=''
gems=''
[ $# -gt 0 ] || { say "usage: tools/deps.sh build|lint|test|demo|bench ..."; exit 2; }
for purpose in "$@"; do
    case $purpose in
    build) packages="$packages $build_packages" gems="$gems $build_gems" ;;
    lint) packages="$packages $lint_packages" gems="$gems $lint_gems" ;;
    test) packages="$packages $build_packages $test_packages" gems="$gems $test_gems" ;;
    demo) packages="$packages $build_packages $demo_packages" gems="$gems $demo_gems" ;;
    bench) packages="$packages $build_packages $bench_packages" gems="$gems $bench_gems" ;;
    *) say "tools/deps.sh: no such purpose: $purpose"; exit 2 ;;
    esac
done
packages=$(printf '%s\n' $packages | sort -u | tr '\n' ' ')
gems=$(printf '%s\n' $gems | sort -u)

install_packages "$packages"
[ -z "$gems" ] || install_gems "$gems"
