# frozen_string_literal: true

require "test_helper"
require "pathname"
require "socket"
require "tmpdir"
require "support/certificate"
require "support/on_simulation"
require "support/seccomp"
require "support/strands"

# What an error says: which address, file, limit or call it is about.
class MessagesTest < Minitest::Test
  include Strands

  def message_of(kind, &block)
    error = assert_raises(kind) { Ringspun.run(&block) }
    assert_kind_of SystemCallError, error if kind.name.start_with?("Errno")
    error.message
  end

  # --- addresses ---

  def test_an_address_where_nobody_listens
    assert_equal "Connection refused - connect to 127.0.0.1:1",
                 message_of(Errno::ECONNREFUSED) { Ringspun.connect_tcp("127.0.0.1", 1) }
    assert_equal "Connection refused - connect to [::1]:1", message_of(Errno::ECONNREFUSED) { Ringspun.connect_tcp("::1", 1) }
  end

  def test_a_name_at_whose_address_nobody_listens
    assert_match(/\AConnection refused - connect to \S+:1 \(connect_tcp to localhost:1\)\z/,
                 message_of(Errno::ECONNREFUSED) { Ringspun.connect_tcp("localhost", 1) })
  end

  def test_the_error_is_still_the_one_that_came
    error = assert_raises(Errno::ECONNREFUSED) { Ringspun.connect_tcp("localhost", 1) }
    assert_equal Errno::ECONNREFUSED::Errno, error.errno
    assert_nil error.cause
    assert(error.backtrace.any? { |line| line.include?("in `connect") || line.include?("#connect") })
  end

  def test_a_unix_socket_that_is_not_there
    ["/nowhere/socket", Pathname("/nowhere/socket")].each do |path|
      assert_match(%r{\A(No such file or directory|Connection refused) - connect to /nowhere/socket\z},
                   message_of(SystemCallError) { Ringspun.connect_unix(path.to_s) })
    end
    assert_match(/ - connect to @nowhere\z/, message_of(SystemCallError) { Ringspun.connect_unix("\0nowhere") })
  end

  def test_a_path_that_is_none
    { "/long" * 50 => %r{connect_unix: .*"/long.*too long},
      7 => /connect_unix: expected the path of a socket, got 7/ }.each do |path, text|
      assert_match(text, message_of(Ringspun::UsageError) { Ringspun.connect_unix(path) })
    end
    assert_match(/listen_unix: .*too long/, message_of(Ringspun::UsageError) { Ringspun.listen_unix("/long" * 50) {} })
  end

  def test_an_address_that_is_taken
    port = TCPServer.open("127.0.0.1", 0) { |server| server.local_address.ip_port }
    sockets = Array.new(2) { machine.socket(:INET, :STREAM) }
    text = message_of(Errno::EADDRINUSE) { sockets.each { |socket| machine.bind(socket, Addrinfo.tcp("127.0.0.1", port)) } }
    assert_equal "Address already in use - bind to 127.0.0.1:#{port}", text
  ensure
    sockets&.each { |socket| machine.close(socket) }
  end
end

class SimulatedMessagesTest < MessagesTest
  include OnSimulation

  def faults = false
end

# What is wrong with a call.
class UsageMessagesTest < Minitest::Test
  include Strands

  def message_of(&block) = assert_raises(Ringspun::UsageError, &block).message

  def test_a_port_without_a_host
    %i[listen_tcp connect_tcp].each do |name|
      text = "#{name}: takes a host and a port, as in #{name}(\"127.0.0.1\", 8080)"
      assert_equal text, message_of { Ringspun.public_send(name, 8080) { flunk } }
      assert_equal text.sub("127.0.0.1", "localhost"), message_of { Ringspun.public_send(name, "localhost") { flunk } }
    end
  end

  def test_what_is_for_other_threads
    queue = Ringspun::Queue.new([1])
    Ringspun.run { queue.pop }
    error = assert_raises(Ringspun::WrongThreadError) { Thread.new { error_of { queue.pop } }.value&.then { |e| raise e } }
    assert_match(/between threads use a Ringspun::Channel, Thread::Queue or Thread::Mutex/, error.message)
  end

  # Other options may be wrong only because the backend is.
  def test_a_backend_that_nobody_knows_is_said_first
    [{ sqpoll: "yes" }, { seed: 1 }, { entries: -1 }, { faults: 5 }, { busy_poll: -1 }].each do |others|
      text = Thread.new { message_of { Ringspun.run(backend: :iouring, **others) { flunk } } }.value
      assert_match(/unknown backend iouring: there are :uring, :epoll and :sim/, text)
    end
  end
end

# What only the host's kernel says.
class HostMessagesTest < Minitest::Test
  include Strands

  def message_of(kind, &block) = assert_raises(kind) { Ringspun.run(&block) }.message

  def test_a_name_that_nobody_knows
    [[:connect_tcp, "connect_tcp to"], [:listen_tcp, "listen_tcp on"], [:datagram, "datagram"]].each do |call, text|
      error = assert_raises(SocketError) { Ringspun.run { Ringspun.public_send(call, "nobody.invalid", 80) {} } }
      assert_match(/getaddrinfo.*\(#{text} nobody\.invalid:80\)\z/, error.message)
      assert_kind_of Socket::ResolutionError, error
      assert_kind_of Integer, error.error_code
    end
  end

  # On many machines localhost is ::1 first.
  def test_a_server_whose_place_is_taken
    assert_match(/Address already in use - bind to 127\.0\.0\.1:\d+\z/, message_of_taken_place("127.0.0.1"))
    assert_match(/\(listen_tcp on localhost:\d+\)\z/, message_of_taken_place("localhost"))
    assert_includes message_of(Errno::EADDRINUSE) { busy_udp }, "Address already in use - bind to 127.0.0.1:"
  end

  def message_of_taken_place(host)
    message_of(Errno::EADDRINUSE) do
      server = Ringspun.listen_tcp(host, 0) {}
      Ringspun.listen_tcp(host, server.port) {}
    ensure
      server&.stop
    end
  end

  def busy_udp
    Ringspun.datagram("127.0.0.1", 0) { |first| Ringspun.datagram("127.0.0.1", first.port) {} }
  end

  def test_an_address_of_another_machine
    assert_equal "Cannot assign requested address - bind to 203.0.113.7:80",
                 message_of(Errno::EADDRNOTAVAIL) { Ringspun.listen_tcp("203.0.113.7", 80) {} }
    assert_equal "Cannot assign requested address - bind to 203.0.113.7:80",
                 message_of(Errno::EADDRNOTAVAIL) { Ringspun.datagram("203.0.113.7", 80) {} }
  end

  def test_sockets_in_folders_that_are_not_there
    assert_equal "No such file or directory - bind to /nowhere/socket",
                 message_of(Errno::ENOENT) { Ringspun.listen_unix("/nowhere/socket") {} }
    assert_equal "No such file or directory - connect to /nowhere/socket",
                 message_of(Errno::ENOENT) { Ringspun.datagram_unix(connect: "/nowhere/socket") {} }
  end

  def test_a_message_that_goes_nowhere
    Dir.mktmpdir do |folder|
      text = message_of(Errno::ENOENT) do
        Ringspun.datagram_unix(File.join(folder, "own")) do |socket|
          machine.sendmsg(socket.to_io, "x", Addrinfo.unix("/nowhere/socket"))
        end
      end
      assert_equal "No such file or directory - sendmsg to /nowhere/socket", text
    end
  end

  def test_a_unix_socket_that_another_process_serves
    Dir.mktmpdir do |folder|
      path = File.join(folder, "socket")
      UNIXServer.open(path) do
        assert_equal "Address already in use - bind to #{path}", message_of(Errno::EADDRINUSE) { Ringspun.listen_unix(path) {} }
      end
    end
  end

  def test_the_places_of_a_cluster
    TCPServer.open("127.0.0.1", 0) do |server|
      port = server.local_address.ip_port
      {
        ["127.0.0.1", port] => [Errno::EADDRINUSE, /127\.0\.0\.1:#{port}/],
        ["nobody.invalid", 80] => [SocketError, /\(listen on nobody\.invalid:80\)\z/],
        "/nowhere/socket" => [Errno::ENOENT, %r{/nowhere/socket}],
        "/long" * 50 => [Ringspun::UsageError, /listen: expected .*too long/]
      }.each do |place, (kind, text)|
        assert_match text, assert_raises(kind) { Ringspun::Cluster.run(workers: 1, listen: place) { flunk } }.message
      end
    end
  end

  # --- handshakes ---

  def test_a_handshake_that_fails
    Ringspun.run do
      server = Ringspun.listen_tcp("127.0.0.1", 0) { |stream| stream.read_partial && stream.write("220 ready\r\n") }
      assert_match(/\Athe other side does not speak TLS .* \(connect_tcp to 127\.0\.0\.1:#{server.port}\)\z/,
                   assert_raises(Ringspun::HandshakeError) { Ringspun.connect_tcp("127.0.0.1", server.port, tls: true) }.message)
    ensure
      server&.stop
    end
  end

  def test_a_certificate_that_nobody_trusts
    Ringspun.run do
      server = Ringspun.listen_tcp("127.0.0.1", 0, tls: { cert: Certificate.certificate, key: Certificate.key }) { flunk }
      error = assert_raises(Ringspun::UntrustedCertificateError) { Ringspun.connect_tcp("127.0.0.1", server.port, tls: true) }
      assert_match(/\Athe certificate of 127\.0\.0\.1 is by .* \(connect_tcp to 127\.0\.0\.1:#{server.port}\)\z/, error.message)
      assert_predicate error.backtrace, :any?
    ensure
      server&.stop
    end
  end

  # Yields the name of a Unix socket that has none in the file system, and who listens there.
  def on_nameless_socket
    name = "\0ringspun-messages-#{Process.pid}"
    Socket.open(:UNIX, :STREAM) do |listener|
      listener.bind(Addrinfo.unix(name))
      listener.listen(1)
      yield name, listener
    end
  end

  def test_no_handshake_in_time_at_a_socket_without_a_file
    on_nameless_socket do |name|
      text = message_of(Ringspun::TimeoutError) { Ringspun.connect_unix(name, tls: { host: "localhost" }, connect_timeout: 0) }
      assert_equal "connect_unix: no connection to @#{name[1..]} within 0 s", text
    end
  end

  def test_a_handshake_that_fails_at_a_socket_without_a_file
    on_nameless_socket do |name, listener|
      server = Thread.new do
        socket = listener.accept.first
        socket.readpartial(4096)
        socket.write("220 ready\r\n")
        socket.close
      end
      text = message_of(Ringspun::HandshakeError) { Ringspun.connect_unix(name, tls: { host: "localhost" }) }
      assert_match(/ \(connect_unix to @#{name[1..]}\)\z/, text)
      server.join
    end
  end

  # --- files ---

  def assert_wrong(text, &) = assert_match(text, assert_raises(Ringspun::UsageError, &).message)

  def test_certificates_that_cannot_be_read
    assert_wrong(%r{cert \(/nowhere/c\.pem\) is neither PEM .*: No such file or directory\z}) { serve(cert: "/nowhere/c.pem") }
    assert_wrong(%r{key \(/nowhere/k\.pem\) is neither PEM .*: No such file or directory\z}) { serve(key: "/nowhere/k.pem") }
    assert_wrong(%r{ca \(/nowhere/a\.pem\) is neither PEM .*: No such file}) { Ringspun::TLS.client_context(ca: "/nowhere/a.pem") }
    assert_wrong(%r{ca \(/\) is neither PEM .*: Is a directory\z}) { Ringspun::TLS.client_context(ca: "/") }
  end

  def test_files_that_hold_something_else
    Dir.mktmpdir do |folder|
      file = File.join(folder, "some.pem").tap { |path| File.write(path, "nothing of the kind") }
      empty = File.join(folder, "empty.pem").tap { |path| File.write(path, "") }
      [file, empty].each do |path|
        assert_wrong(/cert \(#{path}\) holds no certificate/) { serve(cert: path) }
        assert_wrong(/key \(#{path}\) holds no private key/) { serve(key: path) }
        assert_wrong(/ca \(#{path}\) holds no certificate/) { Ringspun::TLS.client_context(ca: [Certificate.certificate, path]) }
      end
    end
  end

  def test_a_key_that_belongs_to_another_certificate
    Dir.mktmpdir do |folder|
      cert = File.join(folder, "c.pem").tap { |path| File.write(path, Certificate.certificate.to_pem) }
      key = File.join(folder, "k.pem").tap { |path| File.write(path, OpenSSL::PKey::EC.generate("prime256v1").private_to_pem) }
      assert_wrong(/the key \(#{key}\) is not that of the certificate .* in cert \(#{cert}\)/) { serve(cert: cert, key: key) }
    end
  end

  # Somebody may have left out the frame of a key.
  def test_what_may_be_secret_is_not_said
    bare = Certificate.key.private_to_pem.lines[1..-2].join
    line = bare.delete("\n")
    [bare, line, Certificate.key.private_to_der, bare.tr("\n", " "), bare.gsub("\n", "\\n"), line.inspect, line.tr("+/", "-_"),
     "base64:#{line}", "data:application/pkcs8;base64,#{line}", "/#{line}", ["k" * 32].pack("m0")].each do |secret|
      text = assert_raises(Ringspun::UsageError) { serve(key: secret) }.message
      assert_match(/\Atls: key is neither PEM nor the path of a file that can be read\z/, text)
    end
  end

  def serve(**options)
    Ringspun::TLS.server_context(cert: Certificate.certificate, key: Certificate.key, **options)
  end

  # --- limits and calls that are refused ---

  def said_by(code)
    answer = child(code)
    assert_empty answer.err
    answer.out
  end

  def watch = "begin; Ringspun.watch('/'); rescue => error; puts error.class, error.message; end"

  def test_no_descriptor_for_a_watch_is_no_limit_of_inotify
    said = said_by(<<~RUBY)
      machine
      Process.setrlimit(:NOFILE, Dir.children("/proc/self/fd").map(&:to_i).max, 4096)
      files = []
      begin
        loop { files << File.open("/") }
      rescue Errno::EMFILE
        #{watch}
      end
    RUBY
    assert_equal "Errno::EMFILE\nToo many open files - watch: inotify_init1\n", said
  end

  def test_no_more_inotify_instances
    most = File.read("/proc/sys/fs/inotify/max_user_instances").to_i
    said = said_by("#{Seccomp.code(:inotify_init1, Errno::EMFILE)}; #{watch}")
    assert_equal "Ringspun::LimitError\nwatch: this user may not have more inotify instances; " \
                 "fs.inotify.max_user_instances is #{most}\n", said
  end

  def test_no_more_watches
    most = File.read("/proc/sys/fs/inotify/max_user_watches").to_i
    said = said_by("#{Seccomp.code(:inotify_add_watch, Errno::ENOSPC)}; #{watch}")
    assert_equal "Ringspun::LimitError\nwatch: the system has no room for one more watch (/). As a rule this user then has as " \
                 "many, in all processes, as fs.inotify.max_user_watches allows, which is #{most}\n", said
  end

  def test_no_number_for_a_descriptor_that_comes
    said = said_by(<<~RUBY)
      require "socket"
      one, other = UNIXSocket.pair
      2.times { machine.send_fd(one, 0) }
      most = Dir.children("/proc/self/fd").map(&:to_i).max + 1
      Process.setrlimit(:NOFILE, most, 4096)
      files = []
      begin
        loop { files << File.open("/") }
      rescue Errno::EMFILE
        begin
          machine.recv_fd(other)
        rescue Ringspun::LimitError => error
          puts error.message.sub(" \#{most}:", " what it is:")
        end
        files.pop.close
        puts machine.recv_fd(other).class
      end
    RUBY
    assert_equal "recv_fd: a descriptor came, but there was no number free for it; it is lost. RLIMIT_NOFILE is what it is: " \
                 "close some, or raise it (`ulimit -n`)\nInteger\n", said
  end

  def test_watches_that_are_refused_otherwise
    said = said_by("#{Seccomp.code(:inotify_init1, Errno::ENFILE)}; #{watch}")
    assert_equal "Errno::ENFILE\nToo many open files in system - watch: inotify_init1\n", said
    said = said_by("#{Seccomp.code(:inotify_add_watch, Errno::ENOMEM)}; #{watch}")
    assert_equal "Errno::ENOMEM\nCannot allocate memory - watch: /\n", said
    assert_equal "No such file or directory - watch: /nowhere", message_of(Errno::ENOENT) { Ringspun.watch("/nowhere") }
  end

  def test_a_call_without_which_there_is_no_machine
    { epoll_create1: "epoll_create1", eventfd2: "eventfd" }.each do |call, name|
      said = said_by(<<~RUBY)
        #{Seccomp.code(call, Errno::EPERM)}
        begin
          Ringspun::Machine.new(backend: :epoll)
        rescue Errno::EPERM => error
          puts error.message
        end
      RUBY
      assert_equal "Operation not permitted - no machine: #{name} was answered Operation not permitted\n", said
    end
  end

  def test_in_a_forked_child_as_well
    said = said_by(<<~RUBY)
      ENV["RINGSPUN_BACKEND"] = "epoll"
      machine
      fork do
        #{Seccomp.code(:epoll_create1, Errno::EPERM)}
        machine.yield
      rescue Errno::EPERM => error
        puts error.message
      end
      Process.wait
    RUBY
    assert_equal "Operation not permitted - no machine in the forked child: epoll_create1 was answered Operation not permitted\n",
                 said
  end

  def test_too_many_strands
    on_thread do
      Ringspun::Machine.new(strands_max: 1)
      assert_match(/at most 1 strands \(strands_max:\)/, assert_raises(Ringspun::LimitError) { machine.spin {} }.message)
    end
  end
end
