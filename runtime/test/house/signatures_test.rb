# frozen_string_literal: true

require "test_helper"
require "rbs"
require "ringspun/postgres"
require "support/jobs"
require "support/servers"
require "support/share_of_the_day"
require "tmpdir"

# pass: documents

# The signatures under sig/ say what there is, no more and no less, and what they say is so. `rake test:rbs` checks that they
# make sense by themselves.
class SignaturesTest < Minitest::Test
  include AnyBackend
  include Servers::Postgres
  include Servers::Redis

  ROOT = File.expand_path("../../..", __dir__)
  SIGNATURES = Dir[File.join(ROOT, "{runtime,jobs,postgres}/sig/**/*.rbs")].sort.freeze

  # Inherited, and taking arguments here that they do not take there.
  SAID_AGAIN = { Ringspun::SizedQueue => %i[push enq] }.freeze

  # Of which no more can be looked at here than that it makes sense.
  UNSAID = [RBS::AST::Declarations::TypeAlias, RBS::AST::Declarations::Interface, RBS::AST::Declarations::ClassAlias].freeze

  # What the signatures say of one class or module. Methods map to the shapes of their overloads; nil: it is an alias.
  Said = Struct.new(:superclass, :instance, :singleton, :constants, :hidden) do
    def self.nothing = new(nil, {}, {}, [], [])
  end

  # How a method can be called: positional arguments it needs and at most takes (nil: any number), and its keywords.
  Shape = Data.define(:least, :most, :keywords) do
    def self.of_signature(function)
      least = function.required_positionals.size + function.trailing_positionals.size
      most = function.rest_positionals ? nil : least + function.optional_positionals.size
      new(least, most, (function.required_keywords.keys + function.optional_keywords.keys).sort)
    end

    # nil: a C function with a variable number of arguments, which tells nothing.
    def self.of_method(method)
      kinds = method.parameters.group_by(&:first).transform_values { |list| list.map(&:last) }
      return if kinds == { rest: [:rest] }

      least = kinds.fetch(:req, []).size
      most = kinds.key?(:rest) ? nil : least + kinds.fetch(:opt, []).size
      new(least, most, kinds.values_at(:key, :keyreq).compact.flatten.sort)
    end
  end

  def self.modules_in(namespace)
    inner = namespace.constants.map { |name| namespace.const_get(name) }.grep(Module)
    inner.select { |each| each.name.start_with?("#{namespace.name}::") }.flat_map { |each| [each, *modules_in(each)] }
  end

  MODULES = [Ringspun, *modules_in(Ringspun)].sort_by(&:name).freeze

  # Nothing here runs the extension in this process, and reading signatures takes ages under a collection at every allocation.
  def setup = GC.stress = false

  def test_every_module_has_a_signature_and_every_signature_a_module
    assert_equal MODULES.map(&:name), said.keys.sort
  end

  def test_superclasses
    MODULES.grep(Class).each do |each|
      assert_equal each.superclass.name, said.fetch(each.name).superclass || "Object", each.name
    end
  end

  def test_every_constant_has_a_signature_and_every_signature_a_constant
    MODULES.each do |each|
      values = each.constants(false).reject { |name| each.const_get(name).is_a?(Module) }
      assert_equal values.sort, said.fetch(each.name).constants.sort, each.name
    end
  end

  def test_every_method_has_a_signature_and_every_signature_a_method
    MODULES.each do |each|
      assert_equal instance_methods_of(each), said.fetch(each.name).instance.keys.sort - SAID_AGAIN.fetch(each, []),
                   "#{each.name}#..."
      assert_equal singleton_methods_of(each), said.fetch(each.name).singleton.keys.sort, "#{each.name}...."
    end
  end

  def test_private_methods_that_signatures_name
    hidden = MODULES.flat_map { |each| said.fetch(each.name).hidden.map { |name| [each, name] } }
    refute_empty hidden
    hidden.each { |each, name| assert each.private_method_defined?(name, false), "#{each.name}##{name}" }
  end

  def test_methods_take_the_arguments_that_their_signatures_name
    MODULES.each do |each|
      inherited_by(each).merge(said.fetch(each.name).instance) { |_, _, own| own }
                        .each { |name, shapes| check_shapes(each.instance_method(name), shapes) }
      next if each < Struct

      said.fetch(each.name).singleton.each { |name, shapes| check_shapes(each.method(name), shapes) }
    end
  end

  def test_an_alias_is_one
    MODULES.each do |each|
      aliases = each.public_instance_methods(false).reject { |name| each.instance_method(name).original_name == name }
      assert_equal aliases.sort, said.fetch(each.name).instance.select { |_, shapes| shapes.nil? }.keys.sort, each.name
    end
  end

  # Puts RBS between every program and Ringspun. RBS looks at a class when its body ends, so each gets one here. The jobs and the
  # client of Postgres are there already, for it takes time to load them.
  WATCH = <<~'RUBY'
    require "ringspun/jobs"
    require "ringspun/jobs/storage/sqlite"
    require "ringspun/postgres"
    require "rbs/test/setup"
    def within(space)
      inner = space.constants.map { |name| space.const_get(name) }.grep(Module)
      inner.select { |each| each.name.start_with?("#{space}::") }.flat_map { |each| [each, *within(each)] }
    end
    watched = Ringspun.constants.map { |name| Ringspun.const_get(name) }.grep(Class)
    watched += [Ringspun::Jobs, Ringspun::Postgres].flat_map { |each| [each, *within(each)] }
    eval watched.map { |each| "#{each.class.name.downcase} #{each}; end" }.join("\n")
  RUBY

  WATCHING = {
    "RUBYOPT" => "-rbundler/setup", "RBS_TEST_TARGET" => "Ringspun,Ringspun::*", "RBS_TEST_LOGLEVEL" => "error",
    "RBS_TEST_OPT" => "-I #{ROOT}/runtime/sig -I #{ROOT}/jobs/sig -I #{ROOT}/postgres/sig"
  }.freeze
  WATCHED = Zygote.new(WATCH) { WATCHING }

  # Each in a folder of its own, where it may leave what it has written.
  RUN = <<~'RUBY'
    require "tmpdir"
    folder, *paths = ARGV.slice!(0..)
    paths.each do |path|
      child = fork { $stdout.reopen(File::NULL) && Dir.chdir(Dir.mktmpdir(nil, folder)) && load(path) }
      puts path if Process.wait2(child).last.success?
    end
  RUBY

  # A pool says this on a machine that is busy with something else.
  SLOW = /took \d+\.\d s on a shared connection/

  # Each test has a limit, and there are many programs.
  PARTS = 8

  # By day a share of the programs, each day others, for other tests run all of them without RBS in between. All by night, and
  # where one of these has changed.
  SHARE = ShareOfTheDay.new(5, inputs: %w[README.md docs examples runtime/sig jobs/sig postgres/sig])

  PARTS.times do |part|
    define_method("test_the_guides_and_examples_pass_and_get_what_the_signatures_say_#{part + 1}_of_#{PARTS}") do
      Dir.mktmpdir do |folder|
        programs = SHARE.of(write_programs(folder)).select.with_index { |_, index| index % PARTS == part }
        UNIXSocket.open(redis_path) { |socket| socket.puts("FLUSHALL") || socket.gets }
        answer = ruby_child(RUN, folder, *programs, env: environment, timeout: 80, from: WATCHED)
        assert_equal [[], programs], [answer.err.lines.grep_v(SLOW), answer.out.lines(chomp: true)]
      end
    end
  end

  private

  def environment
    { **WATCHING, "DATABASE_URL" => Servers.postgres_url, "REDIS_URL" => "unix://#{redis_path}" }
  end

  # The blocks of the guides as files, and the examples.
  def write_programs(folder)
    blocks = Dir[File.join(ROOT, "{README,docs/*}.md")].sort.flat_map { |page| File.read(page).scan(/^```ruby\n(.*?)^```$/m) }
    refute_empty blocks
    # What RBS puts in between does not work in a ractor.
    blocks.flatten.grep_v(/Ractor\.new/).each_with_index do |code, index|
      File.write(File.join(folder, "#{index}.rb"), code)
    end
    Dir[File.join(folder, "*.rb"), File.join(ROOT, "examples/*.rb")].sort
  end

  # What overrides another of ours need not be said again.
  def instance_methods_of(each)
    own = each.public_instance_methods(false) + each.private_instance_methods(false).grep(:initialize)
    unsaid = own - said.fetch(each.name).instance.keys
    own.sort - inherited_by(each).keys.intersection(unsaid) - unsaid.select { |name| internal?(each.instance_method(name)) }
  end

  # `inspect` of a class of Struct or Data is no more than its name.
  def singleton_methods_of(each)
    own = each.singleton_methods(false).sort
    return own - [:inspect] if each < Struct || each < Data

    own - (own - said.fetch(each.name).singleton.keys).select { |name| internal?(each.method(name)) }
  end

  # What the signatures say of the classes above. How a class is made is its own affair.
  def inherited_by(each)
    above = each.is_a?(Class) ? MODULES.grep(Class).select { |other| each < other } : []
    above.map { |other| said.fetch(other.name).instance }.reduce({}, :merge).except(:initialize)
  end

  # Public for Ruby, and `@api private`: the comment above it says so.
  def internal?(method)
    path, line = method.source_location
    return false unless path&.start_with?(ROOT)

    @lines ||= Hash.new { |all, file| all[file] = File.readlines(file) }
    above = @lines[path].first(line - 1).reverse_each.take_while { |text| text.match?(/\A\s*#/) }
    above.any? { |text| text.include?("@api private") }
  end

  def check_shapes(method, shapes)
    # Another test may have loaded the bridge, which prepends modules without signatures to classes that have one.
    method = method.super_method if method.owner.name.to_s.start_with?("Ringspun::AsyncBridge::")
    shape = Shape.of_method(method) if shapes
    return pass unless shape

    # What takes any keywords checks their names itself.
    shapes = shapes.map { |each| each.with(keywords: each.keywords & shape.keywords) } if method.parameters.assoc(:keyrest)
    assert_includes shapes, shape, "#{method.owner}##{method.name}: it takes #{method.parameters}"
  end

  def said
    @said ||= Hash.new { |hash, name| hash[name] = Said.nothing }.tap do |said|
      SIGNATURES.each do |path|
        _buffer, _directives, declarations = RBS::Parser.parse_signature(RBS::Buffer.new(name: path, content: File.read(path)))
        # Of `require "concurrently"` see concurrently/signatures.rb.
        ours = declarations.grep(RBS::AST::Declarations::Module).select { |declaration| declaration.name.name == :Ringspun }
        ours.each { |declaration| read(declaration, said, "") }
      end
    end
  end

  def read(declaration, said, namespace)
    return if UNSAID.any? { |kind| declaration.is_a?(kind) }

    if declaration.is_a?(RBS::AST::Declarations::Constant)
      said[namespace.delete_suffix("::")].constants << declaration.name.name
      return
    end
    name = namespace + declaration.name.to_s
    here = said[name]
    here.superclass = declaration.super_class.name.to_s.then { |text| resolve(text, namespace) } if superclass?(declaration)
    declaration.each_decl { |inner| read(inner, said, "#{name}::") }
    declaration.each_member { |member| read_member(member, here) }
  end

  def superclass?(declaration) = declaration.is_a?(RBS::AST::Declarations::Class) && declaration.super_class

  # The signatures name classes as one would inside the namespace.
  def resolve(text, namespace)
    spaces = namespace.split("::").then { |names| names.size.downto(1).map { |size| names.first(size).join("::") } }
    space = spaces.find { |name| Object.const_get(name).const_defined?(text, false) }
    space ? "#{space}::#{text}" : text
  end

  def read_member(member, here)
    case member
    when RBS::AST::Members::MethodDefinition
      return here.hidden << member.name if member.visibility == :private

      shapes = member.overloads.map { |overload| Shape.of_signature(overload.method_type.type) }
      (member.singleton? ? here.singleton : here.instance)[member.name] = shapes
    when RBS::AST::Members::Include, RBS::AST::Members::Extend, RBS::AST::Members::Prepend
      nil # the methods are the module's
    when RBS::AST::Members::Alias
      here.instance[member.new_name] = nil
    when RBS::AST::Members::AttrReader
      here.instance[member.name] = [Shape.new(0, 0, [])]
    when RBS::AST::Members::AttrAccessor
      here.instance[member.name] = [Shape.new(0, 0, [])]
      here.instance[:"#{member.name}="] = [Shape.new(1, 1, [])]
    else
      flunk "this test does not know a #{member.class}"
    end
  end
end
