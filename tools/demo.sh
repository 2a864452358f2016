#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Serves examples/rails in production on the first free port from 3000 and says where. What is missing
# is installed first (tools/deps.sh says what). Ctrl-C stops it.
#
# usage: tools/demo.sh [PORT]
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
application=$here/examples/rails
first_port=${1:-3000}

"$here/tools/deps.sh" build demo
make -C "$here" all

# Binding is the only honest test: what listens elsewhere need not answer us. Both families, as the
# server listens on both.
free_port()
{
    ruby -rsocket -e '
        first = Integer(ARGV[0])
        port = first.upto(first + 999).find do |candidate|
          Socket.tcp_server_sockets(candidate).each(&:close)
        rescue SystemCallError
          false
        end
        abort "no free port from #{first} up" unless port
        print port' "$1"
}

port=$(free_port "$first_port")
cd "$application"
echo "making the database of examples/rails, when it is not there yet"
RAILS_ENV=production RAILS_LOG_LEVEL=warn ruby db/make.rb

echo
echo "  examples/rails:  http://localhost:$port/"
echo
exec "$here/build/leat" start -e production -p "$port"
