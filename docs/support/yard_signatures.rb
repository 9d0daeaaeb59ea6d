# frozen_string_literal: true

require "rbs"

# Loaded by .yardopts. Tells YARD what it cannot read from C: the names of arguments behind an `argv`, and what a class is
# that no comment stands above; and of classes and methods that Ruby makes from a table, that they are there. All of it is in
# the signatures, whose truth signatures_test.rb checks.
module YardSignatures
  PATHS = Dir[File.expand_path("../../{runtime,jobs,postgres}/sig/**/*.rbs", __dir__)].sort.freeze

  # "Ringspun::Machine#read" => [["io", nil], ["buffer", nil], ["length", "nil"], ...], as YARD wants parameters.
  PARAMETERS = {}

  # "Ringspun::Mutex" => the comment above it.
  COMMENTS = {}

  # "Ringspun::Postgres::UniqueViolation" => "Ringspun::Postgres::IntegrityConstraintViolation"
  SUPERCLASSES = {}

  # "Ringspun::Postgres::ServerError" => { hint: the comment above it }
  METHODS = Hash.new { |all, path| all[path] = {} }

  # The first overload; a method with several has an @overload for each in its own documentation.
  def self.parameters_of(function)
    least = function.required_positionals.map { |param| [param.name.to_s, nil] }
    more = function.optional_positionals.map { |param| [param.name.to_s, default_of(param)] }
    rest = function.rest_positionals ? [["*#{function.rest_positionals.name}", nil]] : []
    keywords = function.required_keywords.keys.map { |name| ["#{name}:", nil] } +
               function.optional_keywords.map { |name, param| ["#{name}:", default_of(param)] }
    least + more + rest + keywords
  end

  # A signature says whether nil will do, and not what else stands there.
  def self.default_of(param) = param.type.is_a?(RBS::Types::Optional) ? "nil" : "..."

  def self.read(declaration, namespace = "")
    return unless declaration.respond_to?(:name)

    path = namespace + declaration.name.to_s
    COMMENTS[path] ||= declaration.comment.string if declaration.comment
    superclass = declaration.super_class if declaration.is_a?(RBS::AST::Declarations::Class)
    SUPERCLASSES[path] = "#{namespace}#{superclass.name}" if superclass
    return unless declaration.respond_to?(:each_member)

    declaration.each_decl { |inner| read(inner, "#{path}::") }
    declaration.each_member { |member| read_member(member, path) }
  end

  INSTANCE = [RBS::AST::Members::AttrReader, RBS::AST::Members::MethodDefinition].freeze

  def self.read_member(member, path)
    METHODS[path][member.name] = member.comment.string if INSTANCE.include?(member.class) && member.comment
    return unless member.is_a?(RBS::AST::Members::MethodDefinition)

    PARAMETERS["#{path}#{member.singleton? ? "." : "#"}#{member.name}"] =
      parameters_of(member.overloads.first.method_type.type)
  end

  PATHS.each do |path|
    RBS::Parser.parse_signature(RBS::Buffer.new(name: path, content: File.read(path))).last.each { |each| read(each) }
  end

  # Prepended to what all of YARD's handlers of C share.
  module Handler
    private

    def record_parameters(object, symbol, source)
      super
      object.parameters = PARAMETERS.fetch(object.path, object.parameters) unless object.docstring.has_tag?(:overload)
    end

    # A class that another file of the binding makes, whichever is read first.
    def namespace_for_variable(variable)
      return YARD::CodeObjects::Proxy.new(:root, "Ringspun::Postgres") if variable == "rpg_mPostgres"

      name = variable[/\Arsb_c(\w+)\z/, 1]
      name ? YARD::CodeObjects::Proxy.new(:root, "Ringspun::#{name}") : super
    end
  end

  # Classes of others, of which the reference says nothing, be it that something of ours is mixed into them.
  OTHERS = %w[IO Kernel Minitest::Test].freeze

  # Prepended to the handler of `include` and `prepend`.
  module Mixins
    protected

    def recipient(mixin) = (super unless OTHERS.include?(statement.namespace&.source))
  end

  # sync.c makes its classes by a function of its own.
  class DefineHandler < YARD::Handlers::C::Base
    MATCH = /(\w+) = define\("(\w+)", \w+\)/
    handles MATCH
    statement_class YARD::Parser::C::BodyStatement

    process do
      variable, name = statement.source.match(MATCH).captures
      handle_class(variable, name, "rb_cObject", "rsb_mRingspun")
    end
  end

  YARD::Handlers::C::Base.prepend(Handler)
  YARD::Handlers::Ruby::MixinHandler.prepend(Mixins)

  # What YARD has not met, for no line of any file says it so.
  def self.make(path)
    made = YARD::Registry.at(path)
    made ||= YARD::CodeObjects::ClassObject.new(:root, path) { |each| each.superclass = SUPERCLASSES[path] }
    METHODS.fetch(path, {}).each do |name, comment|
      method = YARD::Registry.at("#{path}##{name}") || YARD::CodeObjects::MethodObject.new(made, name)
      method.docstring = comment unless method.has_tag?(:since) # of Data's it says just that there is one
    end
  end

  YARD::Parser::SourceParser.after_parse_list do
    (SUPERCLASSES.keys | METHODS.keys).each { |path| make(path) if COMMENTS[path] }
    YARD::Registry.all(:class, :module, :constant).each do |object|
      object.docstring = COMMENTS[object.path] if object.docstring.blank? && COMMENTS[object.path]
    end
  end
end
