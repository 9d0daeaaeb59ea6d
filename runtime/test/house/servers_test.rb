# frozen_string_literal: true

require "test_helper"
require "support/servers"

# inputs: runtime/test/support/servers.rb

# The tests' own servers: none outlives the process that has started it, however that ends.
class ServersTest < Minitest::Test
  include AnyBackend

  START = <<~'RUBY'
    require "minitest"
    require "support/servers"
    include Servers::Redis
    UNIXSocket.open(redis_path) { |socket| socket.write("PING\r\n") && puts(socket.gets) }
    puts Servers.redis.folder
    $stdout.flush
  RUBY

  ENDINGS = { "exit!(true)" => true, "Process.kill(:KILL, Process.pid)" => nil, "Servers.stop && exit!(true)" => true }.freeze

  ENDINGS.each do |ending, success|
    define_method("test_a_server_and_its_folder_are_gone_after_#{ending}") do
      answer = ruby_child("#{START}\n#{ending}", env: { "RUBYOPT" => "-rbundler/setup" })
      assert_equal ["", success], [answer.err, answer.status.success?]
      pong, folder = answer.out.lines(chomp: true)
      assert_equal ["+PONG", false], [pong, File.exist?(folder)]
    end
  end

  STATEMENTS = <<~'RUBY'
    require "minitest"
    require "pg"
    require "support/servers"
    connection = PG.connect(Servers.postgres_url)
    puts Servers.postgres_endpoint.folder, Servers.postgres.folder, connection.server_version / 10_000
    connection.prepare("one", "select 1")
    puts Array.new(3) { connection.exec_prepared("one").getvalue(0, 0) rescue $!.result.error_field(PG::PG_DIAG_SQLSTATE) }.uniq
    $stdout.flush
    Process.kill(:KILL, Process.pid)
  RUBY

  # Those of them that are here: bin/setup --matrix brings all that the system has.
  Servers::POSTGRES_VARIANTS.each_key.select { |name| Servers.postgres_here?(name) }.each do |name|
    define_method("test_what_is_asked_for_by_#{name}") do
      answer = ruby_child(STATEMENTS, env: { "RUBYOPT" => "-rbundler/setup", "RINGSPUN_POSTGRES" => name })
      endpoint, server, version, *found = answer.out.lines(chomp: true)
      assert_equal ["", [name == "pgbouncer" ? "26000" : "1"]], [answer.err, found]
      assert_empty([endpoint, server].select { |path| File.exist?(path) })
      assert_equal name, endpoint == server ? version : endpoint[/pgbouncer(-100)?(?=-)/]
    end
  end

  def test_a_postgres_that_nobody_knows_is_told_with_those_that_there_are
    code = "require 'minitest'\nrequire 'support/servers'\nServers.postgres_url"
    answer = ruby_child(code, env: { "RINGSPUN_POSTGRES" => "16" })
    assert_match(/RINGSPUN_POSTGRES=16 is none of 15, 17, pgbouncer, pgbouncer-100/, answer.err)
  end

  # See bin/support/unpacked.sh.
  def test_servers_that_were_unpacked_beside_the_system_are_found
    Dir.mktmpdir do |folder|
      FileUtils.mkdir_p(%w[clone/runtime/test clone/bin clone/tmp/setup tree/usr/sbin tree/usr/lib/postgresql/99/bin]
                          .map { |name| File.join(folder, name) })
      FileUtils.cp_r(__dir__.sub(%r{house\z}, "support"), File.join(folder, "clone/runtime/test"))
      FileUtils.cp_r(File.expand_path("../../../bin/support", __dir__), File.join(folder, "clone/bin"))
      File.symlink(File.join(folder, "tree"), File.join(folder, "clone/tmp/setup/servers"))
      programs = { "usr/sbin/pgbouncer" => "PgBouncer 99", "usr/lib/postgresql/99/bin/postgres" => "postgres (PostgreSQL) 99.1" }
      programs.each { |name, says| File.write(File.join(folder, "tree", name), "#!/bin/sh\necho '#{says}'\n", perm: 0o755) }
      answer = ruby_child(<<~RUBY, fresh: true, env: { "PATH" => "/usr/bin:/bin" }) # for another file of that name
        require "minitest"
        require #{File.join(folder, "clone/runtime/test/support/servers").inspect}
        puts Servers.program("pgbouncer"), Servers.postgres_program("postgres", "99"), Servers.postgres_here?("pgbouncer")
      RUBY
      postgres = File.join(File.realpath(folder), "tree/usr/lib/postgresql/99/bin/postgres")
      assert_equal [postgres, "true"], answer.out.lines(chomp: true).drop(1), answer.err
    end
  end

  def test_a_redis_or_a_valkey_beside_it
    Dir.mktmpdir do |folder|
      %w[redis-server valkey-server redis-cli].each { |name| File.write(File.join(folder, name), "", perm: 0o755) }
      answers = [nil, "redis", "valkey", "keydb"].map do |name|
        ruby_child(<<~'RUBY', env: { "PATH" => "#{folder}:/bin", "RINGSPUN_REDIS" => name })
          require "minitest"
          require "support/servers"
          puts Servers.program("redis-server"), %w[redis valkey none].map { |name| Servers.redis_here?(name) }.inspect
        RUBY
      end
      redis, valkey = %w[redis valkey].map { |name| "#{folder}/#{name}-server\n[true, true, false]\n" }
      assert_equal [redis, redis, valkey, ""], answers.map(&:out), answers.map(&:err)
      assert_match(/RINGSPUN_REDIS=keydb is none of redis, valkey/, answers.last.err)
    end
  end

  # A name that nobody knows would be a pass that nobody runs.
  def test_test_files_name_servers_that_there_are
    { "postgres" => ["all", *Servers::POSTGRES_VARIANTS.keys], "jobs" => %w[valkey] }.each do |gem, names|
      texts = Dir[File.join(__dir__, "../../../#{gem}/test/**/*_test.rb")].map { |path| File.read(path) }
      named = texts.flat_map { |text| text.scan(/^# servers: (.+)$/) }.flatten.flat_map { |list| list.split(", ") }
      refute_empty named
      assert_empty named - names
    end
  end

  def test_a_version_that_is_not_here_leaves_no_folder
    before = Dir[File.join(Dir.tmpdir, "ringspun-postgres-9-*")]
    assert_match(/initdb 9 is missing/, assert_raises(RuntimeError) { Servers.postgres(version: "9") }.message)
    assert_equal before, Dir[File.join(Dir.tmpdir, "ringspun-postgres-9-*")]
  end
end
