# frozen_string_literal: true

require "rbconfig"
require "bench/floor_program"
require "bench/http/messages"
require "bench/yjit"

module Bench
  module Http
    # How each server is started, as its own documentation has it for production: one process, and no access log. Each is a block
    # that gets the folder, the port and the work, and returns an environment and a command.
    module Programs
      PEERS = File.join(ROOT, "bench/peers/http")
      LOAD_PATH = %w[http/lib runtime/lib].map { |folder| "-I#{File.join(ROOT, folder)}" }.freeze
      COMMAND = "bin/setup --peers"

      # The number of threads of Puma: its own default, that of an application of Rails, and where requests wait as many as these.
      THREADS = Hash.new(5).update("up" => 3, "sleep" => 1_000, "events" => 1_000).freeze
      private_constant :THREADS

      @all = {}

      class << self
        # @return [#call] gets the folder and the port
        # @raise [Unavailable] its gems are not installed
        def start(name, work, **options)
          starts = @all.fetch(name)
          ->(folder, port) { starts.call(folder, port, work, **options) }
        end

        def server(name, &starts) = @all[name] = starts

        # One that is in gems of its own, or in those of the Rails application.
        def peer(name, &arguments)
          server(name) do |folder, port, work|
            [of_gems(work == "up" ? "rails" : name, folder, work), RbConfig.ruby, "-rbundler/setup",
             *arguments.call(port, work, folder)]
          end
        end

        def of_gems(name, folder, work, **more)
          find_gems(name)
          environment(folder, work, BUNDLE_GEMFILE: File.join(PEERS, name, "Gemfile"), RACK_ENV: "production",
                                    BUNDLE_PATH: File.join(ROOT, "vendor/bundle"), BUNDLE_FROZEN: "true", **more)
        end

        # @return [String] what Rack is to read
        def config(work) = File.join(PEERS, work == "up" ? "rails/config.ru" : "config.ru")

        # As `bundle exec` runs it, without a program in between.
        def executable(gem, *arguments) = ["-e", "load Gem.bin_path(#{gem.dump}, #{gem.dump})", "--", *arguments]

        def environment(folder, work, **more)
          file = File.join(folder, "file")
          File.binwrite(file, BenchApp.file_bytes) if work == "file" && !File.exist?(file)
          { "RUBYLIB" => nil, "RUBYOPT" => Yjit.option, "BUNDLER_SETUP" => nil, "BENCH_WORK" => work, "BENCH_FILE" => file,
            **more.transform_keys(&:to_s) }
        end

        private

        # Bundler would take long to say that one is missing. A gem may be locked for several platforms.
        def find_gems(name)
          locked = File.read(File.join(PEERS, name, "Gemfile.lock"))[/^  specs:\n(.*?)^\n/m, 1].scan(/^    (\S+) \((\S+)\)/)
          folder = File.join(ROOT, "vendor/bundle/ruby/#{RbConfig::CONFIG["ruby_version"]}/gems")
          missing, = locked.group_by(&:first).find do |_, versions|
            versions.none? { |gem| File.directory?(File.join(folder, gem.join("-"))) }
          end
          raise Unavailable, why(name, missing) if missing
        end

        # Set-up says why it could not install one.
        def why(name, missing)
          log = File.join(ROOT, "tmp/setup/peer-#{name}-#{RUBY_VERSION}.why")
          said = File.readlines(log, chomp: true).last if File.exist?(log)
          said ? said.sub(/\A\w+: /, "").sub(/;.*/, "") : "#{missing} is not installed: #{COMMAND}"
        end
      end

      server("ringspun") do |folder, port, work, backend:, log: false|
        rails = work == "up"
        variables = { RINGSPUN_BACKEND: backend, BENCH_ISOLATION: "fiber", BENCH_LOG: (File.join(folder, "access.log") if log) }
        environment = rails ? of_gems("rails", folder, work, **variables) : environment(folder, work, **variables)
        [environment, RbConfig.ruby, *("-rbundler/setup" if rails), *LOAD_PATH, File.join(PEERS, "ringspun.rb"), port.to_s]
      end

      peer("puma") do |port, work, _|
        executable("puma", "--quiet", "--environment", "production", "--threads", "#{THREADS[work]}:#{THREADS[work]}",
                   "--bind", "tcp://127.0.0.1:#{port}", config(work))
      end

      peer("falcon") do |port, work, _|
        executable("falcon", "serve", "--count", "1", "--bind", "http://127.0.0.1:#{port}",
                   "--config", config(work))
      end

      peer("iodine") do |port, work, _|
        executable("iodine", "-p", port.to_s, "-b", "127.0.0.1", "-t", "1", "-w", "1",
                   work == "events" ? File.join(PEERS, "iodine/events.ru") : config(work))
      end

      peer("agoo") { |port, _, folder| [File.join(PEERS, "agoo.rb"), port.to_s, folder] }

      peer("itsi") do |port, work, folder|
        settings = File.join(folder, "Itsi.rb")
        # By itself it answers 503 when more than a few requests wait for its thread.
        File.write(settings, "workers 1\nthreads 1\nbind #{"http://127.0.0.1:#{port}".dump}\nlog_level :warn\n" \
                             "ruby_thread_request_backlog_size 20_000\nlisten_backlog 4096\n" \
                             "rackup_file #{config(work).dump}\n")
        executable("itsi", "-C", settings)
      end

      server("C epoll") do |folder, port, work|
        answer = File.join(folder, "answer").tap { |path| File.binwrite(path, constant(work)) }
        event = File.join(folder, "event").tap { |path| File.binwrite(path, chunk(BenchApp::EVENT)) }
        [{}, FloorProgram.new("http_constant.c").path, port.to_s, answer,
         *([event, (BenchApp::SECONDS * 1e6).round.to_s] if work == "events")]
      end

      server("nginx") do |folder, port, work|
        [environment(folder, work), Nginx.program, "-p", folder, "-c", Nginx.configured(folder, port, work)]
      end

      class << self
        private

        # As long as ours, with a date and a type.
        def constant(work)
          head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
          return "#{head}transfer-encoding: chunked\r\n\r\n" if work == "events"

          "#{head}content-length: #{BenchApp::HELLO.bytesize}\r\n\r\n#{BenchApp::HELLO}"
        end

        def chunk(bytes) = "#{bytes.bytesize.to_s(16)}\r\n#{bytes}\r\n"
      end
    end
  end
end
