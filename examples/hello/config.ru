# frozen_string_literal: true

# The smallest application. In this folder: leat start
run ->(env) {
  [200, { "content-type" => "text/plain; charset=utf-8" }, ["Hello from process #{Process.pid}. You asked for #{env["PATH_INFO"]}.\n"]]
}
