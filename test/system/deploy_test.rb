# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "shellwords"
require "yaml"

# examples/deploy: neither Docker nor a cluster runs here, so the files are read as those would read them, and everything
# they name is looked for in the program: ports, paths, verbs, keys, metrics, times.
class DeployTest < ServerCase
  DEPLOY = File.join(ROOT, "examples/deploy")
  INSTRUCTIONS = %w[ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR].freeze

  def setup
    super
    app 'run(proc { |env| [200, {"content-type" => "text/plain"}, ["served"]] })'
  end

  def settings = YAML.safe_load_file(File.join(DEPLOY, "docker/leat.yml"))

  def port = settings["listen"]

  def admin = settings["admin"][/\d+\z/].to_i

  # Instructions as [name, rest], continuation lines joined and remarks left out.
  def dockerfile
    text = File.readlines(File.join(DEPLOY, "docker/Dockerfile")).reject { |line| line.start_with?("#") || line.strip.empty? }.join
    text.gsub(/\\\n\s*/, "").lines.map { |line| line.chomp.split(/\s+/, 2) }
  end

  def stages = dockerfile.slice_before { |name, _| name == "FROM" }.to_a

  def verbs = leat("help").first.scan(/^  ([a-z]+)/).flatten

  def seconds(text) = text.delete_suffix("s").to_i

  # What a graceful stop may take, with that delay.
  def stop_seconds(delay) = settings["timeouts"].values_at("drain", "stream_drain").sum { |text| seconds(text) } + delay

  def kubernetes = @kubernetes ||= YAML.load_stream(File.read(File.join(DEPLOY, "kubernetes/leat.yaml")))

  def kind(name) = kubernetes.find { |document| document["kind"] == name }

  def pod = kind("Deployment").dig("spec", "template", "spec")

  def container = pod["containers"].first

  # --- the configuration

  def test_the_containers_configuration_has_no_mistakes
    FileUtils.mkdir_p(File.join(@dir, "config/leat"))
    FileUtils.cp(File.join(DEPLOY, "docker/leat.yml"), File.join(@dir, "config/leat/production.yml"))
    ["", "10s"].each do |delay|
      out, code = leat("check", "-e", "production", env: { "DRAIN_DELAY" => delay })
      assert_equal 0, code, out
    end
    out, = leat("print", "-e", "production", env: { "DRAIN_DELAY" => "10s" })
    assert_match(/^timeouts.drain_delay: 10s/, out)
  end

  # --- docker

  def test_the_dockerfile_has_known_instructions_and_files_that_are_there
    assert_equal %w[FROM FROM], stages.map { |stage| stage.first.first }
    assert_empty dockerfile.map(&:first).uniq - INSTRUCTIONS
    names = stages.filter_map { |stage| stage.first.last[/ AS (\w+)\z/, 1] }
    dockerfile.select { |name, _| name == "COPY" }.each do |_, rest|
      words = rest.split
      from = words.find { |word| word.start_with?("--from=") }
      next assert_includes(names, from.delete_prefix("--from=")) if from

      words.reject { |word| word.start_with?("--") }[0..-2].each { |path| assert File.exist?(File.join(ROOT, path)), path }
    end
  end

  def test_the_image_does_not_run_as_root_and_has_no_compiler
    last = stages.last
    assert_match(/\A[1-9]\d*:[1-9]\d*\z/, last.reverse.find { |name, _| name == "USER" }.last)
    refute_match(/\b(gcc|g\+\+|make|\S+-dev)\b/, last.map(&:last).join("\n"))
    assert_equal [port, admin], last.find { |name, _| name == "EXPOSE" }.last.split.map(&:to_i)
  end

  def commands = stages.last.filter_map { |name, rest| JSON.parse(rest[/\[.*\]\z/]) if %w[CMD HEALTHCHECK].include?(name) }

  def test_its_commands_are_words_of_the_program
    assert_equal 2, commands.size
    commands.each do |command|
      assert_equal "leat", command.first
      assert_includes verbs, command[1]
      assert_equal "/app", command[2]
    end
  end

  # As in the image, but for the place: the installed program with the image's configuration, and its commands.
  def test_what_is_installed_runs_the_images_commands
    out, status = Open3.capture2e("make", "-C", ROOT, "-o", "build/leat", "-o", "all", "install", "PREFIX=/usr/local", "DESTDIR=#{@dir}/out")
    assert status.success?, out
    healthcheck, start = commands.sort_by { |command| command[1] == "healthcheck" ? 0 : 1 }
    own, other = free_port, free_port
    text = File.read(File.join(DEPLOY, "docker/leat.yml")).sub("listen: #{port}", "listen: #{own}").sub(":#{admin}", ":#{other}").sub("/tmp", @dir)
    write "config/leat/production.yml", text
    place = ->(command) { ["#{@dir}/out/usr/local/bin/leat", *command[1..]].map { |word| word == "/app" ? @dir : word } }
    env = clean_env.merge("RAILS_ENV" => "production")
    pid = spawn_child(env, *place.(start), chdir: @dir, out: "#{@dir}/log", err: [:child, :out])
    eventually(START_SECONDS) { Open3.capture2e(env, *place.(healthcheck)).then { |text, status| status.success? && text == "ready\n" } }
    assert_equal "OK", Net::HTTP.get("127.0.0.1", settings["pulse"], own)
    probes = %w[startupProbe readinessProbe livenessProbe].map { |name| container.dig(name, "httpGet", "path") }
    probes.each { |path| assert_equal "200", Net::HTTP.get_response("127.0.0.1", path, other).code, path }
    look_for_metrics(Net::HTTP.get("127.0.0.1", kind("Deployment").dig("spec", "template", "metadata", "annotations", "prometheus.io/path"), other))
    Process.kill("TERM", pid)
    assert_equal 0, wait_exit(pid)
  end

  # Every gauge that the autoscaler or its rules go by.
  def look_for_metrics(text)
    rules = YAML.safe_load(kind("ConfigMap").dig("data", "config.yaml"))["rules"]
    rules.flat_map { |rule| rule["metricsQuery"].scan(/(leat_\w+)\{(?:(\w+)="(\w+)")?/) + [[rule["seriesQuery"][/\Aleat_\w+/]]] }.each do |name, label, value|
      assert_match(/^#{name}\{.*#{label && "#{label}=\"#{value}\""}.*\} /, text)
    end
    offered = rules.map { |rule| rule.dig("name", "as") }
    wanted = kind("HorizontalPodAutoscaler").dig("spec", "metrics").map { |metric| metric.dig("pods", "metric", "name") }
    assert_equal wanted.sort, offered.sort
  end

  # --- kubernetes

  def test_ports_and_names_of_the_manifest_fit_together
    ports = container["ports"].to_h { |entry| entry.values_at("name", "containerPort") }
    assert_equal({ "web" => port, "admin" => admin }, ports)
    %w[startupProbe readinessProbe livenessProbe].each { |probe| assert_equal "admin", container.dig(probe, "httpGet", "port") }
    assert_equal "web", kind("Service").dig("spec", "ports", 0, "targetPort")
    assert_equal admin.to_s, kind("Deployment").dig("spec", "template", "metadata", "annotations", "prometheus.io/port")
    label = kind("Deployment").dig("spec", "template", "metadata", "labels")
    [kind("Service").dig("spec", "selector"), kind("PodDisruptionBudget").dig("spec", "selector", "matchLabels")].each { |selector| assert_equal label, selector }
    assert_equal kind("Deployment").dig("metadata", "name"), kind("HorizontalPodAutoscaler").dig("spec", "scaleTargetRef", "name")
    mounts = container["volumeMounts"].map { |mount| mount["mountPath"] }
    assert_includes mounts, settings["spool"]
  end

  def test_the_grace_period_is_longer_than_a_stop_and_the_delay_longer_than_a_probe
    delay = seconds(container["env"].find { |entry| entry["name"] == "DRAIN_DELAY" }["value"])
    assert_operator pod["terminationGracePeriodSeconds"], :>, stop_seconds(delay) + 20
    probe = container["readinessProbe"]
    assert_operator delay, :>=, 2 * probe["periodSeconds"] * probe["failureThreshold"]
    refute container.key?("lifecycle")
    assert_equal "${DRAIN_DELAY:-0s}", settings["timeouts"]["drain_delay"]
  end

  # --- kamal

  def test_kamals_file_fits_the_image
    kamal = YAML.safe_load_file(File.join(DEPLOY, "kamal/deploy.yml"))
    assert_equal port, kamal.dig("proxy", "app_port")
    assert_equal settings["pulse"], kamal.dig("proxy", "healthcheck", "path")
    assert File.exist?(File.join(ROOT, kamal.dig("builder", "dockerfile")))
    assert_operator kamal["drain_timeout"], :>, stop_seconds(0) + 20
    kamal["aliases"].each_value do |command|
      assert_includes verbs, command[/"leat (\w+)/, 1], command
    end
  end
end
