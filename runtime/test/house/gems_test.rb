# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "rubygems/package"
require "tmpdir"

# pass: gems
# inputs: {runtime,jobs,postgres,http}/*.{gemspec,rb}, *.md, Gemfile, rakelib/gems.rake, */lib, engine, */ext

# The gems as users get them: built, installed without a registry, and from a Gemfile as README.md says it.
class GemsTest < Minitest::Test
  include AnyBackend

  ROOT = File.expand_path("../../..", __dir__)
  GEMS = { "runtime" => "ringspun", "jobs" => "ringspun-jobs", "postgres" => "ringspun-postgres",
           "http" => "ringspun-http" }.freeze
  COPIED = %w[LICENSE README.md CHANGELOG.md rakelib/gems.rake engine runtime jobs postgres http].freeze

  PROGRAM = <<~RUBY
    require "ringspun"
    Ringspun.run { |machine| puts machine.await(machine.spin { sleep(0.001) && "ran" }) }
    puts $LOADED_FEATURES.grep(/native\\.so/)
  RUBY

  # Without optimisation a build takes less than half the time; that of the clone has it.
  MAKE = "make -j2 'CFLAGS=-std=gnu11 -g -O0 -fPIC'"

  # What belongs to this process's bundle must not decide what another's finds.
  CLEAN = %w[BUNDLE_GEMFILE BUNDLE_PATH BUNDLE_LOCKFILE BUNDLER_SETUP BUNDLER_VERSION GEM_PATH RUBYLIB RUBYOPT MAKEFLAGS]
          .to_h { |name| [name, nil] }.freeze

  # A copy, because RubyGems puts what it builds beside the sources. The clone may have built objects.
  def setup
    @folder = File.realpath(Dir.mktmpdir)
    @clone = File.join(@folder, "ringspun")
    Dir.chdir(ROOT) { Dir["{#{COPIED.join(",")}}/**/*", *COPIED] }.each { |path| copy(path) }
    # For ccache the folder, another one each time, is none of the paths of sources and headers.
    @environment = { **CLEAN, "HOME" => @folder, "GEM_HOME" => File.join(@folder, "home"), "MAKE" => MAKE }
    @environment["CCACHE_BASEDIR"] = @folder
  end

  def teardown
    FileUtils.remove_entry(@folder)
    super
  end

  def test_the_gems_have_what_belongs_to_them_and_nothing_else
    GEMS.each do |room, name|
      files = Gem::Package.new(built(room, name)).contents
      assert_empty %w[LICENSE README.md] - files, name
      assert_empty(files.grep(%r{\Atest/|\.(o|so|gem|log)\z|Makefile}), name)
      assert_equal File.read(File.join(ROOT, "LICENSE")), File.read(File.join(ROOT, room, "LICENSE"))
    end
  end

  # All from one Rakefile, with the one list of changes. Its copies beside the sources are gone afterwards.
  def test_one_task_builds_all_gems_with_their_changes
    rake = 'Rake.application.run(["--silent", "--rakefile", "rakelib/gems.rake", "build"])'
    with_gems_of_this_process { run_or_fail(RbConfig.ruby, "-rrake", "-e", rake, chdir: @clone) }
    GEMS.each do |room, name|
      package = Gem::Package.new(Dir[File.join(@clone, room, "pkg/#{name}-*.gem")].first)
      assert_includes package.contents, "CHANGELOG.md", name
      package.extract_files(File.join(@folder, room))
      assert_equal File.read(File.join(ROOT, "CHANGELOG.md")), File.read(File.join(@folder, room, "CHANGELOG.md"))
      refute_path_exists File.join(@clone, room, "CHANGELOG.md")
    end
  end

  def test_each_gem_says_where_its_pages_are
    GEMS.each do |room, name|
      specification = Gem::Package.new(built(room, name)).spec
      pages = specification.metadata
      version = Regexp.escape(specification.version.to_s)
      %w[homepage_uri source_code_uri changelog_uri documentation_uri bug_tracker_uri].each do |page|
        assert_match(%r{\Ahttps://\S+\z}, pages[page], "#{name} #{page}")
      end
      assert_match(/v#{version}\b/, pages["source_code_uri"])
      assert_match(%r{v#{version}/CHANGELOG.md\z}, pages["changelog_uri"])
      assert_match(%r{/#{name}/#{version}\z}, pages["documentation_uri"])
      assert_equal pages["homepage_uri"], specification.homepage
    end
  end

  def test_the_mrbgem_has_the_same_licence
    assert_equal(*%w[LICENSE mruby/LICENSE].map { |path| File.read(File.join(ROOT, path)) })
  end

  # The second extension is built on the header of the first. The other gems that it needs are those of this process.
  def test_installed_gems_run_and_carry_no_objects
    @environment["GEM_PATH"] = [@environment["GEM_HOME"], *Gem.path].join(":")
    %w[runtime postgres jobs].each { |room| rubygems("install", "--local", "--no-document", built(room, GEMS.fetch(room))) }
    ran, *libraries = run_or_fail(RbConfig.ruby, "-rringspun/postgres", "-e", PROGRAM).lines(chomp: true)
    assert_equal ["ran", %w[native.so postgres_native.so]], [ran, libraries.map { |path| File.basename(path) }]
    assert(libraries.all? { |path| path.start_with?(@environment["GEM_HOME"]) }, libraries.join(" "))

    installed = Dir[File.join(@environment["GEM_HOME"], "**/*")].grep(/\.s?o\z/)
    assert_empty installed.grep(/\.o\z|#{Regexp.escape("/ext/")}/)
    installed.each { |path| refute_includes File.binread(path), ".debug_info", path }
    assert_equal "a job\n", run_one_job
  end

  JOB = <<~RUBY
    require "ringspun/jobs"

    class Hello
      include Ringspun::Jobs::Job

      def perform
        File.write("ran", "a job\\n")
        Process.kill(:TERM, Process.pid)
      end
    end
  RUBY

  # With no server and no settings, in two processes one after the other: the second ends by its job.
  def run_one_job
    File.write(File.join(@folder, "app.rb"), JOB)
    run_or_fail(RbConfig.ruby, "-r./app.rb", "-e", "Hello.perform_async", chdir: @folder)
    run_or_fail(RbConfig.ruby, File.join(@environment["GEM_HOME"], "bin/ringspun-jobs"), "-r", "./app.rb", chdir: @folder)
    File.read(File.join(@folder, "ran"))
  end

  # Bundler makes a clone of its own and builds that.
  def test_the_gemfile_of_the_readme_by_git
    skip "no git" unless ENV["PATH"].split(":").any? { |folder| File.executable?(File.join(folder, "git")) }

    run_or_fail("git", "init", "--quiet", ".", chdir: @clone)
    run_or_fail("git", "add", "--all", chdir: @clone)
    run_or_fail("git", *%w[-c user.name=Test -c user.email=test@example.org commit --quiet --message=All], chdir: @clone)
    in_program(gemfile_line("git:")) do
      bundle("install")
      ran, library = bundle("exec", RbConfig.ruby, "-e", PROGRAM).lines(chomp: true)
      assert_equal "ran", ran
      assert_match(%r{/bundler/gems/ringspun-\h+/runtime/lib/ringspun/native\.so\z}, library)
    end
    # "The same for ringspun-jobs", whose own gems are those of this process.
    @environment["GEM_PATH"] = Gem.path.join(":")
    in_program(gemfile_line("git:").sub('"ringspun"', '"ringspun-jobs"')) do
      bundle("install", "--prefer-local")
      assert_equal "ran\n", bundle("exec", RbConfig.ruby, "-e", "require 'ringspun/jobs'\n#{PROGRAM}").lines.first
    end
  end

  # Those of a clone in which bin/setup has been. The gems that the jobs need are those of this process.
  def test_the_gemfile_of_the_readme_by_path
    folder = "runtime/lib/ringspun/#{RUBY_VERSION[/\d+\.\d+/]}"
    FileUtils.mkdir_p(File.join(@clone, folder))
    FileUtils.ln_s(File.join(ROOT, folder, "native.so"), File.join(@clone, folder))
    @environment["GEM_PATH"] = Gem.path.join(":")
    line = gemfile_line("path:")
    [line, line.sub('"ringspun"', '"ringspun-jobs"')].each_with_index do |each, index|
      in_program(each) do
        bundle("install", "--local")
        code = index.zero? ? PROGRAM : "require 'ringspun/jobs'\n#{PROGRAM}"
        assert_equal "ran\n", bundle("exec", RbConfig.ruby, "-e", code).lines.first
      end
    end
  end

  private

  def copy(path)
    from = File.join(ROOT, path)
    return if path.match?(%r{\A\w+/test/|\A\w+/build/|\.s?o\z}) || !(File.file?(from) || File.symlink?(from))

    to = File.join(@clone, path)
    FileUtils.mkdir_p(File.dirname(to))
    FileUtils.copy_entry(from, to)
  end

  def built(room, name)
    path = File.join(@folder, "#{name}.gem")
    rubygems("build", "#{name}.gemspec", "--output", path, chdir: File.join(@clone, room))
    path
  end

  def gemfile_line(word)
    lines = File.read(File.join(ROOT, "README.md")).scan(/^gem "ringspun".*$/).select { |line| line.include?(word) }
    assert_equal 1, lines.size, word
    lines.first
  end

  def with_gems_of_this_process
    kept = @environment
    @environment = { **kept, "GEM_PATH" => Gem.path.join(":") }
    yield
  ensure
    @environment = kept
  end

  # Beside the clone, as the README has it.
  def in_program(line, &)
    program = File.join(@folder, "program")
    FileUtils.rm_rf(program)
    FileUtils.mkdir_p(program)
    File.write(File.join(program, "Gemfile"), line)
    Dir.chdir(program, &)
  end

  # Not by commands on PATH, which may be another Ruby's.
  def rubygems(*, **) = run_or_fail(RbConfig.ruby, "-rrubygems/gem_runner", "-e", "Gem::GemRunner.new.run(ARGV)", "--", *, **)
  def bundle(*) = run_or_fail(RbConfig.ruby, "-e", 'gem "bundler"; load Gem.bin_path("bundler", "bundle")', "--", *)

  def run_or_fail(*command, **)
    output, error, status = Open3.capture3(@environment, *command, **)
    assert_predicate status, :success?, "#{command.join(" ")}\n#{output}#{error}"
    output
  end
end
