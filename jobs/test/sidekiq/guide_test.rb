# frozen_string_literal: true

require "jobs_helper"
require "sidekiq"

# The table of the guide says of everything that Sidekiq has whether it is the same, other or missing.
class SidekiqGuideTest < Minitest::Test
  include AnyBackend

  GUIDE = File.read(File.expand_path("../../../docs/21-from-sidekiq.md", __dir__))
  ROWS = GUIDE.lines.grep(/^\|/).drop_while { |line| !line.start_with?("| Sidekiq |") }

  # What nobody is meant to call.
  NOT_MEANT = [:"❨╯°□°❩╯︵┻━┻", :_context, :_context=].freeze

  def named
    @named ||= ROWS.flat_map { |row| row.scan(/`([^`]+)`/).flatten }.flat_map { |text| text.scan(/[\w?!=:\[\]-]+/) }
                   .map { |text| text.delete_prefix(":").delete_suffix(":") }
  end

  def assert_named(names)
    names = names.map(&:to_s) - NOT_MEANT.map(&:to_s)
    refute_empty names
    assert_empty(names.reject { |name| named.include?(name) || named.include?(name.delete_suffix("=")) })
  end

  def test_the_module = assert_named(Sidekiq.singleton_methods(false))

  def test_its_configuration = assert_named(Sidekiq::Config.public_instance_methods(false))

  def test_its_options = assert_named(Sidekiq::Config::DEFAULTS.keys)

  def test_its_events = assert_named(Sidekiq::Config::DEFAULTS[:lifecycle_events].keys)

  def test_chains
    assert_named(Sidekiq::Middleware::Chain.public_instance_methods(false) - %i[entries copy_for retrieve empty? invoke])
  end

  def test_clients
    assert_named(Sidekiq::Client.singleton_methods(false) + Sidekiq::Client.public_instance_methods(false))
  end

  def test_jobs
    assert_named(Sidekiq::Job.public_instance_methods(false) + Sidekiq::Job::ClassMethods.public_instance_methods(false) +
                 Sidekiq::Job::Options::ClassMethods.public_instance_methods(false) +
                 Sidekiq::Job::Setter.public_instance_methods(false))
  end

  def test_what_gems_include
    assert_named(Sidekiq::JobUtil.public_instance_methods(false) + Sidekiq::JobUtil.constants - [:RECURSIVE_JSON_UNSAFE])
  end

  def test_constants_of_the_configuration
    assert_named(Sidekiq::Config.constants(false).map { |name| "Sidekiq::Config::#{name}" })
  end

  # Read as text, for it is loaded into a process that tests itself by it.
  def test_tests
    text = File.read(File.join(Gem.loaded_specs.fetch("sidekiq").full_gem_path, "lib/sidekiq/test_api.rb"))
    names = text.scan(/^ +(?:def|alias_method) (?:self\.)?:?([a-z]\w*[?!]?)|class (\w+Error)/).flatten.compact
    assert_operator names.size, :>, 25
    assert_named(names - %w[atomic_push])
  end

  def test_the_command_line
    text = File.read(File.join(Gem.loaded_specs.fetch("sidekiq").full_gem_path, "lib/sidekiq/cli.rb"))
    flags = text.scan(/on(?:_tail)?[ (]"(-\w)", "(--[a-z]+)/).flatten
    assert_equal 20, flags.size
    assert_named(flags)
  end

  # Each row says so.
  def test_rows_have_an_answer
    answers = ROWS.grep_v(/^\|[ -]*\||^\| [^|]+\| \| \|$/).map { |row| row.gsub("\\|", "").split("|")[2].strip }
    assert_operator answers.size, :>, 90
    known = ["the same", "other", "missing", "the same class", "the same names", "without effect", "refused",
             "here without Enterprise"]
    assert_empty answers.uniq - known
  end
end
