# frozen_string_literal: true

require "jobs_helper"
require "support/command"
require "support/program"
require "tmpdir"

# A program without any setting, and a worker in the same folder.
class WithoutSettingsTest < Minitest::Test
  include AnyBackend

  APP = <<~'RUBY'
    require "ringspun/jobs"

    class Hello
      include Ringspun::Jobs::Job

      def perform(name) = File.write("said", "hello, #{name}\n", mode: "a")
    end

    if $PROGRAM_NAME == __FILE__
      Hello.perform_async("Ada")
      Ringspun.run { Hello.perform_async("Bob") }
      Ringspun::Jobs.close
      Hello.perform_async("Cy")
    end
  RUBY

  UNSET = { "RUBYOPT" => nil, **%w[REDIS_URL RINGSPUN_JOBS_DIR APP_ENV RAILS_ENV RACK_ENV].to_h { |name| [name, nil] } }.freeze

  def setup
    super
    @folder = File.realpath(Dir.mktmpdir("ringspun-without-"))
    File.write(path("app.rb"), APP)
    @opened = []
  end

  def teardown
    @opened.each(&:close)
    FileUtils.rm_rf(@folder)
    super
  end

  def path(name) = File.join(@folder, name)

  def file = path("storage/jobs.sqlite3")

  def run_app(*words, chdir: @folder, env: {})
    IO.popen([UNSET.merge(env), RbConfig.ruby, "-w", *Program::LOAD_PATH, *words, { chdir:, err: %i[child out] }], &:read)
  end

  def command(*words, env: {}, chdir: @folder)
    Command.new(*words, env: UNSET.merge(env), chdir:).tap { |one| @opened << one }
  end

  def printed(*words, **) = command(*words, **).tap(&:wait).lines.join

  def test_a_worker_in_the_same_folder_runs_what_the_program_has_enqueued
    said = "jobs are kept in sqlite:#{file}, for nothing says where"
    assert_equal "#{said}\n", run_app("app.rb"), "said once"
    assert_match(/^enqueued 3|, enqueued 3, .*\nin sqlite:#{Regexp.escape(file)}\n\z/, printed("status"))
    worker = command("-r", "./app.rb")
    worker.await(/INFO pid=\d+ #{Regexp.escape(said)}$/)
    worker.await(/storage=sqlite:#{Regexp.escape(file)} queues=default concurrency=1000 the worker is ready$/)
    3.times { worker.await(/class=Hello queue=default elapsed=\S+ done$/) }
    assert_predicate worker.finish, :success?
    assert_equal ["hello, Ada\n", "hello, Bob\n", "hello, Cy\n"], File.readlines(path("said")).sort
    assert_equal 0o600, File.stat(file).mode & 0o777
  end

  # From wherever they are started, and whatever the program's own folder is.
  def test_the_file_is_that_of_the_program_wherever_processes_start
    FileUtils.mkdir_p([path("bin"), path("elsewhere")])
    FileUtils.mv(path("app.rb"), path("bin/app.rb"))
    run_app("../bin/app.rb", chdir: path("elsewhere"))
    worker = command("-r", path("bin/app.rb"), chdir: path("elsewhere"))
    worker.await(/storage=sqlite:#{Regexp.escape(file)} /)
    3.times { worker.await(/class=Hello .* done$/) }
    worker.finish
    assert_equal ["said"], Dir.children(path("elsewhere"))
  end

  def test_the_paths_of_the_configuration_file_and_of_the_command_line
    FileUtils.mkdir_p([path("config"), path("elsewhere"), path("db")])
    File.write(path("config/ringspun-jobs.yml"), "storage: sqlite:db/jobs\nrequire: #{path("app.rb")}\n")
    FileUtils.cp(path("config/ringspun-jobs.yml"), path("db/jobs.yml"))
    assert_match(/^in sqlite:#{path("db/jobs")}$/, printed("status"))
    elsewhere = { chdir: path("elsewhere") }
    assert_match(/^in sqlite:#{path("db/jobs")}$/, printed("status", "-C", "../config/ringspun-jobs.yml", **elsewhere))
    assert_match(%r{there is no folder #{path("db")}/db for }, printed("status", "-C", "db/jobs.yml"))
    here = printed("status", "-r", path("app.rb"), "--storage", "sqlite:a", **elsewhere)
    assert_match(/^in sqlite:#{path("elsewhere/a")}$/, here)
  end

  def test_a_worker_in_production_shows_the_lines_to_write
    # At whose usual address nobody answers.
    File.write(path("app.rb"), <<~RUBY)
      #{APP}
      RedisClient::Config.__send__(:remove_const, :DEFAULT_PORT)
      RedisClient::Config::DEFAULT_PORT = 1
    RUBY
    worker = command("-r", "./app.rb", "-e", "production")
    assert_equal 64, worker.wait.exitstatus
    assert_equal 1, worker.lines.size, worker.lines.join
    assert_match(/\Aringspun-jobs: nothing says where jobs are kept, and the environment is production; so it would be redis:/,
                 worker.lines.first)
    assert_match(%r{Write storage: sqlite:storage/jobs.sqlite3 .*REDIS_URL=redis://HOST:6379/0}, worker.lines.first)
    refute_path_exists path("storage")
  end

  def test_without_the_gem_the_line_for_the_gemfile_is_shown
    File.write(path("without.rb"), <<~'RUBY')
      module Kernel
        alias real_require require
        def require(name) = name == "extralite" ? raise(LoadError, "cannot load such file -- extralite") : real_require(name)
        private :require
      end
      load "./app.rb"
      begin
        Hello.perform_async("Ada")
      rescue Ringspun::Jobs::ConfigError => error
        puts error.message
      end
    RUBY
    line = File.read(File.join(Program::ROOT, "jobs/ringspun-jobs.gemspec"))[/add_dependency ("extralite-bundle", "[^"]+")/, 1]
    text = run_app("without.rb")
    assert_includes text, "write gem #{line} into the Gemfile (cannot load such file -- extralite). Nothing says where"
    assert_includes text, "redis: redis://HOST:6379/0"
  end
end
