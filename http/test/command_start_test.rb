# frozen_string_literal: true

require "http_helper"
require "socket"
require "support/http_command"
require "ringspun/http/command"

# rubies: one
# inputs: http, runtime/lib

# How the executable begins and ends where something is not as it should be, and what signals and terminals do to it.
class HTTPCommandStartTest < Minitest::Test
  include AnyBackend

  RU = "run ->(env) { [200, { 'content-type' => 'text/plain' }, [env['REMOTE_ADDR']]] }\n"
  PLACE = ["-b", "tcp://127.0.0.1:0"].freeze

  def serve(*arguments, program: RU, files: {}, **, &)
    HTTPCommand.run(*arguments, files: { "config.ru" => program, **files }, **, &)
  end

  # In this process, for it ends by itself.
  def assert_ended(status, pattern, *arguments, program: RU)
    before = ENV.to_h
    errors = StringIO.new
    Dir.mktmpdir do |folder|
      Dir.chdir(folder) do
        File.write("config.ru", program)
        found = status_of(Ringspun::HTTP::Command.new(["--logger", "none", *arguments], errors:), errors)
        assert_match pattern, errors.string
        assert_equal [status], [found], errors.string
      end
    end
  ensure
    ENV.replace(before)
  end

  # As Ruby has it for what is raised.
  def status_of(command, errors)
    command.run
  rescue SystemExit => error
    error.status
  rescue SyntaxError, RuntimeError => error
    errors.puts(error.full_message(highlight: false))
    1
  end

  # --- what is served ---

  def test_programs_that_cannot_be_loaded
    assert_ended 1, /config\.ru:1: syntax error.*\(SyntaxError\)|config\.ru:1: .*SyntaxError/m, *PLACE, program: "run ->(env {\n"
    assert_ended 1, /config\.ru:2:in .*boom \(RuntimeError\)/, *PLACE, program: "\nraise 'boom'\n"
    assert_ended 64, /^ringspun-http: \S*config\.ru says no program: it needs a line such as: run MyApp$/, *PLACE, program: ""
    assert_ended 64, /^ringspun-http: \S*config\.ru:2: options in a comment, #\\, are not read any more/, *PLACE,
                 program: "# x\n#\\ -p 3000\n#{RU}"
    # It has served nothing, and a status of 0 alone would look as if it had been told to end.
    assert_ended 3, /^ringspun-http: \S*config\.ru has called exit while it was loaded, with status 3$/, *PLACE, program: "exit 3"
  end

  def test_no_environment
    serve(*PLACE, program: "run ->(_) { [200, {}, [ENV['RACK_ENV']]] }", env: { "RACK_ENV" => nil }) do |command|
      assert_equal "development", command.get("/")
    end
  end

  # --- where ---

  def test_places_that_cannot_be_had
    assert_ended 1, /^ringspun-http: getaddrinfo.*\(listen on name\.invalid:1\)$/, "-b", "tcp://name.invalid:1"
    # One of the addresses that stand for none: https://www.rfc-editor.org/rfc/rfc5737
    assert_ended 1, /^ringspun-http: Cannot assign requested address - .*192\.0\.2\.1:8080$/, "-b", "tcp://192.0.2.1:8080"
    assert_ended 64, /^ringspun-http: listen: .*too long/, "-b", "unix:///tmp/#{"x" * 120}"
    assert_ended 1, %r{^ringspun-http: No such file or directory - .*/nowhere/socket$}, "-b", "unix:///nowhere/socket"
    assert_ended 1, /^ringspun-http: Address already in use - .*config\.ru$/, "-b", "unix://config.ru" # no socket, and not ours
  end

  def test_all_addresses_of_both_kinds
    serve("-b", "tcp://[::]:0") do |command|
      port = command.await(/listen=\[::\]:(\d+)/)[1]
      assert_equal(["127.0.0.1", "::1"], ["127.0.0.1", "::1"].map { |host| Net::HTTP.get(host, "/", port) })
    end
  end

  def test_the_socket_of_one_that_was_killed
    Dir.mktmpdir do |folder|
      path = "#{folder}/socket"
      2.times do
        serve("-b", "unix://#{path}") do |command|
          command.await(/event=starting/)
          UNIXSocket.open(path) { |socket| assert_equal 8, socket.write("GET / HT") }
          command.signal(:KILL)
          command.wait
        end
        assert_path_exists path
      end
    end
  end

  # The number of its descriptor is free then.
  def test_a_closed_standard_input
    serve(*PLACE, code: "STDIN.close; load ARGV.shift") do |command|
      assert_equal "127.0.0.1", command.get("/")
      assert_equal 0, command.finish
    end
  end

  # --- how many ---

  def test_more_workers_than_can_be_had
    code = "Process.setrlimit(:NOFILE, 256); load ARGV.shift"
    serve(*PLACE, "-w", "1000", code:) do |command|
      assert_equal 64, command.wait
      assert_match(/^ringspun-http: workers: 1000 of them need about 2032 descriptors here, and this process may have 256: raise/,
                   command.text)
    end
  end

  # --- the log ---

  def test_logs_that_cannot_be_written
    assert_ended 64, %r{^ringspun-http: the access log /nowhere/log cannot be opened: No such file}, *PLACE, "--access-log-to",
                 "/nowhere/log"
    serve(*PLACE, "--access-log-to", "/dev/full") do |command| # a disk without room
      3.times { assert_equal "127.0.0.1", command.get("/") }
      assert_equal 0, command.finish
      assert_equal 1, command.text.scan("ringspun: the access log /dev/full cannot be written: No space left on device").size
    end
  end

  # --- signals ---

  STUCK = "run ->(_env) { $stderr.write(%(inside\\n)) && Ringspun::Machine.current.park }"

  def test_what_cannot_end_is_cut_by_the_second_signal
    serve(*PLACE, program: STUCK) do |command|
      TCPSocket.open("127.0.0.1", command.port) do |socket|
        socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        command.await(/^inside$/)
        command.signal(:INT)
        nil until command.refuses?
        command.signal(:INT)
        assert_equal 1, command.wait
        assert_match(/^ringspun-http: not a clean end: a second signal has cut what was left$/, command.text)
        assert_match(/event=drained .*connections_cut=[1-9].*event=ended clean=false$/m, command.text) # and those that asked
      end
    end
  end

  # A program may take long to load; what it waits for is not waited for.
  LOADING = "$stderr.write(%(loading\\n)); sleep\n"

  def test_told_to_end_while_the_program_is_loaded
    %i[TERM INT].each do |signal|
      serve(*PLACE, "-w", "1", "--preload", program: LOADING) do |command| # before it has signals of its own
        command.await(/^loading$/)
        command.signal(signal)
        assert_nil command.wait
        assert_equal Signal.list.fetch(signal.to_s), command.termsig
        refute_match(/Interrupt|config\.ru:1/, command.text)
      end
    end
    serve(*PLACE, program: "$stderr.write(%(loading\\n)); $stdin.read; #{RU}") do |command| # it ends when it is loaded
      command.await(/^loading$/)
      command.signal(:TERM)
      assert_equal 0, command.wait
    end
  end

  def test_signals_of_others
    serve(*PLACE, code: 'trap("HUP", "DEFAULT"); load ARGV.shift') do |command| # nohup may have started the tests
      command.port
      command.signal(:USR2)
      command.await(/^ringspun-http: USR2 restarts nothing: HUP replaces workers/)
      assert_equal "127.0.0.1", command.get("/")
      command.signal(:HUP) # without workers
      assert_equal 0, command.wait
    end
    serve(*PLACE, code: 'trap("HUP", "IGNORE"); load ARGV.shift') do |command| # as nohup does
      command.port
      command.signal(:HUP)
      assert_equal "127.0.0.1", command.get("/")
      assert_equal 0, command.finish
    end
  end

  # --- terminals ---

  # It has a process group of its own, for a test that fails.
  def end_of(session)
    Process.kill(:KILL, -session)
  rescue Errno::ESRCH
    nil
  end

  # A HUP that somebody sends is another thing, see command_test.rb.
  def test_a_terminal_that_is_closed
    [0, 1].each do |workers|
      HTTPCommand.run(*PLACE, "-w", workers.to_s, files: { "config.ru" => RU }, code: <<~'RUBY') do |command|
        require "pty"
        trap("HUP", "DEFAULT") # nohup may have started the tests
        PTY.open do |master, slave|
          trap("USR2") { master.close } # before the child says anything; the executable has a handler of its own
          child = fork do
            $stderr.write("session #{Process.setsid}\n")
            File.open(slave.path, File::RDWR).close # takes it as its terminal
            [master, slave].each(&:close)
            load ARGV.shift
          end
          $stdin.close
          slave.close
          Process.wait(child)
          exit $?.exitstatus || 99
        end
      RUBY
        session = Integer(command.await(/^session (\d+)$/)[1])
        workers.zero? ? command.port : command.await(/event=ready/)
        command.signal(:USR2)
        assert_equal 0, command.wait
        refute_match(/event=reload/, command.text)
      ensure
        end_of(session) if session
      end
    end
  end
end
