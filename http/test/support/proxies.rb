# frozen_string_literal: true

require "fileutils"
require "socket"
require "support/free_port"
require "support/patience"
require "tmpdir"

# Proxies that are started by a test before a server, each on a port of the loopback, in a folder of its own, and ended with it.
# What a client does not send within a second they do not wait for, unless they are told to, so that each connection has an end.
class Proxies
  START_SECONDS = 20
  FOLDERS = [*ENV["PATH"].split(":"), "/usr/sbin", "/usr/local/sbin"].freeze
  MODULES = ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/lib/httpd/modules"].freeze

  # @return [Array<String>] programs of this name; the first is taken
  PROGRAMS = { nginx: %w[nginx], nginx_of_guide: %w[nginx], haproxy: %w[haproxy], varnish: %w[varnishd],
               apache: %w[apache2 httpd] }.freeze
  private_constant :START_SECONDS, :FOLDERS, :MODULES, :PROGRAMS

  class << self
    # @return [String]
    def program(name)
      paths = PROGRAMS.fetch(name).product(FOLDERS).map { |file, folder| File.join(folder, file) }
      paths.find { |path| File.executable?(path) } || raise("#{name} is missing: run bin/setup, by night with --matrix")
    end

    # @param name [Symbol] nginx, haproxy, varnish or apache
    # @param port [Integer] of the server behind it
    # @param options [Hash] those of its configuration
    # @yieldparam port [Integer] of the proxy
    def before(name, port, **options)
      proxy = new(name, port, **options)
      yield proxy.port
    ensure
      proxy&.stop
    end
  end

  attr_reader :port

  def initialize(name, behind, **options)
    @folder = Dir.mktmpdir("ringspun-#{name}-")
    @port = FreePort.find
    command = [self.class.program(name), *send(name, behind, **options)]
    @pid = spawn("setpriv", "--pdeathsig", "KILL", *command, in: File::NULL, chdir: @folder, %i[out err] => log)
    wait_until_it_listens
  rescue StandardError
    stop
    raise
  end

  # Returns when it is gone.
  def stop
    Process.kill(:TERM, @pid) && Process.wait(@pid) if @pid
    @pid = nil
    FileUtils.rm_rf(@folder)
  end

  private

  def log = File.join(@folder, "log")

  def written(name, text)
    path = File.join(@folder, name)
    File.write(path, text)
    path
  end

  def wait_until_it_listens
    patience = Patience.new(START_SECONDS)
    begin
      TCPSocket.new("127.0.0.1", @port).close
    rescue Errno::ECONNREFUSED
      @pid = nil if Process.wait(@pid, Process::WNOHANG)
      raise "it does not listen:\n#{File.read(log)}" if @pid.nil? || patience.over?

      sleep 0.01
      retry
    end
  end

  def nginx(behind)
    nginx_with(<<~TEXT)
      client_header_timeout 1s; client_body_timeout 1s; keepalive_timeout 1s; lingering_timeout 1s;
      underscores_in_headers on; ignore_invalid_headers off;
      upstream behind { server 127.0.0.1:#{behind}; keepalive 4; }
      server {
        listen 127.0.0.1:#{@port} backlog=4096;
        location / { proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_request_buffering off; }
      }
    TEXT
  end

  # What a guide shows, where names of here stand in place of its own.
  #
  # @param files [Hash{String => String}] what the folder `root` has, and the certificate and its key
  def nginx_of_guide(behind, text:, files:)
    files.each { |name, content| written(name, content) }
    listens = ["listen 127.0.0.1:#{@port} ssl;\n    http2 on;", "listen 127.0.0.1:#{@port} ssl http2;"]
    names = { "unix:/run/app/web.sock" => "127.0.0.1:#{behind}", "/etc/ssl/example.org" => "#{@folder}/site",
              "/srv/app/public" => @folder, "listen 443 ssl;\n    http2 on;" => listens[knows_http2_on? ? 0 : 1] }
    names.each_key { |name| raise "the guide does not say #{name} any more" unless text.include?(name) }
    nginx_with(text.gsub(Regexp.union(names.keys), names))
  end

  # Before 1.25.1 it is said as the guide says below.
  def knows_http2_on?
    version = IO.popen([self.class.program(:nginx), "-v"], err: %i[child out], &:read)[/[\d.]+/]
    Gem::Version.new(version) >= Gem::Version.new("1.25.1")
  end

  # In one process, so that it may be any user.
  def nginx_with(site)
    folders = %w[client_body proxy fastcgi uwsgi scgi].map { |each| "#{each}_temp_path #{@folder}/#{each};" }.join(" ")
    ["-p", @folder, "-e", log, "-c", written("nginx.conf", <<~TEXT)]
      daemon off; master_process off; pid #{@folder}/pid; error_log #{log};
      events { worker_connections 4096; }
      http {
        access_log off; #{folders}
        #{site}
      }
    TEXT
  end

  # @param bind [String] words for the place where it listens
  # @param server [String] words for the server behind it
  # @param seconds [Integer] how long it waits for a client
  def haproxy(behind, mode: "http", bind: "", server: "", backend: "", seconds: 1)
    ["-db", "-f", written("haproxy.cfg", <<~TEXT)]
      defaults
        mode #{mode}
        timeout connect 5s
        timeout client #{seconds}s
        timeout server #{[10, seconds].max}s
        timeout http-request #{seconds}s
        timeout http-keep-alive #{seconds}s
        #{"http-reuse always" if mode == "http"}
      frontend before
        bind 127.0.0.1:#{@port} #{bind}
        default_backend behind
      backend behind
        #{backend}
        server one 127.0.0.1:#{behind} #{server}
    TEXT
  end

  def varnish(behind)
    ["-F", "-j", "none", "-n", File.join(@folder, "varnish"), "-a", "127.0.0.1:#{@port}", "-b", "127.0.0.1:#{behind}",
     "-s", "malloc,16m", "-p", "timeout_idle=1", "-p", "first_byte_timeout=2", "-p", "between_bytes_timeout=2"]
  end

  def apache(behind)
    folder = MODULES.find { |path| File.directory?(path) }
    modules = %w[mpm_event unixd authz_core proxy proxy_http reqtimeout].filter_map do |each|
      path = File.join(folder, "mod_#{each}.so")
      "LoadModule #{each}_module #{path}" if File.exist?(path) # or it is built in
    end
    ["-X", "-f", written("apache.conf", <<~TEXT)]
      ServerRoot #{@folder}
      ServerName localhost
      Listen 127.0.0.1:#{@port}
      PidFile #{@folder}/pid
      ErrorLog #{log}
      #{modules.join("\n")}
      User nobody
      Group nogroup
      Timeout 2
      KeepAliveTimeout 1
      RequestReadTimeout header=1 body=1
      ProxyPass / http://127.0.0.1:#{behind}/ keepalive=on
    TEXT
  end
end
