# frozen_string_literal: true

require "test_helper"
require "open3"
require "socket"
require "ringspun/postgres"
require "support/fences"
require "support/jobs"
require "support/servers"
require "tmpdir"

# pass: documents
# inputs: docs, *.md, {engine,runtime,jobs,postgres,http,mruby,bench}/*.md, engine, {runtime,postgres,http}/{ext,lib}, jobs/lib

# What the guides show is what happens. Every Ruby block of the READMEs and docs/ is a whole program, run here as such; each
# line that it prints stands in the block as a `# =>` comment, in the order in which it is printed, or all of them in a
# ```text block right below it. Those for mruby run with its other tests: see mruby/test/house/guide_test.rb.
class DocsTest < Minitest::Test
  include AnyBackend

  ROOT = File.expand_path("../../..", __dir__)
  README = File.join(ROOT, "README.md")
  GUIDES = Dir[File.join(ROOT, "docs/*.md")].sort.freeze
  PAGES = [README, *Dir[File.join(ROOT, "{runtime,jobs,postgres,http,mruby}/README.md")].sort, *GUIDES].freeze
  MEASUREMENTS = %w[docs/performance.md docs/seeds.md].map { |page| File.join(ROOT, page) }.freeze
  # Pages without programs of Ruby.
  OTHERS = "{CONTRIBUTING.md,docs/decisions/*.md,engine/README.md,runtime/test/random/README.md}"
  LINKED = [*PAGES, *Dir[File.join(ROOT, OTHERS)].sort].freeze
  LANGUAGES = ["ruby", Fences::MRUBY, "c", "text", "sh", "yaml"].freeze

  FENCES = PAGES.flat_map { |page| Fences.of(page) }.freeze

  # A program that reads DATABASE_URL has a database, and one that reads REDIS_URL an empty Redis. These, and those of jobs,
  # have the gems of the bundle.
  NEEDING = lambda do |word|
    FENCES.select { |fence| fence.language == "ruby" && fence.content.include?(word) }.map { |fence| "test_#{fence.name}" }.freeze
  end
  NEED_DATABASE = NEEDING["DATABASE_URL"]
  NEED_REDIS = NEEDING["REDIS_URL"]
  NEED_BUNDLE = [*NEED_DATABASE, *NEED_REDIS,
                 *%w[http jobs postgres].flat_map { |gem| NEEDING["require \"ringspun/#{gem}"] }].freeze

  # A program that takes addresses has three, of a server that answers nobody before all three have asked.
  NEED_ADDRESSES = NEEDING["ARGV.map"]

  # What many programs load, and each of them first: they are forked from a process that has it.
  BUNDLED = { "RUBYOPT" => "-rbundler/setup" }.freeze
  ZYGOTES = %w[http jobs postgres].map { |gem| "ringspun/#{gem}" }
                                  .to_h { |name| [[name], Zygote.new("require '#{name}'") { BUNDLED }] }.freeze

  # What a program is told that does not say where its jobs are to be kept.
  KEPT = %r{\Ajobs are kept in sqlite:/\S+/storage/jobs\.sqlite3, for nothing says where\n}

  # The guides say it once: `require "ringspun"` is understood.
  FENCES.select { |fence| fence.language == "ruby" }.each do |fence|
    define_method("test_#{fence.name}") do
      code = "Dir.chdir ARGV.shift; require 'ringspun'; #{fence.content}"
      from = ZYGOTES[fence.content.scan(/^require "(ringspun\/\S+)"/).flatten]
      answer = Dir.mktmpdir { |folder| ruby_child(code, folder, *addresses, env: environment, from:) }
      assert_equal [fence.expected, ""], [answer.out.lines(chomp: true), answer.err.sub(KEPT, "")], fence.name
      assert_predicate answer.status, :success?, fence.name
    end
  end

  # An extension, as far as a compiler can tell.
  FENCES.select { |fence| fence.language == "c" }.each do |fence|
    define_method("test_#{fence.name}") do
      folders = [Ringspun.include_dir, *RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir")]
      output, status = Open3.capture2e(RbConfig::CONFIG["CC"].split.first, "-fsyntax-only", "-Wall", "-Werror", "-x", "c",
                                       *folders.map { |folder| "-I#{folder}" }, "-", stdin_data: fence.content)
      assert_predicate status, :success?, output
    end
  end

  # The server starts before the descriptors are counted: its own is no test's.
  def before_setup
    Servers.postgres if NEED_DATABASE.include?(name)
    Servers.redis if NEED_REDIS.include?(name)
    super
  end

  # The programs run in processes of their own; a collection at every allocation of this one would find nothing.
  def setup
    GC.stress = false
    return unless NEED_REDIS.include?(name)

    UNIXSocket.open(redis_path) { |socket| socket.puts("FLUSHALL") || socket.gets }
  end

  def teardown
    @serving&.kill&.join
    @server&.close
    super
  end

  def test_every_fence_has_a_language_and_an_end
    PAGES.each { |page| assert_equal File.read(page).scan(/^```/).size, fences_on(page).size * 2, page }
    assert_empty(FENCES.reject { |fence| LANGUAGES.include?(fence.language) }.map(&:name))
  end

  def test_every_guide_has_programs
    (PAGES - MEASUREMENTS).each { |page| refute_empty fences_on(page).map(&:language) & ["ruby", Fences::MRUBY], page }
  end

  def test_links_lead_somewhere
    dead = LINKED.flat_map do |page|
      links = File.read(page).scan(/\[[^\]]+\]\(([^)\s]+)\)/).flatten.grep_v(/\Ahttps:/)
      links.reject { |link| leads_somewhere?(page, link) }.map { |link| "#{page}: #{link}" }
    end
    assert_empty dead
  end

  MAP = File.read(File.join(ROOT, "docs/07-internals.md")).freeze

  # Its walks and its table of places: a newcomer who looks there finds it.
  def test_the_map_names_functions_where_they_are
    rows = tables_of_places.flatten
    assert_operator rows.size, :>=, 50
    assert_empty rows.grep_v(PLACE), "not as `| what | [file](../file) | `function` |`"
    wrong = rows.flat_map do |row|
      place = row.match(PLACE)
      text = File.read(File.join(ROOT, place[:file]))
      place[:names].scan(/`([^`]+)`/).flatten.reject { |name| defines?(text, name) }.map { |name| "#{place[:file]}: #{name}" }
    end
    assert_empty wrong
  end

  # What newcomers have looked for: one row each.
  LOOK_UPS = { "answers TERM" => "worker_process.rb", "cache of statements" => "statement_cache.c",
               "objects of mruby" => "kept_alive.h", "INT and TERM cancel a run" => "run.rb", "Ctrl-C" => "raise.c",
               "the time comes from" => "machine.c", "cancelled accept" => "op_life.c", "rooms register" => "engine.c",
               "registers its part" => "part.c" }.freeze

  def test_the_map_leads_newcomers_to_one_file_each
    rows = tables_of_places.last
    found = LOOK_UPS.to_h do |words, _|
      [words, rows.grep(/\A\|[^|]*#{words}/).map { |row| File.basename(row.match(PLACE)[:file]) }]
    end
    assert_equal LOOK_UPS.transform_values { |file| [file] }, found
  end

  # Those of the binding, of its tests, and of the gem.
  def test_the_list_for_a_new_ruby_names_files_that_there_are
    rows = MAP[/^\| What Ringspun relies on .*?\n\n/m].lines.drop(2)
    folders = %w[ext/ringspun/binding test test/* .].map { |folder| File.join(ROOT, "runtime", folder) }
    names = rows.flat_map { |row| row.split("|").drop(2).join.scan(/`([\w\/]+(?:\.\w+|\/))`/).flatten }.uniq
    assert_operator names.size, :>=, 30
    assert_empty(names.reject { |name| folders.any? { |folder| Dir.glob(File.join(folder, name)).any? } })
  end

  def test_a_function_is_where_it_is_defined_and_not_where_it_is_called_or_declared
    ["static int64_t look(int a,\n    int b) {", "rs_op *look(void) {", "const rs_op_traits look[KINDS] = {", "  def look = 1",
     "def look", "def self.look(x)", "local function look(a)"].each { |text| assert defines?(text, "look"), text }
    ["    look(1);", "    return look(1);\n}", "int look(int a);", "extern int look[1];", "int overlook(void) {", "def looks",
     "    if (look(1)) {"].each { |text| refute defines?(text, "look"), text }
  end

  def test_the_readme_names_every_guide
    readme = File.read(README)
    assert_empty(GUIDES.map { |page| "docs/#{File.basename(page)}" }.reject { |page| readme.include?("(#{page})") })
  end

  # Whoever meets it for the first time reads to the end.
  def test_the_readme_is_short
    assert_operator File.foreach(README).count, :<=, 75
  end

  # What YARD knows of every public method, against the methods that there are: a comment that YARD does not find is as
  # good as none.
  def test_every_public_method_is_documented
    output, complaints, = Open3.capture3(RbConfig.ruby, "-rbundler/setup", "-ryard", "-e", <<~RUBY, chdir: ROOT)
      reference = YARD::CLI::Yardoc.new
      reference.use_cache = reference.save_yardoc = reference.generate = false
      log.io = $stderr
      reference.run("--no-progress", "--no-stats")
      YARD::Registry.all(:method, :class, :module).each do |each|
        next if each.docstring.blank? && !each.tag(:api)

        puts [each.path, ("complete" if each.type != :method || each.tag(:since) || each.tag(:api))].compact.join(" ")
      end
    RUBY
    documented = output.lines(chomp: true).map(&:split)
    assert_empty complaints
    assert_empty reference_needs - documented.map(&:first), "without documentation that YARD finds"
    assert_empty reference_needs - documented.select { |_, complete| complete }.map(&:first), "without a @since"
  end

  # A function of the binding that parks its strand does so by one of these, or by a function that does.
  PARKING = %w[rsb_wait rsb_wait_checked rsb_await rsb_perform rsb_yield rsb_end_turn rsb_run_first rsb_offload].freeze

  BINDING = Dir[File.join(ROOT, "runtime/ext/ringspun/binding/**/*.{c,h}")].sort.to_h { |file| [file, File.read(file)] }.freeze
  COMMENT = %r{(?<comment>/\*(?:(?!\*/).)*\*/\n)?}m
  FUNCTION = /^#{COMMENT}(?<type>\w[\w *]*?[ *])(?<name>\w+)\([^;{}]*\) \{(?<body>[^\n]*\}\n|\n.*?^\}\n)/m
  Function = Data.define(:file, :local, :name, :comment, :words)

  def test_methods_in_c_that_park_say_so_and_no_others
    refute_empty BINDING
    functions = functions_in_c
    named = BINDING.values.flat_map { |text| text.scan(/rb_define(?:_singleton)?_method\(\w+, "[^"]+", (\w+)/).flatten }
    assert_empty named - functions.map(&:name), "not found in the binding"
    parking = parking_among(functions)
    wrong = functions.select { |each| named.include?(each.name) }.reject do |each|
      parking.include?(each) == each.comment.match?(/may switch strands(?! if the block does)/i)
    end
    assert_empty(wrong.map { |each| "#{each.file}: #{each.name}" })
  end

  PLACE = %r{\A\|[^|]+\| \[[^\]]+\]\(\.\./(?<file>[^)]+)\) \| (?<names>`[^`]+`(?:, `[^`]+`)*) \|$}

  private

  # The rows of each.
  def tables_of_places = MAP.scan(/^\| [\w ]+ \| In \| By \|\n\|[- |]+\|\n((?:\|.*\n)+)/).map { |(rows)| rows.lines(chomp: true) }

  def defines?(text, name)
    name = Regexp.escape(name)
    text.match?(/\b(def (self\.)?|local function )#{name}(?![\w?!])/) ||
      text.match?(/^\w[\w *]*\b#{name}(\([^;{}]*\) |\[[^;{}]*\] = )\{/)
  end

  def addresses
    return [] unless NEED_ADDRESSES.include?(name)

    @server = TCPServer.new("127.0.0.1", 0)
    @serving = Thread.new do
      clients = Array.new(3) { @server.accept }
      clients.each do |client|
        client.gets
        client.write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\npage")
        client.close
      end
    end
    Array.new(3) { |number| "http://127.0.0.1:#{@server.addr[1]}/#{number}" }
  end

  def functions_in_c
    BINDING.flat_map do |file, text|
      text.to_enum(:scan, FUNCTION).map do
        Function.new(file:, local: file.end_with?(".c") && $~[:type].match?(/\bstatic\b/), name: $~[:name],
                     comment: $~[:comment].to_s, words: $~[:body].scan(/\w+/).uniq)
      end
    end
  end

  # With every function that names one that parks, to call it or to have it called, until there is no other.
  def parking_among(functions)
    found = functions.select { |each| PARKING.include?(each.name) }
    loop do
      more = (functions - found).select do |each|
        found.any? { |parking| (!parking.local || parking.file == each.file) && each.words.include?(parking.name) }
      end
      return found if more.empty?

      found += more
    end
  end

  def environment
    { **(NEED_DATABASE.include?(name) ? { "DATABASE_URL" => Servers.postgres_url } : {}),
      **(NEED_REDIS.include?(name) ? { "REDIS_URL" => "unix://#{redis_path}" } : {}),
      **(NEED_BUNDLE.include?(name) ? BUNDLED : {}) }
  end

  def redis_path = File.join(Servers.redis.folder, "redis.sock")

  def fences_on(page) = FENCES.select { |fence| fence.page == page }

  def leads_somewhere?(page, link)
    path, anchor = link.split("#", 2)
    target = path.empty? ? page : File.expand_path(path, File.dirname(page))
    return false unless File.exist?(target)

    anchor.nil? || File.read(target).scan(/^#+ (.*)$/).flatten.any? { |heading| anchor_of(heading) == anchor }
  end

  # As the usual hosts make them.
  def anchor_of(heading) = heading.downcase.gsub(/[^\w\- ]/, "").tr(" ", "-")

  def reference_needs = modules_in(Ringspun).flat_map { |each| [each.name, *methods_of(each)] }

  def modules_in(namespace)
    inner = namespace.constants.map { |name| namespace.const_get(name) }.grep(Module)
    [namespace, *inner.select { |each| each.name.start_with?("#{namespace.name}::") }.flat_map { |each| modules_in(each) }]
  end

  # Of an alias, YARD documents the method that it is another name for.
  def methods_of(each)
    own = each.public_instance_methods(false).select { |name| each.instance_method(name).original_name == name }
    own -= each.members.flat_map { |name| [name, :"#{name}="] } if each < Struct
    singleton = each < Struct || each < Data ? [] : each.singleton_methods(false)
    own.map { |name| "#{each.name}##{name}" } + singleton.map { |name| "#{each.name}.#{name}" }
  end
end
