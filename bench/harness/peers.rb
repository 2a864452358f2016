# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# The table of peers: a line adds one. Each command is given the peer; where several start, the last one
# is the one that is asked.

require_relative "peer"

module Peers
  NGINX_PROXY = 'proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host; proxy_pass http://app;'

  module_function

  def nginx(peer, body)
    file = peer.write("nginx.conf", <<~CONFIG)
      user root; daemon off; worker_processes 2; pid #{peer.folder}/nginx.pid; error_log #{peer.folder}/nginx.log crit;
      events { worker_connections 4096; }
      http {
        include /etc/nginx/mime.types; access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
        open_file_cache max=1000; client_max_body_size 64m;
        client_body_temp_path #{peer.folder}/b; proxy_temp_path #{peer.folder}/p; fastcgi_temp_path #{peer.folder}/f;
        uwsgi_temp_path #{peer.folder}/u; scgi_temp_path #{peer.folder}/s;
        #{body}
      }
    CONFIG
    "nginx -p #{peer.folder} -c #{file}"
  end

  def lighttpd(peer)
    file = peer.write("lighttpd.conf", <<~CONFIG)
      server.port = #{peer.port}
      server.bind = "127.0.0.1"
      server.document-root = "#{Machine::PUBLIC}"
      server.max-worker = 2
      server.max-keep-alive-requests = 1000000
      server.listen-backlog = 4096
      server.max-fds = 8192
    CONFIG
    "lighttpd -D -f #{file}"
  end

  def unicorn(peer)
    file = peer.write("unicorn.rb", "worker_processes 2\nlisten '127.0.0.1:#{peer.port}', backlog: 4096\npreload_app true\ntimeout 60\n")
    "unicorn -N -E production -c #{file} #{peer.rackup}"
  end

  def puma(peer, address) = "puma -w 2 -t #{peer.threads}:#{peer.threads} -b #{address} -e production #{peer.rackup}"

  def agoo(peer)
    file = peer.write("agoo.rb", <<~RUBY)
      require "agoo"
      require "rack"
      quiet = { INFO: false, DEBUG: false, connect: false, request: false, response: false, eval: false, push: false }
      Agoo::Log.configure(dir: "", console: true, classic: true, colorize: false, states: quiet)
      Agoo::Server.init(#{peer.port}, "#{peer.folder}", worker_count: 2, thread_count: 0)
      Agoo::Server.handle(nil, "**", Array(Rack::Builder.parse_file("#{peer.rackup}")).first)
      Agoo::Server.start
      sleep
    RUBY
    "ruby #{file}"
  end

  def leat(peer, more = "")
    return "#{Machine::LEAT} start -q -e production -b 127.0.0.1:#{peer.port} #{more} #{peer.directory}" if peer.app == :static

    "#{Machine::LEAT} start -q -e production -b 127.0.0.1:#{peer.port} -w 2 -t #{peer.threads} -R #{peer.rackup} #{more} ."
  end

  # The processor that a pinned server has to itself; the load generator gets another one.
  def pinned(command) = "taskset -c 0 #{command}"

  ALL = {
    "leat" => ->(peer) { leat(peer) },
    "puma" => ->(peer) { puma(peer, "tcp://127.0.0.1:#{peer.port}") },
    "unicorn" => ->(peer) { unicorn(peer) },
    "iodine" => ->(peer) { "iodine -b 127.0.0.1 -p #{peer.port} -w 2 -t #{[peer.threads, 2].min} #{peer.rackup}" },
    "agoo" => ->(peer) { agoo(peer) },
    "nginx+puma" => [
      ->(peer) { puma(peer, "unix://#{peer.folder}/puma.sock") },
      lambda do |peer|
        nginx(peer, "upstream app { server unix:#{peer.folder}/puma.sock; keepalive 16; } " \
                    "server { listen 127.0.0.1:#{peer.port} backlog=4096; location / { #{NGINX_PROXY} } }")
      end
    ],
    "nginx" => ->(peer) { nginx(peer, "server { listen 127.0.0.1:#{peer.port} backlog=4096; root #{Machine::PUBLIC}; }") },
    "lighttpd" => ->(peer) { lighttpd(peer) },
    "leat-pinned" => ->(peer) { pinned(leat(peer)) },
    "bare-pinned" => ->(peer) { pinned("#{Machine.program('bare')} #{peer.port} #{File.join(Machine::PUBLIC, '1k.txt')}") }
  }.freeze
end
