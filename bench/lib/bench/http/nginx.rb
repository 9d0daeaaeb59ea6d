# frozen_string_literal: true

require "bench/http/messages"

module Bench
  module Http
    # nginx with one worker, which answers by itself.
    module Nginx
      PLACES = [*ENV["PATH"].to_s.split(File::PATH_SEPARATOR), "/usr/sbin", "/usr/local/sbin"].freeze
      LOCATIONS = { "hello" => "return 200 #{BenchApp::HELLO.dump};", "post" => "return 200 #{BenchApp::POSTED.to_s.dump};",
                    "file" => "root %<folder>s; try_files /file =404;" }.freeze
      private_constant :PLACES, :LOCATIONS

      module_function

      # @raise [Unavailable]
      def program
        PLACES.map { |folder| File.join(folder, "nginx") }.find { |path| File.executable?(path) } ||
          raise(Unavailable, "nginx is not installed: bin/setup")
      end

      # @return [String] the path of a file of settings
      def configured(folder, port, work)
        path = File.join(folder, "nginx.conf")
        File.write(path, <<~SETTINGS)
          daemon off;
          worker_processes 1;
          #{"user root;" if Process.uid.zero?}
          pid #{folder}/nginx.pid;
          error_log #{folder}/nginx.log;
          events { worker_connections 16384; }
          http {
            access_log off;
            sendfile on;
            tcp_nopush on;
            keepalive_requests 100000000;
            client_max_body_size 2m;
            default_type text/plain;
            #{%w[client_body proxy fastcgi uwsgi scgi].map { |name| "#{name}_temp_path #{folder}/#{name};" }.join(" ")}
            server {
              listen 127.0.0.1:#{port} backlog=4096;
              location = / { #{format(LOCATIONS.fetch(work), folder:)} }
            }
          }
        SETTINGS
        path
      end
    end
  end
end
