# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "fileutils"

module Corpus
  # The files that the cases of static answers and of ways out of the root ask for: public/, outside/.
  module Fixtures
    TIME = Time.utc(2024, 5, 6, 7, 8, 9)
    FILES = {
      "public/hello.txt" => "Hello, static world!\n",
      "public/data.bin" => (0...1000).map { |index| (index * 7 + index / 256) % 256 }.pack("C*"),
      "public/empty.txt" => "",
      "public/index.html" => "<!doctype html><title>root index</title>\n",
      "public/sub/index.html" => "<!doctype html><title>sub index</title>\n",
      "public/sub/page.html" => "<!doctype html><title>page</title>\n",
      "public/space name.txt" => "space\n",
      "public/plus+name.txt" => "plus\n",
      "public/café.txt" => "cafe\n",
      "public/100%25.txt" => "literal percent 25\n",
      "public/.env" => "TOPSECRET dotfile\n",
      "public/.hid/x.txt" => "TOPSECRET dot directory\n",
      "outside/secret.txt" => "TOPSECRET outside the root\n",
      "outside/dir/secret.txt" => "TOPSECRET outside the root, in a directory\n"
    }.freeze
    LINKS = { "link-in.txt" => "hello.txt", "link-out.txt" => "../outside/secret.txt", "dir-out" => "../outside/dir" }.freeze

    def self.make(folder)
      FileUtils.mkdir_p(File.join(folder, "public/empty"))
      FILES.each { |path, text| put(File.join(folder, path), text) }
      LINKS.each { |name, target| File.symlink(target, File.join(folder, "public", name)) }
    end

    def self.put(path, text)
      FileUtils.mkdir_p(File.dirname(path))
      File.binwrite(path, text)
      File.utime(TIME, TIME, path)
    end
    private_class_method :put
  end
end
